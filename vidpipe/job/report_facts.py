"""The numbers of a report: counts, speed, idle causes, distributions, failures, versions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.benchmarks.speed import STAGES, read_speed
from vidpipe.job.early import read_early, seconds_that_came_true
from vidpipe.job.encoder_report import sentences
from vidpipe.job.feed_report import FeedReport
from vidpipe.job.predicted import NAMES, came_true, error_of, summed
from vidpipe.job.report_scores import Found
from vidpipe.job.tolerance import ENGINE_STATUSES, MEDIA_STATUSES
from vidpipe.record.run_dir import FEED_FILES, RunDir
from vidpipe.record.shards import read_predictions
from vidpipe.report.histogram import histogram
from vidpipe.report.page import Compared, Distribution, Failures, Process, number
from vidpipe.wording import counted

LEAST_ROWS = 3
"""In the first tenth of a run, for the seconds of all to be foretold from them: one or two say nothing of the others,
and what an engine does once is most of what they took."""
ENCODER_FILES = "encoder.*.json"
LEAST_S = 0.05
"""Of a part of a process's time that is shown."""


def headline(results: Path, expected: int, found: Found) -> list[tuple[str, str, str]]:
    """The large numbers at the top."""
    statuses = Counter(pq.read_table(results, columns=["status"])["status"].to_pylist())
    failed = sum(statuses[status] for status in MEDIA_STATUSES + ENGINE_STATUSES)
    total = statuses.total()
    shown = [(f"{total:,}", f"of {expected:,} rows", "" if total == expected else "bad")]
    shown.append((f"{statuses['ok'] + statuses['length']:,}", "answered", "good"))
    shown.append((f"{failed:,}", "failed", "bad" if failed else ""))
    if statuses["length"]:
        shown.append((f"{statuses['length']:,}", "cut by max_tokens", "bad"))
    for scores in found.tables:
        line = scores.lines[0]
        low_high = "" if line.interval is None else f", 95 % interval {line.interval[0]:.1f} to {line.interval[1]:.1f}"
        shown.append((f"{line.value:.1f} %", f"{scores.rules}{low_high}", ""))
    return shown


def speed(folder: Path, results: Path) -> list[tuple[str, str]]:
    """What rows cost on the mean."""
    found = read_speed(folder)
    if found.rows_per_s is None and not found.seconds:
        found = read_speed(results)
    shown = []
    if found.rows_per_s is not None:
        shown.append(("rows a second of one process, engine up", number(found.rows_per_s)))
    if found.elapsed_s is not None:
        shown.append(("all processes together", f"{number(found.elapsed_s)} s"))
    means = ((stage, found.seconds.get(stage)) for stage in STAGES)
    shown += [(f"{stage}, mean of a row", f"{seconds:.3f} s") for stage, seconds in means if seconds is not None]
    tokens = (
        ("tokens in", found.tokens_in),
        ("tokens out", found.tokens_out),
        ("vision tokens, by the rules", found.vision_asked),
        ("vision tokens, kept", found.vision_kept),
    )
    shown += [(f"{name}, mean of a row", number(round(value, 1))) for name, value in tokens if value is not None]
    reports = [report for path in sorted(folder.glob(ENCODER_FILES)) for report in _json(path)]
    return shown + [tuple(line.split(": ", 1)) if ": " in line else ("encoder", line) for line in sentences(reports)]  # type: ignore[misc]


def processes(folder: Path) -> list[Process]:
    """How each process spent its engine's time."""
    found = []
    for path in sorted(folder.glob(FEED_FILES)):
        report = FeedReport(**_json(path))
        parts = [("at work", report.engine_s), *report.idle_s.items()]
        found.append(Process(report.wall_s, [(name, s) for name, s in parts if s >= LEAST_S], report.sentence()))
    return found


def compared(run_dir: RunDir, results: Path, rows: int) -> list[Compared]:
    """What was predicted, beside what came true, of a run that is complete."""
    predicted, true = summed(read_predictions(run_dir)), came_true(results, rows)
    if true is None:
        return []
    found = []
    for name, value in predicted.items():
        if name in true:
            found.append(Compared(NAMES[name], f"{value:,}", f"{true[name]:,}", _error(value, true[name])))
    return found + _times(run_dir, results)


def _times(run_dir: RunDir, results: Path) -> list[Compared]:
    """Seconds that the first tenth of the run foretold, beside what all of it took."""
    early, true = read_early(run_dir), seconds_that_came_true(run_dir, results)
    if early is None or true is None:
        return []
    if early.rows < LEAST_ROWS:
        why = f"{counted(early.rows, 'row')}, the first tenth of the run, tell too little of the others"
        return [Compared(f"seconds of decoding and of engines are not compared: {why}", "", "", "")]
    decode = f"core-seconds of decoding (foretold from the first {early.clips:,} clips)"
    engine = f"seconds of engines at work (foretold from {early.rows:,} rows)"
    wanted = ((decode, early.decode_core_s, true[0]), (engine, early.engine_s, true[1]))
    return [
        Compared(name, f"{foretold:,.2f}", f"{came:,.2f}", _error(foretold, came))
        for name, foretold, came in wanted
        if foretold is not None
    ]


def _error(predicted: float, true: float) -> str:
    error = error_of(predicted, true)
    return "" if error is None else "none" if error == 0 else f"{error:+.1%}"


def distributions(results: Path) -> list[Distribution]:
    """Histograms over rows."""
    table = pq.read_table(results, columns=["frames", "tokens_in", "tokens_out", "seconds"]).flatten()
    wanted = (
        ("frames a row", "frames", "frames.count"),
        ("prompt tokens a row", "tokens", "tokens_in"),
        ("answer tokens a row", "tokens", "tokens_out"),
        ("seconds in the engine a row", "s", "seconds.engine"),
        ("seconds of decoding a clip", "s", "seconds.decode"),
    )
    found = []
    for name, unit, column in wanted:
        bins = histogram(pc.drop_null(table[column]).to_pylist())
        if bins is not None:
            found.append(Distribution(name, unit, bins))
    return found


def failures(results: Path, advice: Mapping[str, str]) -> list[Failures]:
    """Failed rows by kind, most first."""
    table = pq.read_table(results, columns=["error_kind", "error"])
    table = table.filter(pc.is_valid(table["error_kind"]))
    counts = Counter(table["error_kind"].to_pylist())
    first: dict[str, str] = {}
    for kind, error in zip(table["error_kind"].to_pylist(), table["error"].to_pylist(), strict=True):
        first.setdefault(kind, error or "")
    return [Failures(kind, count, first[kind][:2000], advice.get(kind)) for kind, count in counts.most_common()]


def facts(run: Mapping[str, Any], folder: Path) -> list[tuple[str, str]]:
    """What made the run."""
    recipe = run["recipe"]
    shown = [
        ("run directory", str(folder.resolve())),
        ("begun", str(run["started"])),
        ("model", f"{recipe['model']['path']} ({run['family']})"),
        ("engine", str(run["engine"])),
        ("manifest", f"{run['manifest']['path']}, {run['manifest']['rows']:,} rows"),
        ("vidpipe", f"{run['vidpipe']}, {run['git'] or 'no git revision'}"),
    ]
    for section in ("sampling", "pruning", "generation"):
        values = {key: value for key, value in (recipe.get(section) or {}).items() if value not in (None, [])}
        if values:
            shown.append((section, ", ".join(f"{key} {value}" for key, value in values.items())))
    shown += [(name, version) for name, version in run["versions"].items() if name != "vidpipe"]
    return shown + [(name, value) for name, value in run["environment"].items()]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
