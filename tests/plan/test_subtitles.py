"""Where cues stand among frames."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.subtitles import sentences, texts_behind
from vidpipe.video.subtitles import Cue


def test_a_cue_stands_behind_every_frame_inside_it() -> None:
    cues = [Cue(0.0, 1.0, "one"), Cue(0.5, 2.5, "two"), Cue(2.6, 2.9, "between frames"), Cue(3.0, math.inf, "open")]
    texts, shown = texts_behind(cues, [0.0, 1.0, 2.0, 3.0], 4, zero_s=0.0, end_s=4.0)
    assert texts == (
        "subtitle\n0.0 - 1.0 one",
        "subtitle\n0.0 - 1.0 one\n0.5 - 2.5 two",
        "subtitle\n0.5 - 2.5 two",
        "subtitle\n3.0 - 4.0 open",
    )
    assert shown == 3


def test_frames_in_pairs_and_a_clip_that_begins_later() -> None:
    cues = [Cue(9.0, 11.5, "one"), Cue(11.0, 13.0, "two")]
    texts, shown = texts_behind(cues, [10.0, 11.0, 12.0], 2, zero_s=10.0, end_s=20.0)
    assert texts == ("subtitle\n0.0 - 1.5 one\n1.0 - 3.0 two", "subtitle\n1.0 - 3.0 two") and shown == 2


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), max_size=8),
    st.lists(st.floats(0, 50), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_every_cue_under_a_frame_is_told(spans: list[tuple[float, float]], times: list[float], pair: int) -> None:
    times.sort()
    steps = -(-len(times) // pair)
    cues = [Cue(min(span), max(span), f"<{n}>") for n, span in enumerate(spans)]
    texts, shown = texts_behind(cues, times, steps, zero_s=0.0, end_s=50.0)
    assert len(texts) == steps
    under = [cue for cue in cues if any(cue.start_s <= time_s <= cue.end_s for time_s in times)]
    assert shown == len(under)
    assert {cue.text for cue in under} == {cue.text for cue in cues if any(cue.text in text for text in texts)}


def words(*timed: tuple[float, str]) -> list[Cue]:
    """Words of 0.25 s each."""
    return [Cue(start_s, start_s + 0.25, text) for start_s, text in timed]


def test_words_are_joined_to_sentences() -> None:
    spoken = words(
        (0.0, "It"), (0.25, "is."), (0.5, "Now"), (1.25, "late."), (1.625, "Go"), (2.5, "on"), (2.75, "home")
    )
    assert sentences(spoken) == [
        Cue(0.0, 1.5, "It is. Now late."),  # no pause behind the stop; half a second is none yet
        Cue(1.625, 1.875, "Go"),  # an eighth of a second is one, behind a stop
        Cue(2.5, 3.0, "on home"),
    ]
    assert sentences([*spoken, Cue(9.0, 9.5, "two words")]) == [*spoken, Cue(9.0, 9.5, "two words")], "no word file"
    assert sentences([]) == []


@given(st.lists(st.tuples(st.floats(0, 50), st.sampled_from(["a", "b.", "c?"])), max_size=10))
def test_no_word_is_lost(timed: list[tuple[float, str]]) -> None:
    spoken = words(*sorted(timed))
    assert " ".join(cue.text for cue in sentences(spoken)) == " ".join(cue.text for cue in spoken)
