"""Published wordings by name: in a recipe, in a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT, TINY_MODEL, vidpipe
from vidpipe.benchmarks.prompts import TEMPLATES
from vidpipe.errors import CapabilityError, RecipeError, RowError
from vidpipe.manifest.row import Row
from vidpipe.plan.prompts import PromptTemplate
from vidpipe.recipe.load import build_recipe


def row(**values: object) -> Row:
    asked = {"question": "How far?", "question_type": "yes_no", **values}
    return Row(0, 1, "a", (), question="How far?", options=("A. near", "B. far"), values=asked)


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_wording_renders_and_is_documented(name: str) -> None:
    text = PromptTemplate(None, name).user_text(row())
    assert "ow far?" in text and "{" not in text
    assert f"`{name}`" in (ROOT / "docs" / "benchmarks.md").read_text()


def test_a_rows_own_wording_goes_before_the_recipes() -> None:
    recipe = PromptTemplate("{{ question }} Answer.")
    assert recipe.user_text(row()) == "How far? Answer."
    assert recipe.user_text(row(template="lvbench.lmms_main")).startswith("How far?\n(A) A. near\n")
    with pytest.raises(RowError, match="'vsi' is not known"):
        recipe.user_text(row(template="vsi"))


def test_a_recipe_has_one_wording_and_that_exists(tmp_path: Path) -> None:
    raw = {"manifest": "rows.jsonl", "model": {"path": str(TINY_MODEL)}, "template": "vsi.official"}
    with pytest.raises(RecipeError, match="prompt and template exclude each other"):
        build_recipe({**raw, "prompt": "x"}, [], text="", folder=tmp_path, name="r", source="r")
    with pytest.raises(CapabilityError, match=r"vsi\.vlmevalkit"):
        PromptTemplate(None, "vsi.other")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "video": "a.mp4", "question_type": "x", "options": ["A. b"]}\n')
    settings = ("--set", f"model.path={TINY_MODEL}", "--set", "template=vsi.official")
    result = vidpipe("check", tmp_path / "rows.jsonl", *settings)
    assert result.returncode == 2 and "'question' is undefined" in result.stdout
