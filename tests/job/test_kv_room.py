"""Rows in the KV cache: what a clip's rows share counts once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vidpipe.job.kv_room import KvRoom

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), max_size=30)
SHARED = {"a": 100, "b": 10, "c": 0}


@given(ROWS, st.integers(1, 400), st.randoms(use_true_random=False))
def test_what_is_in_never_exceeds_the_cache(rows: list[tuple[str, int]], limit: int, chance: object) -> None:
    room = KvRoom(limit)
    inside: list[tuple[str, int]] = []
    for clip, own in rows:
        while not room.fits(clip, own, SHARED[clip]):
            assert inside, "what is larger than the cache passes alone"
            done = chance.choice(inside)  # type: ignore[attr-defined]
            inside.remove(done)
            room.leave(*done, SHARED[done[0]])
        room.enter(clip, own, SHARED[clip])
        inside.append((clip, own))
        held = sum(own for _, own in inside) + sum(SHARED[name] for name in {name for name, _ in inside})
        assert held <= limit or len(inside) == 1
        # No tighter than needed: the shared part of a clip that is in costs nothing.
        assert room.fits(clip, 0, SHARED[clip]) == (held <= limit)


def test_without_a_bound_everything_fits() -> None:
    room = KvRoom(None)
    room.enter("a", 10**9, 10**9)
    assert room.fits("b", 10**9, 10**9)
