"""What may be repaired: decided from version, source and behaviour."""

from __future__ import annotations

import pytest

from vidpipe.engine.vllm_plugin.gate import Finding, judge


def finding(*, tested: bool = True, changed: tuple[str, ...] = (), faults: tuple[str, ...] = ("rounding",)) -> Finding:
    return Finding("9.9.9", tested, changed, faults)


@pytest.mark.parametrize("unknown_version", ["warn", "refuse"])
def test_a_version_that_has_it_right_is_left_alone(unknown_version: str) -> None:
    for found in (finding(faults=()), finding(faults=(), tested=False, changed=("m:f",))):
        assert judge("r", found, unknown_version).action == "leave"


@pytest.mark.parametrize("unknown_version", ["warn", "refuse"])
def test_a_tested_version_is_repaired_without_a_word(unknown_version: str) -> None:
    verdict = judge("r", finding(), unknown_version)
    assert (verdict.action, verdict.reason) == ("apply", "")


def test_an_unknown_version_with_the_same_functions_is_as_the_recipe_says() -> None:
    warned = judge("r", finding(tested=False), "warn")
    assert warned.action == "apply" and "9.9.9 shows rounding" in warned.reason
    refused = judge("r", finding(tested=False), "refuse")
    assert refused.action == "refuse" and "engine.unknown_version: warn" in refused.reason


@pytest.mark.parametrize("tested", [True, False])
def test_faulty_functions_that_nobody_has_looked_at_are_never_repaired(tested: bool) -> None:
    verdict = judge("r", finding(tested=tested, changed=("m:C.f",)), "warn")
    assert verdict.action == "refuse" and "m:C.f" in verdict.reason
