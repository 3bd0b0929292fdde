"""Subtitle files as cues: SubRip, WebVTT, and the JSON forms that benchmarks publish."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidpipe.errors import MediaError
from vidpipe.video.container import PathLike, check_file, display_name

_CLOCK = r"(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:[.,]\d+)?)"
_TIMING = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}")
_MARKUP = re.compile(r"</?(?:b|i|u|s|c|v|font|lang|ruby|rt)\b[^>]*>|</?\d[\d:.]*>|\{\\[^}]*\}", re.IGNORECASE)
_STARTS, _ENDS, _TEXTS = ("start", "start_time"), ("end", "end_time"), ("text", "line")


@dataclass(frozen=True)
class Cue:
    """A text and when it is shown."""

    start_s: float
    end_s: float
    """Infinite where the file leaves it open."""
    text: str
    """Without markup, on one line."""


def read_cues(path: PathLike) -> list[Cue]:
    """Return the cues of a subtitle file, by their start; the ending of its name says which form it has.

    `.srt` and `.vtt`; `.json`, a list of objects, and `.jsonl`, an object a line, with
    `text` (or `line`) and `start`, `end` (or `start_time`, `end_time`, or
    `timestamp: [start, end]`) as seconds or as `00:00:01.5`. MediaError as of
    `check_file`, or `not_media` for a file that is none of these.
    """
    check_file(path)
    name = display_name(path)
    try:
        text = Path(os.fsdecode(path)).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MediaError("not_media", f"{name}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise MediaError("not_openable", f"{name}: {error.strerror}; check the file's rights") from None
    suffix = Path(name).suffix.lower()
    try:
        if suffix in (".srt", ".vtt"):
            cues = list(_timed_text(text))
        elif suffix == ".json":
            cues = [_from_object(item) for item in json.loads(text)]
        elif suffix == ".jsonl":
            cues = [_from_object(json.loads(line)) for line in text.split("\n") if line.strip()]
        else:
            raise ValueError("the ending must be .srt, .vtt, .json or .jsonl")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MediaError("not_media", f"{name}: is no subtitle file that can be read: {error}") from None
    if not cues:
        raise MediaError("not_media", f"{name}: holds no cue; leave `subtitles` out for a video without any")
    return sorted((cue for cue in cues if cue.text), key=lambda cue: (cue.start_s, cue.end_s))


def _timed_text(text: str) -> Iterator[Cue]:
    """Cues of SubRip and WebVTT: a line with two times, and the lines behind it up to an empty one."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines):
        if (timing := _TIMING.match(line)) is None:
            continue
        shown: list[str] = []
        for following, next_one in zip(lines[number + 1 :], [*lines[number + 2 :], ""], strict=True):
            if not following.strip() or (following.strip().isdigit() and _TIMING.match(next_one)):
                break
            shown.append(following)
        groups = timing.groups()
        yield Cue(_seconds(groups[:3]), _seconds(groups[3:]), _plain(" ".join(shown)))


def _from_object(item: Any) -> Cue:
    if not isinstance(item, dict):
        raise ValueError(f"a cue must be an object, found {item!r}")
    start, end = item["timestamp"] if "timestamp" in item else (_first(item, _STARTS), _first(item, _ENDS))
    return Cue(_time(start), math.inf if end is None else _time(end), _plain(str(_first(item, _TEXTS))))


def _first(item: dict[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in item:
            return item[name]
    raise ValueError(f"a cue has none of {', '.join(names)}: {str(item)[:200]}")


def _time(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    match = re.fullmatch(_CLOCK, value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is no time; write seconds, or 00:00:01.5")
    return _seconds(match.groups())


def _seconds(clock: tuple[str | None, ...]) -> float:
    hours, minutes, seconds = clock
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float((seconds or "0").replace(",", "."))


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())
