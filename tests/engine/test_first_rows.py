"""One row of a clip is computed first: the rules, and what they save in the real vLLM."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT, TINY_MODEL
from tests.world.rows import engine, prepared, read_rows
from vidpipe.engine.first_rows import FirstRows
from vidpipe.engine.interface import EngineInput, Reply
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.recipe.schema import Generation

DEMO = ROOT / "data" / "demo"
STEP_TOKENS = 500


def row(clip: int, number: int) -> EngineInput:
    return EngineInput(f"{clip}-{number}", Generation(max_tokens=1), 1, None, clip=str(clip))


@given(st.lists(st.integers(0, 3), max_size=30), st.randoms(use_true_random=False), st.sets(st.integers(0, 30)))
def test_every_row_enters_once_and_none_before_the_first_of_its_clip_is_computed(
    clips: list[int], chance: random.Random, refused: set[int]
) -> None:
    rows = [row(clip, number) for number, clip in enumerate(clips)]
    first_rows, inside, entered = FirstRows(caching=True), [], []
    known: Counter[str] = Counter()
    """Rows of a clip in the engine that are computed."""

    def enter(new: Sequence[EngineInput]) -> None:
        waiting = list(new)
        while waiting:
            one = waiting.pop(0)
            entered.append(one.id)
            if int(one.id.split("-")[1]) in refused:
                waiting += first_rows.refused(one.id)
                continue
            assert known[one.clip] or one.id in first_rows.ids, "nobody has computed the clip, and nobody will"
            inside.append(one)

    waiting = list(rows)
    while waiting or inside:
        if waiting and (not inside or chance.choice((True, False))):
            one = waiting.pop(0)
            if first_rows.enters(one):
                enter([one])
            continue
        one = chance.choice(inside)
        if one.id in first_rows.ids:
            known[one.clip] += 1
            enter(first_rows.computed(one.id))
        else:
            known[one.clip] = max(known[one.clip], 1)
            inside.remove(one)
            enter(first_rows.left(one.id))
            if not any(other.clip == one.clip for other in inside):
                known[one.clip] = 0
    assert sorted(entered) == sorted(one.id for one in rows)


def test_without_a_prefix_cache_nothing_waits() -> None:
    first_rows = FirstRows(caching=False)
    assert all(first_rows.enters(row(0, number)) for number in range(3))
    assert first_rows.left("0-0") == first_rows.refused("0-1") == [] and not first_rows.ids


@pytest.mark.engine
def test_clips_given_all_at_once_are_computed_once_each() -> None:
    """Outputs of the encoder fit for one step only, as with a GPU's settings and videos of ordinary length."""
    with engine(TINY_MODEL, max_num_batched_tokens=STEP_TOKENS, max_num_seqs=256) as running:
        scheduler = running._engine.engine_core.engine_core.scheduler  # type: ignore[attr-defined]
        manager = scheduler.encoder_cache_manager
        manager.cache_size = manager.num_free_slots = manager.num_freeable_slots = STEP_TOKENS
        scheduler.max_num_encoder_input_tokens = STEP_TOKENS
        found = prepared(running, TINY_MODEL, DEMO, read_rows(DEMO, TINY_MODEL))
        clips = [
            [replace(one, id=f"{again} {one.id}") for again in range(3) for one in clip]
            for clip in found
            if STEP_TOKENS > clip[0].tokens > 200
        ]
        one_by_one = sum(hits(running, [clip]) for clip in clips)
        assert len(clips) > 4 and running._engine.reset_prefix_cache()
        assert hits(running, clips) == one_by_one > 0


def hits(running: VllmEngine, clips: Sequence[Sequence[EngineInput]]) -> int:
    """Prompt tokens that the prefix cache had for the rows of these clips, given all at once."""
    left = sum(map(len, clips))
    before = counted(running)
    for clip in clips:
        for one in clip:
            running.submit(one)
    while left:
        left -= sum(isinstance(reply, Reply) for reply in running.poll())
    return counted(running) - before


def counted(running: VllmEngine) -> int:
    metrics = running._engine.get_metrics()
    return next(int(metric.value) for metric in metrics if metric.name == "vllm:prefix_cache_hits")
