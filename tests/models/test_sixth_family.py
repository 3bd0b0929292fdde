"""Adding a family is one file and one registry line: everything else then works with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import write_clip
from vidpipe.cli.app import app
from vidpipe.errors import CapabilityError
from vidpipe.models.family import Family
from vidpipe.models.registry import FAMILIES, family_of, get_family
from vidpipe.recipe.schema import Sampling


@pytest.fixture(autouse=True)
def one_registry_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "toy_vl", "tests.models.toy_family:ToyVL")


def test_it_is_found_by_name_and_by_checkpoint() -> None:
    family: Family = get_family("toy_vl")
    assert family_of({"model_type": "toy_vl"}, "m").name == family.name == "toy_vl"


def test_its_rules_are_checked_like_any_other() -> None:
    family = get_family("toy_vl")
    assert family.complete(Sampling(), {}).max_frames == 9
    with pytest.raises(CapabilityError, match="Its rules: native"):
        family.complete(Sampling(rule="vllm"), {})
    with pytest.raises(CapabilityError, match="None of the family's rules has it"):
        family.complete(Sampling(fps=1), {})


def test_a_file_is_shown_as_it_sees_it(tmp_path: Path) -> None:
    clip, sheet = write_clip(tmp_path / "a.mp4", frames=64, fps=8, width=128, height=128), tmp_path / "sheet.png"
    result = CliRunner().invoke(app, ["frames", str(clip), "--model", "toy_vl", "-o", str(sheet), "--json"])
    document = json.loads(result.stdout)
    assert document["frames"] == 9 and document["time_texts"][1] == "at 0.88 s"
    assert document["size_wh"] == [64, 64] and document["vision_tokens"]["asked"] == 9 * 16
    assert sheet.stat().st_size > 1000
