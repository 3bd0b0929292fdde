"""Moss-VL's own processor, told frames and times instead of a file.

Source: the hub's `video_processing_moss_vl.py` (`preprocess`, `fetch_videos`) and `processing_moss_vl.py`
(`__call__`, `_calculate_timestamps`), known from their text only. The video processor reads files through
its method `fetch_videos`, once a call; for the length of the call we stand in its place. Everything behind it, resize,
patches, times and control words, is the checkpoint's, and what comes out is held against what went in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vidpipe.engine.interface import Video
from vidpipe.errors import RowError
from vidpipe.models.moss_vl import IMAGE, MERGE, SLOT, TIME_END, TIME_START
from vidpipe.models.moss_vl_layout import encoder_length

PROCESSOR = "MossVLProcessor"
"""Name of its class."""


def expand_moss_vl(processor: Any, video: Video) -> Any:
    """What the processor makes of the place of a video in a prompt.

    Args:
        processor: A `MossVLProcessor`.
        video: The frames.

    Returns:
        Token ids `input_ids` [1, tokens], patches `pixel_values` and `grid_thw` [1, 3].

    Raises:
        RowError: it shows other frames, or tells other times, than it was given.
    """
    rate = video.metadata["fps"]
    times_s = [tick / rate for tick in video.metadata["frames_indices"]]
    with _frames_in_place_of_files(processor.video_processor, video, times_s) as asked:
        made = processor(
            text=[SLOT], videos=["frames"], videos_kwargs=dict(video.processor_kwargs), return_tensors="pt"
        )
    wanted = "".join(f"{TIME_START}{time_s:.1f} seconds{TIME_END}{IMAGE}" for time_s in times_s)
    told = processor.tokenizer.decode(made["input_ids"][0], skip_special_tokens=False)
    if not asked or wanted not in told or made["grid_thw"].tolist()[0][0] != len(times_s):
        raise RowError(
            "bad_value",
            f"the checkpoint's processor shows grid {made['grid_thw'].tolist()} and {told[:200]!r}, where it was given "
            f"{len(times_s)} frames and {wanted[:200]!r}. Its code has changed; see docs/models.md.",
        )
    return made


def encoder_slots(grid: Any) -> int:
    """Slots of the encoder's cache that videos of a grid [videos, 3], in patches, take."""
    return encoder_length([(frames, rows, columns) for frames, rows, columns in grid.tolist()], MERGE)


@contextmanager
def _frames_in_place_of_files(video_processor: Any, video: Video, times_s: Sequence[float]) -> Iterator[list[Any]]:
    """`video_processor` as it is, but for where it gets frames from; the list yielded holds what it asked for."""
    import torch
    from transformers.video_utils import VideoMetadata

    asked: list[Any] = []

    def fetch_videos(videos: Any, **options: Any) -> tuple[list[Any], list[Any]]:
        asked.append(videos)
        metadata = VideoMetadata(
            total_num_frames=len(times_s),
            fps=video.metadata["fps"],
            frames_indices=list(video.metadata["frames_indices"]),
            width=video.pixels.shape[2],
            height=video.pixels.shape[1],
        )
        metadata.actual_timestamps = list(times_s)
        return [torch.from_numpy(video.pixels).permute(0, 3, 1, 2)], [metadata]

    video_processor.fetch_videos = fetch_videos
    try:
        yield asked
    finally:
        del video_processor.fetch_videos
