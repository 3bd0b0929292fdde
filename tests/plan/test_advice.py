"""What a plan advises, and what it reckons a model to cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import TINY_MODEL
from vidpipe.engine.registry import ENGINES
from vidpipe.plan.advice import CONTEXT_KEYS, context_advice, decode_advice, missing_advice
from vidpipe.plan.flops import costs_of


@pytest.mark.parametrize(
    ("prompts", "context", "expected"),
    [
        ([20_000, 24_000], 32_768, "max_model_len 24576 is enough (now 32768)"),
        ([20_000, 32_700, 33_000], 32_700, "2 of 3 rows are over max_model_len 32700; 33792 takes all of them; the"),
        ([33_000], 32_768, "1 of 1 row is over max_model_len 32768; 33792 takes all of them"),
        ([32_750], 32_768, "1 row leaves less than max_tokens 64 for the answer; max_model_len 33792 is enough"),
        ([20_000], None, "max_model_len 20480 is enough for every row"),
    ],
)
def test_the_context_is_advised_by_the_longest_prompt(prompts: list[int], context: int | None, expected: str) -> None:
    (line,) = context_advice(prompts, 64, context)
    assert line.startswith(expected), line


def test_nothing_is_advised_where_all_is_well() -> None:
    assert context_advice([30_000], 64, 32_768) == context_advice([], 64, 32_768) == []
    assert decode_advice(100, 100, 4) == decode_advice(100, None, 4) == []


def test_slow_decoding_and_missing_files_have_a_line_each() -> None:
    assert decode_advice(1000, 100, 4) == ["decoding takes longer than the engine on these 4 cores; 11 would keep up"]
    assert missing_advice({"not_found": 3, "odd": 1}, {"not_found": "look"}) == ["3 rows, not_found: look"]


def test_costs_follow_the_shapes_of_the_config() -> None:
    config: dict[str, Any] = json.loads((TINY_MODEL / "config.json").read_text())
    found = costs_of(config)
    assert found is not None
    # Seven layers of 256: query and output of 4 heads of 64, key and value of 2, three matrices of 704.
    assert found.per_token == 2 * 7 * (2 * 256 * 64 * (4 + 2) + 3 * 256 * 704)
    assert found.per_patch == 2 * 4 * (4 * 192**2 + 2 * 192 * 512)
    assert found.prefill(100) == pytest.approx(100 * found.per_token + 4 * 7 * 256 * 100**2 / 2)
    assert found.prefill(60) + found.prefill(40, 60) == pytest.approx(found.prefill(100)), "a shared start"
    assert found.encode(10, 5) == 10 * (found.per_patch + 5 * found.per_patch_pair)
    experts = {**config["text_config"], "num_experts_per_tok": 8, "moe_intermediate_size": 88}
    assert getattr(costs_of({**config, "text_config": experts}), "per_token", None) == found.per_token
    assert costs_of({"text_config": {}}) is None


def test_the_argument_is_the_engines() -> None:
    (line,) = context_advice([3_000], 64, 32_768, CONTEXT_KEYS["sglang"])
    assert line.startswith("context_length 3072 is enough")
    assert set(CONTEXT_KEYS) == set(ENGINES)
