"""Text between the frames of a video in an expanded prompt. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def places_behind(ids: Sequence[int], vision_id: int) -> list[int]:
    """Places in the ids of a video behind each run of vision tokens and the one token that closes it."""
    ends = [n + 1 for n, token in enumerate(ids) if token == vision_id and ids[n + 1 : n + 2] != [vision_id]]
    return [min(end + 1, len(ids)) for end in ends]


def with_texts(
    ids: Sequence[int], places: Sequence[int], texts: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """`ids` with texts put in at ascending `places`; and where in the result each of `ids` now stands."""
    merged: list[int] = []
    stands: list[int] = []
    begin = 0
    for place, text in zip([*places, len(ids)], [*texts, ()], strict=True):
        stands += range(len(merged), len(merged) + place - begin)
        merged += [*ids[begin:place], *text]
        begin = place
    return merged, stands
