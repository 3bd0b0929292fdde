"""What a run would do, from the headers of its files and a few clips that are decoded: no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vidpipe.engine.retold import Teller
from vidpipe.errors import CapabilityError, MediaError, RowError
from vidpipe.job import host
from vidpipe.job.budget import ByteBudget
from vidpipe.job.calibrate import DecodeTime, decode_time
from vidpipe.job.decoders import Decoders, default_workers
from vidpipe.job.encoder_plan import proposal_for
from vidpipe.job.encoder_possible import why_no_graphs, why_no_graphs_here
from vidpipe.job.parquet_size import results_bytes
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect
from vidpipe.job.sharding import cut_rows, look_at
from vidpipe.plan.advice import CONTEXT_KEYS, context_advice, decode_advice, missing_advice
from vidpipe.plan.clips import Clip, PlannedRow
from vidpipe.plan.flops import Costs, costs_of
from vidpipe.plan.graph_proposal import Proposal
from vidpipe.pruning.counts import POSITION_FACTOR


@dataclass
class Unreadable:
    """Clips that fail with one kind of error."""

    example: str
    clips: int = 0
    rows: int = 0


@dataclass(frozen=True)
class RowForecast:
    """What a row will show its model."""

    id: str
    frames: int
    """Frames and images."""
    vision_tokens: int
    """By the family's rules."""
    kept_tokens: int
    """Of these, what stands in the prompt."""
    prompt_tokens: int | None
    """The whole prompt (Moss-VL: and slots of the encoder's cache); None where header or tokenizer do not tell."""


@dataclass(frozen=True)
class EngineWork:
    """What the engine will compute, each clip once and each row's own text; answers are left out."""

    encoder_flops: float
    prompt_flops: float
    seconds: float | None
    """As long as an earlier run took for a prompt token; None without one."""


@dataclass
class Forecast:
    """See `vidpipe plan --json` (`cli.documents_of_plans.PlanDocument`) for what the fields mean."""

    rows: int
    bad_rows: int
    clips: int
    context: int | None
    frames: int = 0
    vision_tokens: int = 0
    kept_tokens: int = 0
    prompt_vision_tokens: int = 0
    unknown_clips: int = 0
    video_s: float = 0.0
    media_bytes_per_clip: int = 0
    results_bytes: int = 0
    row_forecasts: list[RowForecast] = field(default_factory=list)
    """Of the rows that can run, clip by clip."""
    over_long: list[str] = field(default_factory=list)
    """Ids of rows whose prompt does not fit into the context."""
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    rows_per_shard: list[int] = field(default_factory=list)
    graphs: Proposal | None = None
    """Graphs for the vision encoder; None where there can be none."""
    no_graphs: str | None = None
    """Why a run here would have none."""
    no_prompt_tokens: str | None = None
    """Why prompts cannot be counted, or the first that cannot."""
    refused: set[str] = field(default_factory=set)
    """Ids of rows whose prompt cannot be made: a run refuses them, too."""
    decode: DecodeTime | None = None
    engine: EngineWork | None = None
    """None where the checkpoint's config does not say enough."""
    advice: list[str] = field(default_factory=list)


def forecast(
    prospect: Prospect,
    advice: Mapping[str, str] | None = None,
    s_per_token: float | None = None,
    *,
    calibrate: bool = True,
) -> Forecast:
    """Look at every clip's header.

    Args:
        prospect: The recipe and what it names.
        advice: What to do about each kind of error.
        s_per_token: Seconds that an earlier run's engine was at work for each token of its prompts.
        calibrate: Whether to decode a few clips.

    Raises:
        ManifestError: the manifest cannot be trusted as a whole.
    """
    prospect.manifest.raise_if_refused(prospect.manifest_path)
    plan, recipe = prospect.plan(prospect.manifest.rows), prospect.recipe
    with Decoders(prospect.reader, default_workers(recipe), ByteBudget(1)) as decoders:
        outlooks = look_at(plan.clips, decoders, tell=True)
    context = context_of(recipe.engine.args, prospect.checkpoint.config)
    found = Forecast(len(prospect.manifest.rows), len(plan.bad_rows), len(plan.clips), context)
    teller = _teller(prospect, found)
    costs = costs_of(prospect.checkpoint.config)
    encoder_flops = prompt_flops = 0.0
    for clip, outlook in zip(plan.clips, outlooks, strict=True):
        if isinstance(outlook, MediaError):
            group = found.unreadable.setdefault(outlook.kind, Unreadable(str(outlook)))
            group.clips += 1
            group.rows += len(clip.rows)
            continue
        _add(found, clip, outlook, teller, prospect)
        if costs is not None:
            encoder_flops += _encoder_flops(costs, outlook)
            prompt_flops += _prompt_flops(costs, outlook, found.row_forecasts[-len(clip.rows) :])
    architectures = prospect.demands.architectures
    if why_no_graphs(recipe, architectures) is None:
        found.graphs = proposal_for(prospect, outlooks)
    found.no_graphs = why_no_graphs_here(recipe, architectures)
    found.rows_per_shard = [len(group.ids) for group in cut_rows(plan, outlooks)]
    found.results_bytes = results_bytes(plan.clips, outlooks, prospect.manifest.columns, found.rows)
    if calibrate:
        found.decode = decode_time(prospect.reader, plan.clips, outlooks)
    if costs is not None:
        tokens = sum(row.prompt_tokens or row.kept_tokens for row in found.row_forecasts)
        seconds = None if s_per_token is None else s_per_token * tokens
        found.engine = EngineWork(encoder_flops, prompt_flops, seconds)
    found.advice = _advice(found, recipe.generation.max_tokens, advice or {}, recipe.engine.name)
    return found


def _add(found: Forecast, clip: Clip, outlook: Outlook, teller: Teller | None, prospect: Prospect) -> None:
    found.unknown_clips += outlook.frames == 0 and bool(clip.first.row.media)
    found.frames += outlook.frames
    found.vision_tokens += outlook.vision_tokens
    found.kept_tokens += outlook.kept_tokens
    found.prompt_vision_tokens += outlook.kept_tokens * len(clip.rows)
    found.video_s += outlook.shown_s
    found.media_bytes_per_clip = max(found.media_bytes_per_clip, outlook.media_bytes)
    alone_too_much = found.context is not None and _is_over_long(
        outlook, found.context, pruned=prospect.recipe.pruning is not None
    )
    for planned in clip.rows:
        tokens = _prompt_tokens(planned, outlook, teller, prospect, found)
        found.row_forecasts.append(
            RowForecast(planned.row.id, outlook.frames, outlook.vision_tokens, outlook.kept_tokens, tokens)
        )
        if alone_too_much or (found.context is not None and (tokens or 0) >= found.context):
            found.over_long.append(planned.row.id)


def _teller(prospect: Prospect, found: Forecast) -> Teller | None:
    try:
        return Teller(prospect.checkpoint.location)
    except CapabilityError as error:
        found.no_prompt_tokens = str(error)
        return None


def _prompt_tokens(
    planned: PlannedRow, outlook: Outlook, teller: Teller | None, prospect: Prospect, found: Forecast
) -> int | None:
    """Tokens of the context that a row's prompt takes; None, and `found` is told why, where they cannot be counted.

    Texts between frames stand at times that only the whole file tells.
    """
    if teller is None or len(outlook.told) < len(planned.row.media) or planned.row.subtitles:
        return None
    try:
        told = teller.tell(planned.messages, outlook.told, prospect.recipe.special_tokens).tokens
    except (RowError, CapabilityError) as error:
        found.no_prompt_tokens = found.no_prompt_tokens or f"row {planned.row.id!r}: {error}"
        if isinstance(error, RowError):
            found.refused.add(planned.row.id)
        return None
    return told + outlook.kept_tokens if prospect.family.abilities.vision_beside_prompt else told


def _is_over_long(outlook: Outlook, context: int, *, pruned: bool) -> bool:
    """Whether a clip alone is too much: its tokens for the context, or its positions for the table of a pruned run."""
    return outlook.kept_tokens >= context or (pruned and outlook.positions >= POSITION_FACTOR * context)


def _encoder_flops(costs: Costs, outlook: Outlook) -> float:
    """Of a clip: patches attend to those of their own temporal patch."""
    return sum(
        costs.encode(item.sequences * item.patches_per_sequence, item.patches_per_sequence) for item in outlook.encoder
    )


def _prompt_flops(costs: Costs, outlook: Outlook, rows: Sequence[RowForecast]) -> float:
    """Of a clip's rows: its own tokens once, for the rows share them, and each row's rest behind them."""
    lengths = [row.prompt_tokens or row.kept_tokens for row in rows]
    shared = outlook.kept_tokens
    return costs.prefill(shared) + sum(costs.prefill(length - shared, shared) for length in lengths)


def _advice(found: Forecast, answer_tokens: int, advice: Mapping[str, str], engine: str) -> list[str]:
    prompts = [row.prompt_tokens for row in found.row_forecasts if row.prompt_tokens is not None]
    lines = []
    if len(prompts) + len(found.refused) == len(found.row_forecasts):  # else nobody knows what is enough
        lines += context_advice(prompts, answer_tokens, found.context, CONTEXT_KEYS[engine])
    lines += missing_advice({kind: group.rows for kind, group in found.unreadable.items()}, advice)
    if found.decode is not None and found.engine is not None:
        lines += decode_advice(found.decode.core_s, found.engine.seconds, host.cores())
    return lines


def context_of(engine_args: Mapping[str, Any], config: Mapping[str, Any]) -> int | None:
    """Tokens that a prompt and its answer may have together."""
    for key in CONTEXT_KEYS.values():
        if isinstance(length := engine_args.get(key), int):
            return length
    length = {**config, **config.get("text_config", {})}.get("max_position_embeddings")
    return length if isinstance(length, int) else None
