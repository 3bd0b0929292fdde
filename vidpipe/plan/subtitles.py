"""Where subtitles stand among the frames of a video, and as what text. Pure.

Source of the rules: EvolvingLMMs-Lab/lmms-eval, branch `llava-onevision2` @3997a60, model
`llava_onevision2` (`_find_subtitle_for_timestamp`: a cue stands behind every frame that is
shown while it is) and task `videommev2` (`_group_subtitle_segments`: words to sentences).
"""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.video.subtitles import Cue

HEADING = "subtitle"
PAUSE_S = 0.5
"""A silence that ends a sentence."""
PAUSE_BEHIND_STOP_S = 0.1
"""One that does so behind a full stop, exclamation or question mark."""


def sentences(cues: Sequence[Cue]) -> list[Cue]:
    """`cues` as they are, or joined to sentences where each is one word.

    Args:
        cues: In order.
    """
    if any(" " in cue.text for cue in cues):
        return list(cues)
    joined: list[Cue] = []
    for cue in cues:
        pause_s = cue.start_s - joined[-1].end_s if joined else PAUSE_S
        stopped = joined and joined[-1].text.endswith((".", "!", "?"))
        if not joined or pause_s > PAUSE_S or (stopped and pause_s > PAUSE_BEHIND_STOP_S):
            joined.append(cue)
        else:
            joined[-1] = Cue(joined[-1].start_s, cue.end_s, f"{joined[-1].text} {cue.text}")
    return joined


def texts_behind(
    cues: Sequence[Cue], frame_times_s: Sequence[float], steps: int, *, zero_s: float, end_s: float
) -> tuple[tuple[str, ...], int]:
    """Texts behind each of the places in the prompt that hold a frame, or a pair of frames.

    Args:
        cues: In order, in the frames' time.
        frame_times_s: When the frames are shown, ascending, at least one.
        steps: Places that hold them, the same number of frames each but for the last.
        zero_s: The time that the model is told as 0.
        end_s: End of the video, for cues whose own end is open.

    Returns:
        A text for each place, empty where no cue is shown, and how many of the cues stand in any.
    """
    frames_per_step = -(-len(frame_times_s) // steps)
    texts: list[str] = []
    shown: set[int] = set()
    for step in range(steps):
        times_s = frame_times_s[step * frames_per_step : (step + 1) * frames_per_step]
        here = [n for n, cue in enumerate(cues) if any(cue.start_s <= time_s <= cue.end_s for time_s in times_s)]
        shown.update(here)
        lines = [_line(cues[n], zero_s, end_s) for n in here]
        texts.append("\n".join([HEADING, *lines]) if lines else "")
    return tuple(texts), len(shown)


def _line(cue: Cue, zero_s: float, end_s: float) -> str:
    return f"{max(0.0, cue.start_s - zero_s):.1f} - {min(cue.end_s, end_s) - zero_s:.1f} {cue.text}"
