"""`vidpipe report`: a run as one page that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidpipe.wording import counted


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run directory.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="The page [RUN_DIR/report.html].")
    ] = None,
    rows: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Rows on it: failed ones, then wrong answers, then the others."),
    ] = 5000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Write a static page: scores, speed, failures, and each row with the frames and the prompt that the model saw.

    At any time, also while the run goes on. The page asks no network for anything and is below 25 MB.
    """
    from vidpipe.cli.advice import ADVICE
    from vidpipe.cli.documents import ReportDocument
    from vidpipe.job.report import write_report
    from vidpipe.record.run_dir import RunDir

    made = write_report(run_dir, output or RunDir(run_dir).report_file, rows, ADVICE)
    if as_json:
        document = ReportDocument(
            path=str(made.path),
            rows=made.rows,
            of_rows=made.of_rows,
            clips_with_pictures=made.clips,
            bytes=made.bytes,
            notes=list(made.notes),
        )
        typer.echo(document.model_dump_json())
        return
    for note in made.notes:
        typer.echo(note, err=True)
    typer.echo(f"report: {made.path} ({counted(made.rows, 'row')}, {made.bytes / 1e6:.1f} MB)")
