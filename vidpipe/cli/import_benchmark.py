"""`vidpipe import`: a benchmark's published file to a manifest and a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidpipe.wording import counted

SHOWN = 5


def import_benchmark(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="For example vsi.")],
    src: Annotated[Path, typer.Option("--src", metavar="FILE|DIR", help="The published file, or a folder of files.")],
    media_root: Annotated[Path, typer.Option("--media-root", metavar="DIR", help="Where the videos lie.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="For rows.jsonl and recipe.yaml.")],
    subset: Annotated[str | None, typer.Option(help="A published part of the file, such as debiased.")] = None,
    setting: Annotated[
        str | None, typer.Option(metavar="NAME", help="Published frames, pixels and prompt of a model, such as ov2.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Keep so many rows.")] = None,
    stratify: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --limit: keep every value of this column.")
    ] = None,
    subtitles: Annotated[bool, typer.Option("--subtitles", help="Give rows their subtitle files.")] = False,
    precut: Annotated[
        bool, typer.Option("--precut", help="The videos were cut to their questions' bounds beforehand.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Write DIR/rows.jsonl and DIR/recipe.yaml; reads and writes local files only."""
    from vidpipe.benchmarks.import_rows import Choice, import_rows
    from vidpipe.benchmarks.registry import get_importer
    from vidpipe.benchmarks.settings import get_setting
    from vidpipe.benchmarks.source import read_source
    from vidpipe.benchmarks.write import write_benchmark
    from vidpipe.cli.documents_of_scores import ImportDocument

    importer = get_importer(benchmark)
    published = get_setting(setting, benchmark) if setting else None
    source = read_source(src)
    choice = Choice(subset, limit, stratify, subtitles or bool(published and published.subtitles), precut)
    imported = import_rows(importer, source, media_root, choice)
    recipe = write_benchmark(output, importer, source, imported, media_root, subset, published)
    if as_json:
        document = ImportDocument(
            benchmark=benchmark,
            subset=subset,
            setting=setting,
            source=str(src),
            source_sha256=source.sha256,
            source_rows=imported.source_rows,
            rows=len(imported.rows),
            question_types=imported.question_types,
            missing_videos=list(imported.missing_videos),
            missing_subtitles=list(imported.missing_subtitles),
            recipe=str(recipe),
            profile=(published and published.scorer) or importer.profile,
        )
        typer.echo(document.model_dump_json())
        return
    typer.echo(
        f"{len(imported.rows)} of {counted(imported.source_rows, 'row')} of {src} (sha256 {source.sha256[:12]}...)"
    )
    for name, count in imported.question_types.items():
        typer.echo(f"  {count:6} {name}")
    for what, missing in (("videos", imported.missing_videos), ("subtitle files", imported.missing_subtitles)):
        if missing:
            typer.echo(f"{len(missing)} {what} are not under {media_root}; --json lists all:")
            for path in missing[:SHOWN]:
                typer.echo(f"  {path}")
    typer.echo(f"next: vidpipe run {recipe} --set model.path=... and then vidpipe score")
