"""Every rule against the vectors computed with the upstream functions (sources in the files), through the command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.parity.vectors import GOLDEN, Case, cases
from vidpipe.cli.app import app
from vidpipe.cli.trace_kinds import KINDS
from vidpipe.pruning.evs import evs_scores
from vidpipe.pruning.vidcom2 import vidcom2_scores

MASKS = {"retention_mask_evs": ("stable_float64",), "retention_mask_vidcom2": ("stable_float64", "order_independent")}
"""Kinds whose masks upstream itself does not always repeat -> the marks of cases in which they must be equal."""
ABOUT_UPSTREAM = ("stable_float64", "same_in_bfloat16", "order_independent")
RELATIVE = 1e-9
DOMINANCE = 1e-6


def traced(kind: str, found: list[Case]) -> dict[str, dict[str, Any]]:
    lines = "".join(json.dumps({"id": case.id, "input": case.input}) + "\n" for case in found)
    result = CliRunner().invoke(app, ["trace", kind], input=lines)
    assert result.exit_code == 0, result.output
    return {line["id"]: line["output"] for line in map(json.loads, result.stdout.splitlines())}


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return type(a) in (int, float) and type(b) in (int, float) and a == pytest.approx(b, rel=RELATIVE, abs=0)
    return type(a) is type(b) and a == b


def by_type(expected: dict[str, Any]) -> dict[str, Any]:
    """What a trace gives for `expected`: of an upstream error only the type's name."""
    is_error = {key for key, value in expected.items() if key.endswith("error") and isinstance(value, str)}
    return {key: value.split(":")[0] if key in is_error else value for key, value in expected.items()}


def test_every_vector_file_has_a_kind() -> None:
    assert sorted(KINDS) == sorted(path.stem for path in GOLDEN.rglob("*.json"))


@pytest.mark.parametrize("kind", sorted({path.stem for path in GOLDEN.glob("*.json")} - set(MASKS)))
def test_rule(kind: str) -> None:
    found = cases(kind)
    outputs = traced(kind, found)
    different = [case.id for case in found if not equal(outputs[case.id], by_type(case.expected))]
    assert not different, f"{len(different)} of {len(found)}; first {different[0]}: {outputs[different[0]]}"


@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind: str) -> None:
    import numpy as np

    found = cases(kind)
    outputs = traced(kind, found)
    for case in found:
        output, expected, given = outputs[case.id], case.expected, case.input
        assert output.keys() == expected.keys()
        assert (output["retained"], output["count_fn"]) == (expected["retained"], expected["count_fn"]), case.id
        if all(expected[mark] for mark in MASKS[kind]):
            for key in expected.keys() - set(ABOUT_UPSTREAM):
                assert output[key] == expected[key], (case.id, key)
            continue
        embeddings = np.array(given["embeds"]).reshape(-1, given["channels"])
        mask = np.array(output["mask"], dtype=bool)
        if kind == "retention_mask_evs":
            scores = evs_scores(embeddings, given["grid_thw"][0])
            assert scores[mask].min() >= scores[~mask].max() - DOMINANCE, case.id
        else:
            to_video, to_frame = vidcom2_scores(embeddings, given["grid_thw"][0])
            assert mask.sum() == expected["retained"] and (to_video + to_frame).size == mask.size, case.id


def test_a_line_that_is_no_case_is_refused() -> None:
    result = CliRunner().invoke(app, ["trace", "retained_counts"], input="{}\n")
    assert result.exit_code == 2 and "line 1" in result.output


def test_an_input_that_a_rule_refuses_costs_that_line_only() -> None:
    good = {"input_ids": [1], "image_token_id": 9, "grid_thw": [], "spatial_merge_size": 2}
    good |= {"extend_prefix_len": 0, "extend_seq_len": 1}
    found = traced("moss_vl_layout", [Case("bad", {**good, "input_ids": [9]}, {}), Case("good", good, {})])
    assert found["bad"] == {"error": "ValueError"} and found["good"]["encoder_len"] == 0


def test_an_unknown_kind_is_refused_with_the_known() -> None:
    result = CliRunner().invoke(app, ["trace", "retained"])
    assert result.exit_code == 2 and "retained_counts" in result.output


def test_it_is_not_advertised() -> None:
    assert "trace" not in CliRunner().invoke(app, ["--help"]).output
