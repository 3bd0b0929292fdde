"""Text between frames: where it goes, and that the tokens around it keep their places."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.between import places_behind, with_texts
from vidpipe.models.qwen3_vl_prompt import Ids, Media, mrope_positions

VIDEO, START, END, TEXT = 1, 2, 3, 9


def prompt_of(pairs: int, tokens: int, words: int) -> list[int]:
    """Time text, start, vision tokens, end; for each pair."""
    return [*([TEXT] * words), START, *([VIDEO] * tokens), END] * pairs


def test_places_are_behind_the_closing_token() -> None:
    assert places_behind([TEXT, START, VIDEO, VIDEO, END, TEXT, START, VIDEO, END], VIDEO) == [5, 9]
    assert places_behind([VIDEO, VIDEO], VIDEO) == [2], "nothing closes it"
    assert places_behind([TEXT], VIDEO) == []


@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(0, 3),
    st.lists(st.lists(st.integers(10, 20), max_size=4), min_size=5, max_size=5),
)
def test_nothing_is_lost(pairs: int, tokens: int, words: int, texts: list[list[int]]) -> None:
    ids = prompt_of(pairs, tokens, words)
    places = places_behind(ids, VIDEO)
    assert len(places) == pairs
    merged, stands = with_texts(ids, places, texts[:pairs])
    assert [merged[place] for place in stands] == ids and stands == sorted(set(stands))
    rest = [token for place, token in enumerate(merged) if place not in set(stands)]
    assert rest == [token for text in texts[:pairs] for token in text]
    behind = [merged.index(text[0], stands[place - 1]) for place, text in zip(places, texts, strict=False) if text]
    assert all(merged[first - 1] == END for first in behind)


@pytest.mark.engine
def test_positions_move_as_behind_any_text() -> None:
    torchvision_on_cpu.install()
    import torch
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    head, tail = [TEXT] * 4, [TEXT] * 3
    span = prompt_of(3, 6, 2)
    merged, stands = with_texts(span, places_behind(span, VIDEO), [[11, 12], [], [13, 14, 15]])
    config = SimpleNamespace(
        video_token_id=VIDEO,
        vision_start_token_id=START,
        vision_end_token_id=END,
        vision_config=SimpleNamespace(spatial_merge_size=2),
    )
    feature = SimpleNamespace(
        modality="video",
        mm_position=SimpleNamespace(offset=len(head)),
        data={"video_grid_thw": SimpleNamespace(data=torch.tensor([3, 4, 6]))},
    )

    def positions(video: list[int]) -> np.ndarray:
        ids = [*head, *video, *tail]
        theirs, _ = Qwen3VLForConditionalGeneration._get_mrope_input_positions(ids, [feature], config)
        ours = mrope_positions(ids, [Media((3, 4, 6), len(head))], Ids(START, END, VIDEO), 2)
        assert np.array_equal(ours, theirs.numpy())
        return theirs.numpy()

    before, after = positions(span), positions(merged)
    added = [place - n for n, place in enumerate(stands)]
    assert (after[:, [len(head) + place for place in stands]] == before[:, 4 : 4 + len(span)] + added).all()
