"""LLaVA-OneVision-2's codec videos in vLLM: handed over as paths, their times put right afterwards.

vLLM gives the path to the checkpoint's own code, which makes canvases with the program
`cv-preinfer` (PyPI: codec-video-prep), and vLLM then writes the prompt with times that are
frame number / average rate. On a variable-rate file these are wrong, so the prompt's part for
the video is written again here, from the frame numbers that vLLM was given.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from vidpipe.engine.interface import Canvases, CodecVideo
from vidpipe.errors import MediaError
from vidpipe.models.llava_onevision2 import END, START, time_tag
from vidpipe.models.llava_onevision2_codec import canvas_prompt
from vidpipe.models.llava_onevision2_patches import frame_runs
from vidpipe.models.prompt import token_ids

PROGRAM, PROGRAM_VARIABLE = "cv-preinfer", "CV_PREINFER_BIN"
NEEDED_BY_IT = ("ffmpeg", "ffprobe")
CACHE_VARIABLE = "ONLINE_CODEC_CACHE_DIR"
"""Where the checkpoint's code keeps canvases: for ever, under the video's path, whatever becomes of the file."""


def missing_programs() -> list[str]:
    """Programs that the checkpoint's code will not find; those beside this Python count as found."""
    wanted = [os.environ.get(PROGRAM_VARIABLE, PROGRAM), *NEEDED_BY_IT]
    return [name for name in wanted if shutil.which(name, path=_path()) is None]


def item(video: CodecVideo) -> Any:
    """The video in the form that vLLM's OV2 processor knows as a path for the codec."""
    from vllm.model_executor.models.llava_onevision2 import prepare_codec_video_input

    return prepare_codec_video_input(video.path)


@contextmanager
def scratch() -> Iterator[None]:
    """An environment for the checkpoint's code: programs found, canvases in a folder that is emptied afterwards.

    A folder that the user has named in `ONLINE_CODEC_CACHE_DIR` is used and left alone.
    """
    os.environ["PATH"] = _path()
    if CACHE_VARIABLE in os.environ:
        yield
        return
    folder = Path(_own_folder())
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ[CACHE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[CACHE_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache
def _own_folder() -> str:
    """One name for the whole process: the checkpoint's code may read the variable only once."""
    return tempfile.mkdtemp(prefix="vidpipe-canvases-")


def _path() -> str:
    """`PATH`, and the folder of this Python, where pip puts programs, also of an environment that is not active."""
    beside = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(paths if beside in paths else [*paths, beside])


def refusal(video: CodecVideo, error: Exception) -> MediaError:
    """What an exception while canvases are made means: its first cause, in a sentence."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    text = " ".join(str(error).split())[-300:]
    return MediaError(
        "unsupported_codec", f"{video.path}: the codec cannot take this clip: {type(error).__name__}: {text}"
    )


def with_true_times(video: CodecVideo, rendered: dict[str, Any], tokenizer: Any) -> tuple[dict[str, Any], Canvases]:
    """vLLM's rendering with the times of `video` in its prompt; and what was made of it.

    Raises:
        MediaError: the canvases do not fit the file.
    """
    import torch

    (item,) = rendered["mm_kwargs"]["video"]
    (place,) = rendered["mm_placeholders"]["video"]
    patches, grid = item["pixel_values_videos"].data, item["video_grid_thw"].data
    runs = frame_runs(item["patch_positions_videos"].data[:, 0].tolist(), video.merge)
    last = max((frame for frame, _ in runs), default=0)
    if last >= len(video.times_s):
        raise MediaError(
            "unsupported_codec",
            f"{video.path}: the codec names frame {last}, and the file shows {len(video.times_s)}: its header lies.",
        )
    told = [(time_tag(float(video.times_s[frame])), tokens) for frame, tokens in runs]
    ids = token_ids(
        canvas_prompt(told, START, video.vision_word, END),
        lambda text: tokenizer.encode(text, add_special_tokens=False),
        tokenizer.convert_tokens_to_ids,
    )
    is_embed = torch.tensor(ids) == tokenizer.convert_tokens_to_ids(video.vision_word)
    kept = int(is_embed.sum())
    if kept * video.merge**2 != len(patches):
        raise MediaError(
            "unsupported_codec",
            f"{video.path}: {len(patches)} patches, of which {kept * video.merge**2} have a place in the prompt.",
        )
    prompt: list[int] = rendered["prompt_token_ids"]
    canvases = Canvases(
        count=int(grid[:, 0].sum()),
        size_wh=_canvas_size(grid, patches),
        source_frames=tuple(frame for frame, _ in runs),
        vision_tokens=kept,
        sha=hashlib.sha256(patches.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest(),
    )
    told_ids = [*prompt[: place.offset], *ids, *prompt[place.offset + place.length :]]
    placeholders = {"video": [replace(place, length=len(ids), is_embed=is_embed)]}
    return {**rendered, "prompt_token_ids": told_ids, "mm_placeholders": placeholders}, canvases


def _canvas_size(grid: Any, patches: Any) -> tuple[int, int]:
    side = math.isqrt(patches.shape[1] // 3)  # three colours of side x side pixels
    return int(grid[0, 2]) * side, int(grid[0, 1]) * side
