"""What a run would do, from the headers of its files: no decoding, no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidpipe.engine.text_tokens import TextTokens
from vidpipe.errors import MediaError
from vidpipe.job.budget import ByteBudget
from vidpipe.job.decoders import Decoders, default_workers
from vidpipe.job.encoder_plan import proposal_for
from vidpipe.job.encoder_possible import why_no_graphs, why_no_graphs_here
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect
from vidpipe.job.sharding import cut_rows, look_at
from vidpipe.plan.graph_proposal import Proposal
from vidpipe.pruning.counts import POSITION_FACTOR


@dataclass
class Unreadable:
    """Clips that fail with one kind of error."""

    example: str
    clips: int = 0
    rows: int = 0


@dataclass(frozen=True)
class OverLong:
    """A row whose prompt does not fit into the context."""

    vision_tokens: int
    """Those that would stand in the prompt."""
    text_tokens: int
    """Of its texts; 0 if the vision tokens alone are too many."""


@dataclass
class Forecast:
    """See `vidpipe plan --json` (`cli.documents.PlanDocument`) for what the fields mean."""

    rows: int
    bad_rows: int
    clips: int
    context: int | None
    frames: int = 0
    vision_tokens: int = 0
    kept_tokens: int = 0
    prompt_vision_tokens: int = 0
    unknown_clips: int = 0
    media_bytes_per_clip: int = 0
    over_long: dict[str, OverLong] = field(default_factory=dict)
    """By row id."""
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    rows_per_shard: list[int] = field(default_factory=list)
    graphs: Proposal | None = None
    """Graphs for the vision encoder; None where there can be none."""
    no_graphs: str | None = None
    """Why a run here would have none."""


def forecast(prospect: Prospect) -> Forecast:
    """Look at every clip's header.

    Raises:
        ManifestError: the manifest cannot be trusted as a whole.
    """
    prospect.manifest.raise_if_refused(prospect.manifest_path)
    plan = prospect.plan(prospect.manifest.rows)
    with Decoders(prospect.reader, default_workers(prospect.recipe), ByteBudget(1)) as decoders:
        outlooks = look_at(plan.clips, decoders)
    context = context_of(prospect.recipe.engine.args, prospect.checkpoint.config)
    texts = TextTokens(prospect.checkpoint.location)
    found = Forecast(len(prospect.manifest.rows), len(plan.bad_rows), len(plan.clips), context)
    for clip, outlook in zip(plan.clips, outlooks, strict=True):
        if isinstance(outlook, MediaError):
            group = found.unreadable.setdefault(outlook.kind, Unreadable(str(outlook)))
            group.clips += 1
            group.rows += len(clip.rows)
            continue
        found.unknown_clips += outlook.frames == 0 and bool(clip.first.row.media)
        found.frames += outlook.frames
        found.vision_tokens += outlook.vision_tokens
        found.kept_tokens += outlook.kept_tokens
        found.prompt_vision_tokens += outlook.kept_tokens * len(clip.rows)
        found.media_bytes_per_clip = max(found.media_bytes_per_clip, outlook.media_bytes)
        if context is not None and _is_over_long(outlook, context, pruned=prospect.recipe.pruning is not None):
            found.over_long |= {planned.row.id: OverLong(outlook.kept_tokens, 0) for planned in clip.rows}
        elif context is not None:
            room = context - 1 - outlook.kept_tokens
            counts = {planned.row.id: texts.at_least(planned.messages, room) for planned in clip.rows}
            found.over_long |= {i: OverLong(outlook.kept_tokens, count) for i, count in counts.items() if count > room}
    recipe, architectures = prospect.recipe, prospect.demands.architectures
    if why_no_graphs(recipe, architectures) is None:
        found.graphs = proposal_for(prospect, outlooks)
    found.no_graphs = why_no_graphs_here(recipe, architectures)
    found.rows_per_shard = [len(group.ids) for group in cut_rows(plan, outlooks)]
    return found


def _is_over_long(outlook: Outlook, context: int, *, pruned: bool) -> bool:
    """Whether a clip alone is too much: its tokens for the context, or its positions for the table of a pruned run."""
    return outlook.kept_tokens >= context or (pruned and outlook.positions >= POSITION_FACTOR * context)


def context_of(engine_args: Mapping[str, Any], config: Mapping[str, Any]) -> int | None:
    """Tokens that a prompt and its answer may have together."""
    length = engine_args.get("max_model_len")
    if isinstance(length, int):
        return length
    length = {**config, **config.get("text_config", {})}.get("max_position_embeddings")
    return length if isinstance(length, int) else None
