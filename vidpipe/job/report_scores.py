"""Scores for a report: by the profiles that rows or recipe name, else by plain equality of text and answer."""

from __future__ import annotations

from dataclasses import dataclass

from vidpipe.benchmarks.predictions import Predictions
from vidpipe.benchmarks.reasoning import strip_reasoning
from vidpipe.benchmarks.registry import get_profile
from vidpipe.benchmarks.score import Line, ScoredRows, Table, make_table
from vidpipe.benchmarks.select import rows_by_profile
from vidpipe.errors import VidpipeError
from vidpipe.job.report_rows import Judged
from vidpipe.report.page import ScoreLine, Scores


@dataclass(frozen=True)
class Found:
    """Scores of a run."""

    tables: tuple[Scores, ...]
    judged: dict[str, Judged]
    """By row id."""
    none_because: str | None


def scores_of(predictions: Predictions) -> Found:
    """Score a run's rows."""
    named = any(row.scorer or predictions.scoring.scorer for row in predictions.rows)
    answers = any(row.question.answer is not None for row in predictions.rows)
    if not answers:
        return Found((), {}, "No row has an answer to compare with.")
    prepare = strip_reasoning if predictions.scoring.strip_reasoning else None
    try:
        chosen = (
            [(get_profile(name), rows) for name, rows in rows_by_profile(predictions, []).items()]
            if named
            else [(get_profile("exact"), predictions.rows)]
        )
        made = [make_table(predictions, rows, profile, prepare) for profile, rows in chosen]
    except VidpipeError as error:
        return Found((), {}, f"Not scored: {error}")
    judged: dict[str, Judged] = {}
    for table, found in made:
        judged |= _judged(table, found)
    return Found(tuple(_scores(table, predictions.missing) for table, _ in made), judged, None)


def _judged(table: Table, found: ScoredRows) -> dict[str, Judged]:
    return {
        row.id: Judged(scored.score, table.profile.name) for row, scored in zip(found.rows, found.scored, strict=True)
    }


def _scores(table: Table, missing: int | None) -> Scores:
    lines = [_line(table.headline, table.headline.name, 0)]
    lines += [_line(line, line.name, 1) for line in table.groups or table.types]
    grouped = {line.name for line in table.groups}
    lines += [_line(line, line.name, 2) for line in table.types if table.groups and line.name not in grouped]
    lines += [_line(line, f"{name} = {line.name}", 1) for name, parts in table.breakdowns.items() for line in parts]
    whole = table.headline
    counts = {
        "replies without a readable answer (wrong)": whole.unparsed,
        "failed rows (wrong)": whole.failed,
        "rows missing": missing or 0,
        "rows without an answer to compare with": table.unscored,
        "replies cut by max_tokens": table.cut,
    }
    notes = [f"{count:,} {what}" for what, count in counts.items() if count]
    if table.partial:
        notes.insert(0, "PARTIAL: rows or question types are missing, so this is no result of the benchmark")
    return Scores(f"{table.profile.name} version {table.profile.version}", table.profile.source, lines, notes)


def _line(line: Line, name: str, depth: int) -> ScoreLine:
    found = line.estimate
    interval = None if found.interval is None else (100 * found.interval[0], 100 * found.interval[1])
    return ScoreLine(name, 100 * found.value, interval, found.rows, found.clips, depth)
