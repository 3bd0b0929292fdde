"""Where subtitles stand among the frames of a video, and as what text. Pure.

Source of the rule: EvolvingLMMs-Lab/lmms-eval, branch `llava-onevision2` @3997a60, frames
path: a cue stands behind every frame that is shown while it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.video.subtitles import Cue


def cue_text(cue: Cue, zero_s: float, end_s: float) -> str:
    """A cue as the model reads it, its times from `zero_s` on; an open end is `end_s`."""
    return f"subtitle\n{max(0.0, cue.start_s - zero_s):.1f} - {min(cue.end_s, end_s) - zero_s:.1f} {cue.text}"


def texts_behind(
    cues: Sequence[Cue], frame_times_s: Sequence[float], steps: int, *, zero_s: float, end_s: float
) -> tuple[tuple[str, ...], int]:
    """Texts behind each of the places in the prompt that hold a frame, or a pair of frames.

    Args:
        cues: In order, in the frames' time.
        frame_times_s: When the frames are shown, ascending, at least one.
        steps: Places that hold them, the same number of frames each but for the last.
        zero_s: The time that the model is told as 0.
        end_s: End of the video.

    Returns:
        A text for each place, empty where no cue is shown, and how many of the cues stand in any.
    """
    frames_per_step = -(-len(frame_times_s) // steps)
    texts: list[str] = []
    shown: set[int] = set()
    for step in range(steps):
        times_s = frame_times_s[step * frames_per_step : (step + 1) * frames_per_step]
        here = [n for n, cue in enumerate(cues) if any(cue.start_s <= time_s < cue.end_s for time_s in times_s)]
        shown.update(here)
        texts.append("\n".join(cue_text(cues[n], zero_s, end_s) for n in here))
    return tuple(texts), len(shown)
