"""How long decoding and the engine will take in all, foretold from the first tenth of a run.

A run could know it before only by decoding clips twice, and by an engine that is up. What its first process sees is
kept (`early.json`), and compared with what came true when the run is complete: the ratio estimator of `calibrate`,
by decoded pixels for decoding and by vision tokens for the engine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.job.feed_report import FeedReport
from vidpipe.record.disk import read_mark, set_mark
from vidpipe.record.run_dir import FEED_FILES, RunDir

SHARE, MOST_CLIPS, MOST_ROWS = 0.1, 12, 100
"""Foretold from this share of clips and rows, but from no more than so many."""


@dataclass(frozen=True)
class Early:
    """Seconds of all processes together; None where nothing tells."""

    decode_core_s: float | None
    engine_s: float | None
    clips: int
    """That decoding is foretold from."""
    rows: int
    """That the engine's time is foretold from."""


@dataclass(frozen=True)
class Sight:
    """What one process has done by now."""

    clips: int
    decoded_pixels: int
    decode_core_s: float
    rows: int
    vision_tokens: int
    engine_s: float
    """In which the engine had work."""


class Foreteller:
    """Waits for the first tenth of a run. Pure.

    Args:
        planned: What the plan predicts (`predicted.predict`), of all its files together.
        rows: Rows of the plan.
    """

    def __init__(self, planned: Mapping[str, int], rows: int) -> None:
        self._planned, self._rows = planned, rows
        self._clips_needed = min(MOST_CLIPS, math.ceil(SHARE * planned.get("clips", 0)))
        self._rows_needed = min(MOST_ROWS, math.ceil(SHARE * rows))
        self._clips: Sight | None = None
        self._first: Sight | None = None
        self.told = not planned.get("clips")
        """Whether there is nothing to wait for any more."""

    def see(self, sight: Sight) -> Early | None:
        """The forecast, once, when there is enough to tell; to be called at each row.

        The engine's time counts from its first row to its so many-th: rows are in it side by side, and both ends have
        about as many that are not finished.
        """
        if self.told or not sight.rows:
            return None
        if self._clips is None and sight.clips >= self._clips_needed:
            self._clips = sight
        if self._first is None:
            self._first = sight
        rows = sight.rows - self._first.rows
        if self._clips is None or rows < self._rows_needed:
            return None
        self.told = True
        decode = _scaled(self._clips.decode_core_s, self._clips.decoded_pixels, self._planned.get("decoded_pixels", 0))
        engine_s, tokens = sight.engine_s - self._first.engine_s, sight.vision_tokens - self._first.vision_tokens
        if self._planned.get("vision_tokens"):
            engine = _scaled(engine_s, tokens, self._planned["vision_tokens"])
        else:
            engine = _scaled(engine_s, rows, self._rows)  # texts only
        return Early(decode, engine, self._clips.clips, rows)


def _scaled(seconds: float, part: int, whole: int) -> float | None:
    return seconds * whole / part if part and whole and seconds > 0 else None


def keep_early(run_dir: RunDir, early: Early) -> None:
    """Store a forecast; the first process's stays."""
    set_mark(run_dir.early_file, asdict(early), durable=False)


def read_early(run_dir: RunDir) -> Early | None:
    """What `keep_early` stored."""
    stored = read_mark(run_dir.early_file)
    return None if stored is None else Early(**stored)


def seconds_that_came_true(run_dir: RunDir, results: Path) -> tuple[float, float] | None:
    """Core-seconds of decoding and seconds of the engines at work.

    None where a process was killed before it could say: its share is not known.
    """
    feeds = [FeedReport(**json.loads(path.read_text())) for path in sorted(run_dir.path.glob(FEED_FILES))]
    answered = pc.count(pq.read_table(results, columns=["tokens_in"])["tokens_in"]).as_py()
    decode = [feed.decode_core_s for feed in feeds if feed.decode_core_s is not None]
    if not feeds or len(decode) < len(feeds) or sum(feed.rows for feed in feeds) < answered:
        return None
    return sum(decode), sum(feed.engine_s for feed in feeds)
