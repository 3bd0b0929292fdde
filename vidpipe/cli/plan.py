"""`vidpipe plan`: what a run would cost, before it starts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vidpipe.cli.documents_of_plans import PlanDocument
    from vidpipe.job.forecast import Forecast

MOST_NAMED = 5
"""Rows that are named where many are meant; all are in the JSON."""


def plan(
    target: Annotated[Path, typer.Argument(metavar="RECIPE|FOLDER|FILE", help="A recipe, a manifest, or clips.")],
    prompt: Annotated[str | None, typer.Option("-p", "--prompt", help="As for run.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for run.")] = None,
    like: Annotated[
        Path | None, typer.Option("--like", metavar="RUN_DIR", help="A finished run whose engine was as fast.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Say what a run would do and cost, from the files' headers: clips, frames, tokens, faults, time, what to change.

    A few clips are decoded, for ten seconds at the most, to tell how long all of them take. What headers say is cached;
    VIDPIPE_NO_CACHE=1 turns that off. Exit codes: 0 planned (faulty rows and files are listed, they cost themselves
    only); 2 wrong recipe, manifest or arguments.
    """
    from vidpipe.cli.advice import ADVICE
    from vidpipe.cli.recipe_options import recipe_from
    from vidpipe.job.earlier import seconds_per_token
    from vidpipe.job.forecast import forecast
    from vidpipe.job.prospect import look_ahead

    s_per_token = None if like is None else seconds_per_token(like)
    found = forecast(look_ahead(recipe_from(target, prompt, assignments or [])), ADVICE, s_per_token)
    if as_json:
        typer.echo(_document(found).model_dump_json())
    else:
        _print(found)


def _document(found: Forecast) -> PlanDocument:
    from vidpipe.cli.documents_of_plans import (
        DecodeDocument,
        EngineWorkDocument,
        PlanDocument,
        RowForecastDocument,
        UnreadableDocument,
        graphs_document,
    )

    return PlanDocument(
        rows=found.rows,
        bad_rows=found.bad_rows,
        clips=found.clips,
        video_hours=found.video_s / 3600,
        frames=found.frames,
        vision_tokens=found.vision_tokens,
        kept_tokens=found.kept_tokens,
        prompt_vision_tokens=found.prompt_vision_tokens,
        unknown_clips=found.unknown_clips,
        context=found.context,
        predicted=[RowForecastDocument(**asdict(row)) for row in found.row_forecasts],
        no_prompt_tokens=found.no_prompt_tokens,
        over_long=found.over_long,
        unreadable=[
            UnreadableDocument(kind=kind, clips=group.clips, rows=group.rows, example=group.example)
            for kind, group in found.unreadable.items()
        ],
        media_bytes_per_clip=found.media_bytes_per_clip,
        results_bytes=found.results_bytes,
        decode=None if found.decode is None else DecodeDocument(**asdict(found.decode)),
        engine=None if found.engine is None else EngineWorkDocument(**asdict(found.engine)),
        shards=len(found.rows_per_shard),
        rows_per_shard=found.rows_per_shard,
        encoder_graphs=graphs_document(found.graphs),
        no_encoder_graphs=found.no_graphs,
        advice=found.advice,
    )


def _print(found: Forecast) -> None:
    typer.echo(
        f"{counted(found.rows, 'row')} on {counted(found.clips, 'clip')} ({_hours(found.video_s)} of video), "
        f"{counted(len(found.rows_per_shard), 'shard')}"
    )
    typer.echo(
        f"{found.frames} frames, {found.vision_tokens} vision tokens{_kept(found)} (each clip once; "
        f"{found.prompt_vision_tokens} over all prompts), at most {found.media_bytes_per_clip / 2**20:.1f} MiB a clip"
    )
    _histogram("frames a row", (row.frames for row in found.row_forecasts))
    prompts = (row.prompt_tokens for row in found.row_forecasts)
    _histogram("prompt tokens a row", (tokens for tokens in prompts if tokens is not None))
    if found.no_prompt_tokens:
        rows = sum(row.prompt_tokens is None for row in found.row_forecasts)
        typer.echo(f"prompts of {counted(rows, 'row')} are not counted: {found.no_prompt_tokens}")
    if found.unknown_clips:
        typer.echo(f"{counted(found.unknown_clips, 'clip')} whose header does not say how many frames they have")
    if found.bad_rows:
        typer.echo(f"{counted(found.bad_rows, 'row')} cannot run for wrong values; `vidpipe check` lists them")
    if found.over_long:
        tokens = {row.id: row.prompt_tokens or row.kept_tokens for row in found.row_forecasts}
        some = ", ".join(f"{row_id} ({tokens[row_id]})" for row_id in found.over_long[:MOST_NAMED])
        typer.echo(
            f"{counted(len(found.over_long), 'row is', 'rows are')} longer than the context of "
            f"{found.context} tokens: {some}"
        )
    for kind, group in found.unreadable.items():
        typer.echo(
            f"{counted(group.clips, 'clip')} ({counted(group.rows, 'row')}) {kind}, for example: {group.example}"
        )
    typer.echo(_graphs(found))
    if found.decode is not None:
        typer.echo(
            f"decoding: {found.decode.core_s:.1f} core-seconds, from {counted(found.decode.clips, 'clip')} decoded here"
        )
    if found.engine is not None:
        typer.echo(_engine(found))
    typer.echo(f"results: {found.results_bytes / 1e6:.2f} MB of Parquet and the answers")
    for line in found.advice:
        typer.echo(f"to do: {line}")


def _histogram(name: str, values: Iterable[int]) -> None:
    from vidpipe.report.histogram import histogram

    bins = histogram(values)
    if bins is not None:
        ends = f"{bins.low:g} {bins.line()} {bins.high:g}"
        typer.echo(f"{name + ':':21} {ends}, median {bins.median:g}, most {bins.most:g}")


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds:.0f} seconds"


def _engine(found: Forecast) -> str:
    assert found.engine is not None
    work = found.engine
    took = (
        "--like RUN_DIR tells how long that takes"
        if work.seconds is None
        else f"about {work.seconds:.0f} s at the earlier run's speed"
    )
    return (
        f"engine: {work.encoder_flops / 1e12:.4g} TFLOP for videos and {work.prompt_flops / 1e12:.4g} for prompts, "
        f"each clip once, answers left out; {took}"
    )


def _graphs(found: Forecast) -> str:
    if found.graphs is None:
        return f"encoder graphs: none; {found.no_graphs}"
    here = f" ({found.no_graphs})" if found.no_graphs else ""
    proposal, graphs = found.graphs, found.graphs.graphs
    if not graphs.graphs:
        return f"encoder graphs: none; they would save no time for these clips{here}"
    budgets = ", ".join(str(graph.tokens) for graph in graphs.graphs)
    return (
        f"encoder graphs of {budgets} tokens, {graphs.max_items} videos and {graphs.graphs[-1].sequences} attention "
        f"sequences{here}: {proposal.padding.share:.1%} padding (vLLM's own budgets: "
        f"{proposal.default_padding.share:.1%}), about {proposal.memory_bytes / 2**30:.2f} GiB, for "
        f"{proposal.padding.in_graphs:.0%} of the expected work"
    )


def _kept(found: Forecast) -> str:
    return "" if found.kept_tokens == found.vision_tokens else f", of which pruning keeps {found.kept_tokens}"
