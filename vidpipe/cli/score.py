"""`vidpipe score`: scores of a run or a file of predictions, without an engine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from vidpipe.benchmarks.score import Line, ScoredRows, Table
    from vidpipe.cli.documents_of_scores import ScoreLine, TableDocument

ONE_POINT = 0.01


def score(
    source: Annotated[Path, typer.Argument(metavar="RUN_DIR|FILE", help="A run, a .parquet, or a .jsonl.")],
    profiles: Annotated[
        list[str] | None,
        typer.Option("--profile", metavar="NAME", help="Rules, such as vsi.official; else what rows or recipe name."),
    ] = None,
    strip_reasoning: Annotated[
        bool, typer.Option("--strip-reasoning", help="Take tagged reasoning out of replies first.")
    ] = False,
    bootstrap: Annotated[bool, typer.Option("--bootstrap", help="Also an interval by resampling clips.")] = False,
    judge: Annotated[
        Path | None, typer.Option("--judge", metavar="FILE.jsonl", help="A judge model's replies: id, text.")
    ] = None,
    rows_file: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE.jsonl", help="Write what each row scored.")
    ] = None,
    submission: Annotated[
        Path | None,
        typer.Option("--submission", metavar="FILE.json", help="Write answers for the benchmark's own server."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Score replies by named rules: every row counts, unreadable and failed ones as wrong."""
    from vidpipe.benchmarks.judgements import with_judgements
    from vidpipe.benchmarks.load import load_predictions
    from vidpipe.benchmarks.reasoning import strip_reasoning as strip
    from vidpipe.benchmarks.registry import get_profile
    from vidpipe.benchmarks.score import make_table
    from vidpipe.benchmarks.select import rows_by_profile
    from vidpipe.benchmarks.submission import write_submission
    from vidpipe.cli.documents_of_scores import ScoreDocument

    predictions = load_predictions(source, profiles[0].partition(".")[0] if profiles else None)
    if judge is not None:
        predictions = with_judgements(predictions, judge)
    prepare = strip if strip_reasoning or predictions.scoring.strip_reasoning else None
    chosen = [(get_profile(name), rows) for name, rows in rows_by_profile(predictions, profiles or []).items()]
    if submission is not None:
        written, empty = write_submission(submission, chosen, prepare)
        typer.echo(f"{submission}: {written} answers, {empty} of them null; nothing was sent", err=True)
        if not any(row.question.answer is not None for row in predictions.rows):
            chosen = []  # labels are hidden: the file is all that there is to make
    made = [make_table(predictions, rows, profile, prepare, bootstrap) for profile, rows in chosen]
    if rows_file is not None:
        with rows_file.open("w", encoding="utf-8") as file:
            for table, found in made:
                file.writelines(_row_lines(table, found, prepare))
    document = ScoreDocument(
        source=str(source),
        rows=len(predictions.rows),
        missing=predictions.missing,
        strip_reasoning=prepare is not None,
        asked=dict(predictions.asked),
        judge=None if judge is None else str(judge),
        tables=[_table(table) for table, _ in made],
    )
    if as_json:
        typer.echo(document.model_dump_json())
        return
    if document.asked:
        typer.echo("asked: " + ", ".join(f"{name} {_told(value)}" for name, value in document.asked.items()))
    if prepare:
        typer.echo("tagged reasoning was taken out of replies first")
    for shown in document.tables:
        _print(shown, document.missing)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _row_lines(table: Table, found: ScoredRows, prepare: Callable[[str], str] | None) -> list[str]:
    profile = f"{table.profile.name}@{table.profile.version}"
    return [
        json.dumps(
            {
                "id": row.id,
                "profile": profile,
                "text": row.text,
                "stripped": prepare(row.text) if prepare and row.text is not None else None,
                "extracted": _storable(scored.extracted),
                "parsed": scored.parsed,
                "answer": row.question.answer,
                "score": scored.score,
            }
        )
        + "\n"
        for row, scored in zip(found.rows, found.scored, strict=True)
    ]


def _storable(value: Any) -> Any:
    """The value; as text where JSON has no number for it: the official rules read `nan` as one."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def percent(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """An interval in percent."""
    return None if interval is None else (100 * interval[0], 100 * interval[1])


def _line(line: Line) -> ScoreLine:
    from vidpipe.cli.documents_of_scores import ScoreLine

    found = line.estimate
    return ScoreLine(
        name=line.name,
        score=100 * found.value,
        rows=found.rows,
        clips=found.clips,
        stderr=None if found.stderr is None else 100 * found.stderr,
        interval_95=percent(found.interval),
        unparsed=line.unparsed,
        format_failures=100 * line.unparsed / found.rows,
        failed=line.failed,
    )


def _table(table: Table) -> TableDocument:
    from vidpipe.benchmarks.uncertainty import clips_to_see
    from vidpipe.cli.documents_of_scores import TableDocument

    return TableDocument(
        profile=table.profile.name,
        version=table.profile.version,
        rules=table.profile.source,
        scale="percent",
        unit="sets" if table.profile.sets else "rows",
        partial=table.partial,
        missing_types=list(table.missing_types),
        unscored=table.unscored,
        cut=table.cut,
        cut_reasoning=table.cut_reasoning,
        incomplete_sets=table.incomplete_sets,
        overall=_line(table.headline),
        clips_for_one_point=clips_to_see(ONE_POINT, table.headline.estimate),
        bootstrap_95=percent(table.bootstrap_95),
        groups=[_line(line) for line in table.groups],
        types=[_line(line) for line in table.types],
        breakdowns={name: [_line(line) for line in lines] for name, lines in table.breakdowns.items()},
    )


def _print(table: TableDocument, missing: int | None) -> None:
    mark = "PARTIAL " if table.partial else ""
    typer.echo(f"{table.profile} version {table.version}, percent, 95 % intervals over clips")
    typer.echo(f"{mark + 'overall':36} {_numbers(table.overall)}")
    if table.bootstrap_95:
        low, high = table.bootstrap_95
        typer.echo(f"{'':36} [{low:.2f}, {high:.2f}] by resampling clips")
    for line in table.groups or table.types:
        typer.echo(f"  {line.name:34} {_numbers(line)}")
    if table.groups:
        grouped = {line.name for line in table.groups}
        for line in table.types:
            if line.name not in grouped:
                typer.echo(f"    {line.name:32} {_numbers(line)}")
    for name, lines in table.breakdowns.items():
        for line in lines:
            typer.echo(f"  {name + '=' + line.name:34} {_numbers(line)}")
    whole = table.overall
    notes = {
        f"unparsed (wrong; format failures {whole.format_failures:.2f} %)": whole.unparsed,
        "failed (wrong)": whole.failed,
        "missing": missing,
        "without an answer": table.unscored,
        "cut by max_tokens": table.cut,
    }
    typer.echo(
        f"{counted(whole.rows, table.unit[:-1])}: "
        + ", ".join(f"{count} {name}" for name, count in notes.items() if count is not None)
    )
    if table.clips_for_one_point is not None:
        typer.echo(
            f"a paired comparison sees one point with about {counted(table.clips_for_one_point, 'clip')} (power 80 %)"
        )
    if table.cut_reasoning:
        typer.echo(
            f"{counted(table.cut_reasoning, 'reply ends', 'replies end')} inside their reasoning: raise "
            "generation.max_tokens, then score with --strip-reasoning"
        )
    if table.missing_types:
        typer.echo(f"no rows of: {', '.join(table.missing_types)}")
    if table.incomplete_sets:
        typer.echo(f"{table.incomplete_sets} sets have rows missing and are left out")
    if table.partial:
        typer.echo("PARTIAL: rows or question types are missing, so this is no result of the benchmark")


def _numbers(line: ScoreLine) -> str:
    interval = "[one clip]" if line.interval_95 is None else "[{:.2f}, {:.2f}]".format(*line.interval_95)
    return f"{line.score:6.2f} {interval:16} {counted(line.rows, 'row')}, {counted(line.clips, 'clip')}"
