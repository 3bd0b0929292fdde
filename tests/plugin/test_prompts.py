"""What a plan says of pruned clips is what vLLM's own preparation makes of them; no engine is started."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ROOT, write_clip
from vidpipe.engine.interface import EngineInput, Preparer
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.errors import RowError
from vidpipe.job.forecast import forecast
from vidpipe.job.prospect import Prospect, look_ahead
from vidpipe.job.work import read_and_prepare
from vidpipe.plan.clips import Clip
from vidpipe.pruning.counts import positions_taken
from vidpipe.recipe.load import load_recipe

pytestmark = pytest.mark.engine


def prospect_of(*assignments: str) -> tuple[Prospect, Preparer]:
    prospect = look_ahead(load_recipe(ROOT / "recipes" / "demo.yaml", list(assignments)))
    recipe = prospect.recipe
    engine = VllmEngine(recipe.model, recipe.engine, prospect.checkpoint.location, prospect.demands)
    return prospect, engine.preparer


@pytest.mark.parametrize(("method", "rate"), [("evs", 0.95), ("vidcom2", 0.5)])
def test_a_plan_counts_the_tokens_that_the_prompt_has(method: str, rate: float) -> None:
    prospect, preparer = prospect_of(f"pruning.method={method}", f"pruning.rate={rate}")
    for clip in prospect.plan(prospect.manifest.rows[:12]).clips:
        outlook = prospect.reader.look(clip)
        made = read_and_prepare(prospect.reader, preparer, Clip(clip.rows[:1]))
        (found,) = made.inputs
        assert isinstance(found, EngineInput)
        ids = found.payload["prompt_token_ids"]
        assert ids.count(found.vision_token_ids[0]) == outlook.kept_tokens < outlook.vision_tokens
        assert made.seen.vision_tokens == outlook.vision_tokens and found.tokens == len(ids)


def test_positions_that_vllm_has_no_table_for_are_refused(tmp_path: Any) -> None:
    """A wide strip: 48 pairs of 1 x 64 tokens, of which one in twenty stays; the positions of all stay."""
    write_clip(tmp_path / "strip.mp4", frames=96, fps=2, width=2048, height=32)
    (tmp_path / "rows.jsonl").write_text('{"id": "r", "video": "strip.mp4", "question": "?"}')
    told = ["pruning.method=evs", "pruning.rate=0.95", f"manifest={tmp_path / 'rows.jsonl'}", "sampling.min_pixels=1"]
    sizes = {}
    for context in (4096, 800):
        prospect, preparer = prospect_of(*told, f"engine.args.max_model_len={context}")
        (clip,) = prospect.plan(prospect.manifest.rows).clips
        (sizes[context],) = read_and_prepare(prospect.reader, preparer, clip).inputs
    fits, refused = sizes[4096], sizes[800]
    assert isinstance(fits, EngineInput) and fits.tokens < 800
    assert isinstance(refused, RowError) and refused.kind == "prompt_too_long"
    kept = fits.payload["prompt_token_ids"].count(fits.vision_token_ids[0])
    taken = positions_taken(fits.tokens, kept, 48, 1, 64) + fits.generation.max_tokens
    assert taken > 4 * 800 and f"takes {taken} positions" in str(refused)


def test_a_plan_sees_positions_that_vllm_has_no_table_for(tmp_path: Any) -> None:
    write_clip(tmp_path / "strip.mp4", frames=96, fps=2, width=2048, height=32)
    (tmp_path / "rows.jsonl").write_text('{"id": "r", "video": "strip.mp4", "question": "?"}')
    told = ["pruning.method=evs", "pruning.rate=0.95", f"manifest={tmp_path / 'rows.jsonl'}", "sampling.min_pixels=1"]
    found = forecast(prospect_of(*told, "engine.args.max_model_len=768")[0])
    assert found.over_long == ["r"] and found.kept_tokens == found.prompt_vision_tokens == 153
    assert found.vision_tokens == 48 * 64 == 4 * 768  # positions; the tokens kept would fit easily
