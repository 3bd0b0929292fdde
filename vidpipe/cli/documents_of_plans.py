"""`vidpipe plan --json` as a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from vidpipe.cli.document import Document

if TYPE_CHECKING:
    from vidpipe.plan.graph_proposal import Proposal


class UnreadableDocument(Document):
    """Files that cannot be opened, by kind."""

    kind: str
    """Stable word, as in the output column `error_kind`."""
    clips: int
    """Clips that this costs."""
    rows: int
    """Rows that this costs."""
    example: str
    """What is wrong with the first of them."""


class GraphDocument(Document):
    """One CUDA graph of the vision encoder."""

    tokens: int
    """Its budget: tokens that it computes whatever is put in, counted before pruning."""
    sequences: int
    """Attention sequences that it takes (temporal patches or frames)."""
    patches_per_sequence: int
    """Patches that the longest of them may have."""


class EncoderGraphsDocument(Document):
    """CUDA graphs for the vision encoder that fit a plan."""

    graphs: list[GraphDocument]
    """Ascending; empty where graphs would save no time."""
    max_items: int
    """Videos in one replay."""
    memory_bytes: int
    """Expected; a run records what capturing really took."""
    padded_share: float
    """Expected share of padding in the tokens that replays compute."""
    share_in_graphs: float
    """Expected share of the encoder's tokens that goes through graphs."""
    default_padded_share: float
    """With vLLM's automatic budgets, if its packer did not fail."""


class RowForecastDocument(Document):
    """What a row would show its model."""

    id: str
    """Id of the row."""
    frames: int
    """Frames and images; 0 if a header does not say."""
    vision_tokens: int
    """By the family's rules, before pruning."""
    kept_tokens: int
    """Of these, what stands in the prompt."""
    prompt_tokens: int | None
    """The whole prompt (Moss-VL: and slots of the encoder's cache); null where header or tokenizer do not tell, and
    with subtitles."""


class DecodeDocument(Document):
    """Decoding, by clips that were decoded on this machine."""

    core_s: float
    """Seconds of one core for all clips."""
    clips: int
    """Clips that were decoded to tell."""


class EngineWorkDocument(Document):
    """What the engine would compute: each clip once, and each row's own text; answers and images are left out."""

    encoder_flops: float
    """Floating-point operations of the vision encoder."""
    prompt_flops: float
    """Of the language model, for prompts."""
    seconds: float | None
    """At the speed of the run that --like names; null without one."""


class PlanDocument(Document):
    """`vidpipe plan --json`: what a run would do, from headers only."""

    rows: int
    """Rows of the manifest."""
    bad_rows: int
    """Rows that cannot run for their own values; `vidpipe check` lists them."""
    clips: int
    """Parts of files that are decoded once each."""
    video_hours: float
    """Playing time of the clips, as headers state it."""
    frames: int
    """Frames that the model would see, over all clips."""
    vision_tokens: int
    """Tokens of the frames, each clip once, before pruning."""
    kept_tokens: int
    """What pruning keeps of them; without it all."""
    prompt_vision_tokens: int
    """Tokens of the frames after pruning, counted for every row."""
    unknown_clips: int
    """Clips whose header does not say how many frames they have; in no sum above."""
    context: int | None
    """Tokens that a prompt may have (engine.args.max_model_len or context_length, or the checkpoint's); None if nobody
    says."""
    predicted: list[RowForecastDocument]
    """Each row that can run, clip by clip."""
    no_prompt_tokens: str | None
    """Why `prompt_tokens` is null: everywhere, or of the first row where it is; null without a reason to tell."""
    over_long: list[str]
    """Ids of rows whose prompt does not fit into the context, or whose pruned clip has positions beyond four times the
    context (the end of vLLM's table)."""
    unreadable: list[UnreadableDocument]
    """Files that cannot be opened."""
    media_bytes_per_clip: int
    """The most that one clip takes in memory, decoded and prepared (see feed.memory)."""
    results_bytes: int
    """Expected size of the results, without the answers."""
    decode: DecodeDocument | None
    """Null where no clip could be decoded."""
    engine: EngineWorkDocument | None
    """Null where the checkpoint's config does not state the usual shapes."""
    shards: int
    """Shards that a new run would be cut into."""
    rows_per_shard: list[int]
    """Rows of each, in order."""
    encoder_graphs: EncoderGraphsDocument | None
    """Graphs that fit the plan; null where there can be none."""
    no_encoder_graphs: str | None
    """Why a run on this machine has none; null if it may have some."""
    advice: list[str]
    """What to change, a line each."""


def graphs_document(proposal: Proposal | None) -> EncoderGraphsDocument | None:
    """A proposal as part of a document."""
    if proposal is None:
        return None
    return EncoderGraphsDocument(
        graphs=[GraphDocument(**asdict(graph)) for graph in proposal.graphs.graphs],
        max_items=proposal.graphs.max_items,
        memory_bytes=proposal.memory_bytes,
        padded_share=proposal.padding.share,
        share_in_graphs=proposal.padding.in_graphs,
        default_padded_share=proposal.default_padding.share,
    )
