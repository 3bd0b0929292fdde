"""`vidpipe plan`: what a run would cost, before it starts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vidpipe.job.forecast import Forecast, OverLong


def plan(
    target: Annotated[Path, typer.Argument(metavar="RECIPE|FOLDER|FILE", help="A recipe, a manifest, or clips.")],
    prompt: Annotated[str | None, typer.Option("-p", "--prompt", help="As for run.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Say what a run would do, from the files' headers only: clips, frames, tokens, faults, shards.

    Exit codes: 0 planned (faulty rows and files are listed, they cost themselves only); 2
    wrong recipe, manifest or arguments.
    """
    from vidpipe.cli.documents import OverLongDocument, PlanDocument, UnreadableDocument, graphs_document
    from vidpipe.cli.recipe_options import recipe_from
    from vidpipe.job.forecast import forecast
    from vidpipe.job.prospect import look_ahead

    found = forecast(look_ahead(recipe_from(target, prompt, assignments or [])))
    if as_json:
        document = PlanDocument(
            rows=found.rows,
            bad_rows=found.bad_rows,
            clips=found.clips,
            frames=found.frames,
            vision_tokens=found.vision_tokens,
            kept_tokens=found.kept_tokens,
            prompt_vision_tokens=found.prompt_vision_tokens,
            unknown_clips=found.unknown_clips,
            context=found.context,
            over_long=[OverLongDocument(id=i, **asdict(tokens)) for i, tokens in found.over_long.items()],
            unreadable=[
                UnreadableDocument(kind=kind, clips=group.clips, rows=group.rows, example=group.example)
                for kind, group in found.unreadable.items()
            ],
            media_bytes_per_clip=found.media_bytes_per_clip,
            shards=len(found.rows_per_shard),
            rows_per_shard=found.rows_per_shard,
            encoder_graphs=graphs_document(found.graphs),
            no_encoder_graphs=found.no_graphs,
        )
        typer.echo(document.model_dump_json())
        return
    typer.echo(f"{found.rows} rows on {found.clips} clips, {len(found.rows_per_shard)} shards")
    typer.echo(
        f"{found.frames} frames, {found.vision_tokens} vision tokens{_kept(found)} (each clip once; "
        f"{found.prompt_vision_tokens} over all prompts), at most {found.media_bytes_per_clip / 2**20:.1f} MiB a clip"
    )
    if found.unknown_clips:
        typer.echo(f"{found.unknown_clips} clips whose header does not say how many frames they have")
    if found.bad_rows:
        typer.echo(f"{found.bad_rows} rows cannot run for their own values; `vidpipe check` lists them")
    if found.over_long:
        some = ", ".join(_named(*item) for item in list(found.over_long.items())[:5])
        typer.echo(f"{len(found.over_long)} rows are longer than the context of {found.context} tokens: {some}")
    typer.echo(_graphs(found))
    for kind, group in found.unreadable.items():
        typer.echo(f"{group.clips} clips ({group.rows} rows) {kind}, for example: {group.example}")


def _named(row_id: str, tokens: OverLong) -> str:
    text = f" + {tokens.text_tokens} text" if tokens.text_tokens else ""
    return f"{row_id} ({tokens.vision_tokens} vision{text})"


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
