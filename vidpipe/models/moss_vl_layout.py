"""Where Moss-VL's frames lie in the encoder's cache, which positions they have, and which text sees them.

Sources: SGLang `srt/multimodal/processors/moss_vl.py` (`_compute_position_metadata`,
`_build_vision_token_info`, `_compute_visible_frame_counts`) and `srt/models/moss_vl.py`
(`_get_encoder_len`, `_insert_separator_tokens`, `_build_cross_attention_custom_mask`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vidpipe.models.positions import Positions

Grids = Sequence[tuple[int, int, int]]
"""For each piece of media its patches (t, h, w) before merging."""
SEPARATOR = -1


@dataclass(frozen=True)
class MediaSlots:
    """The part of the encoder's cache that one piece of media takes."""

    start: int
    end: int
    frames: int
    grid_h: int
    grid_w: int
    tokens_per_frame: int
    """Without the separator behind each frame."""


@dataclass(frozen=True)
class MossPositions:
    """Positions of a whole prompt."""

    text: Positions
    """[3, tokens of the prompt]."""
    vision: Positions
    """[3, slots of the encoder's cache]."""


def media_slots(grids: Grids, merge: int) -> list[MediaSlots]:
    """The encoder's cache, piece by piece."""
    slots: list[MediaSlots] = []
    for frames, rows, columns in grids:
        start = slots[-1].end if slots else 0
        tokens = rows * columns // merge**2
        slots.append(MediaSlots(start, start + frames * (tokens + 1), frames, rows, columns, tokens))
    return slots


def encoder_length(grids: Grids, merge: int) -> int:
    """Slots of the encoder's cache: the tokens of every frame and a separator behind each."""
    slots = media_slots(grids, merge)
    return slots[-1].end if slots else 0


def with_separators(grids: Grids, merge: int) -> list[int]:
    """For each slot the number of its vision token in the encoder's output, or `SEPARATOR`."""
    layout: list[int] = []
    token = 0
    for slots in media_slots(grids, merge):
        for _ in range(slots.frames):
            layout += [*range(token, token + slots.tokens_per_frame), SEPARATOR]
            token += slots.tokens_per_frame
    return layout


def visible_frames(ids: Sequence[int], image_id: int) -> list[int]:
    """For each token of the prompt the number of frames that it sees: those whose image token is at or before it."""
    counts = np.cumsum(np.asarray(ids, dtype=np.int64) == image_id)
    found: list[int] = counts.tolist()
    return found


def visible_slots(visible: Sequence[int], grids: Grids, merge: int) -> list[int]:
    """For each token of the prompt the number of slots that it sees, separators included."""
    ends = [0, *np.cumsum([tokens + 1 for tokens, _, _ in _frames(grids, merge)]).tolist()]
    return [ends[min(frames, len(ends) - 1)] for frames in visible]


def position_metadata(ids: Sequence[int], image_id: int, grids: Grids, merge: int) -> MossPositions:
    """Positions of the prompt's tokens and of the encoder's slots.

    An image token at running position p stands for a frame of h x w tokens at
    (p, p + row, p + column); its separator and the image token itself come behind, at
    p + max(h, w), and text goes on from there.

    Raises:
        ValueError: the prompt has another number of image tokens than there are frames.
    """
    frames = list(_frames(grids, merge))
    images = sum(token == image_id for token in ids)
    if images != len(frames):
        raise ValueError(f"{images} image tokens in the prompt, but {len(frames)} frames")
    text: list[int] = []
    vision: list[Positions] = []
    place, remaining = 0, iter(frames)
    for token in ids:
        if token == image_id:
            _, rows, columns = next(remaining)
            grid = np.indices((1, rows, columns)).reshape(3, -1).astype(np.int64) + place
            place += max(rows, columns)
            vision += [grid, np.full((3, 1), place, dtype=np.int64)]
        text.append(place)
        place += 1
    empty = np.zeros((3, 0), dtype=np.int64)
    return MossPositions(np.tile(np.array(text, dtype=np.int64), (3, 1)), np.concatenate([empty, *vision], axis=1))


def _frames(grids: Grids, merge: int) -> Iterator[tuple[int, int, int]]:
    """Tokens, rows and columns after merging of every frame."""
    for frames, rows, columns in grids:
        for _ in range(frames):
            yield rows * columns // merge**2, rows // merge, columns // merge
