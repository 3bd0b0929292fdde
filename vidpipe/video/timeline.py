"""When every frame of a file is shown.

Loaders compute index / fps, which is wrong by seconds on variable-rate files.
Here the times come from the packets; where packets do not tell them for sure the
stream is decoded once (and `cache` keeps the result).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError
from vidpipe.video import clock
from vidpipe.video.container import PathLike, display_name, open_media
from vidpipe.video.packets import NO_TICKS, PacketTable, read_packets
from vidpipe.video.shown import shown_packets
from vidpipe.video.streams import choose_stream
from vidpipe.video.truncation import is_cut
from vidpipe.video.window import window_of

_FALLBACK_FPS = 25.0  # FFmpeg's own assumption for streams that state no rate


@dataclass(frozen=True)
class Timeline:
    """One entry per shown frame, in presentation order."""

    times_s: npt.NDArray[np.float64]
    """Seconds, [N], as the file states them: the first need not be 0, and joined recordings go back."""
    average_fps: float
    """(N - 1) / (last - first); the header's rate when that says nothing."""
    header_fps: float
    """What the header calls the average rate: the `fps` of loaders that read headers."""
    duration_s: float
    """From the first frame's start to the last frame's end."""
    variable_rate: bool
    missing: int
    """Frames that the file should show but cannot: cut off or damaged; 0 when none is known to be."""
    notes: tuple[str, ...]
    stream_index: int
    packets: PacketTable
    packet_of_frame: npt.NDArray[np.int64]
    """For each frame, [N], the number of its packet in file order."""

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def elapsed_s(self) -> npt.NDArray[np.float64]:
        """Seconds since the first frame, [N], never decreasing, also across joined recordings."""
        return clock.elapsed(self.times_s, 1 / self.average_fps)

    def window(self, start_s: float | None, end_s: float | None) -> tuple[int, int]:
        """Return the half-open index range of the frames with start_s <= time < end_s; see `window_of`."""
        # Joined recordings go back in time: there the running time counts, so that the range stays one piece.
        return window_of(self.times_s[0] + self.elapsed_s, start_s, end_s)


def read_timeline(path: PathLike) -> Timeline:
    """Read the timeline of the video in `path`; MediaError when it has no frame to show.

    Costs one read of the file; decodes only the start when that is doubtful, and
    everything when packets do not tell the times.
    """
    with open_media(path) as container:
        stream = choose_stream(container, display_name(path))
        table = read_packets(container, stream)
        return build_timeline(path, stream, table)


def build_timeline(path: PathLike, stream: Any, table: PacketTable) -> Timeline:
    """Make the timeline of `stream` (opened from `path`, all its packets read into `table`)."""
    name = display_name(path)
    if len(table) == 0:
        raise MediaError("truncated", f"{name}: the header is there, but no frame of the video; fetch it again")
    header_fps = float(stream.average_rate or stream.base_rate or _FALLBACK_FPS)
    cut_off = _frames_cut_off(path, stream, table)
    shown = shown_packets(path, stream, table)
    if len(shown.packets) == 0:
        raise MediaError(
            "truncated" if cut_off or table.damaged.any() else "corrupt",
            f"{name}: none of the {len(table)} packets of the video can be decoded; fetch the file again",
        )
    tick_s = float(stream.time_base)
    ticks = shown.ticks
    stated = np.where(ticks == NO_TICKS, np.nan, ticks.astype(np.float64) * tick_s)
    notes: list[str] = []
    missing = shown.missing + cut_off
    if missing:
        notes.append(f"partial: about {missing} frames of the video are cut off or damaged")
    unstated = int(np.isnan(stated).sum())
    if unstated:
        notes.append(_unstated_note(unstated, len(stated), header_fps))
    times = clock.fill_missing(stated, 1 / header_fps)
    steps = np.diff(times)
    span = clock.elapsed(times, float(np.median(steps[steps > 0])) if (steps > 0).any() else 1 / header_fps)
    average_fps = float((len(times) - 1) / span[-1]) if span[-1] > 0 else header_fps
    notes += [
        f"clock goes back before frame {at + 1}: {times[at]:.3f} s to {times[at + 1]:.3f} s"
        for at in np.flatnonzero(steps < 0)[:4]
    ]
    last_s = float(table.duration[shown.packets[-1]]) * tick_s
    return Timeline(
        times_s=times,
        average_fps=average_fps,
        header_fps=header_fps,
        duration_s=float(span[-1]) + (last_s if last_s > 0 else 1 / average_fps),
        variable_rate=clock.is_variable(span, tick_s, holes=missing > 0),
        missing=missing,
        notes=tuple(notes),
        stream_index=stream.index,
        packets=table,
        packet_of_frame=shown.packets,
    )


def _frames_cut_off(path: PathLike, stream: Any, table: PacketTable) -> int:
    """Return how many frames the end of the file lacks: 0 when nothing is cut, else at least 1."""
    if not (table.read_error or is_cut(path)):
        return 0
    by_count = int(stream.frames) - len(table)  # a count made from a list of frames, as in MP4
    return max(1, by_count)


def _unstated_note(unstated: int, total: int, header_fps: float) -> str:
    if unstated == total:
        return f"no times: the file states none, {header_fps:g} frames a second are assumed"
    return f"no times: {unstated} of {total} frames state none, theirs follow from their neighbours"
