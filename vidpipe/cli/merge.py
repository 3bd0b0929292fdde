"""`vidpipe merge`: the rows of run directories in one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidpipe.wording import counted


def merge(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Run directories.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.parquet", help="The merged file.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Merge at any time, also while runs go on; a file with rows missing is marked partial."""
    from vidpipe.cli.documents import MergeDocument
    from vidpipe.record.merge import merge as merge_runs

    merged = merge_runs(run_dirs, output)
    if as_json:
        document = MergeDocument(
            rows=merged.rows,
            expected=merged.expected,
            partial=merged.partial,
            missing=list(merged.missing),
            path=str(merged.path),
        )
        typer.echo(document.model_dump_json())
    else:
        state = f"partial, missing for example {', '.join(merged.missing)}" if merged.partial else "complete"
        typer.echo(f"{merged.rows} of {counted(merged.expected, 'row')} in {merged.path} ({state})")
