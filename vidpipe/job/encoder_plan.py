"""Encoder graphs of a run: which, and where the run directory keeps them.

The first process to plan decides for all; rows that are added later run with the same graphs.
"""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.engine.interface import WantedGraphs
from vidpipe.errors import MediaError
from vidpipe.job.encoder_possible import why_no_graphs_here
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect
from vidpipe.plan.graph_memory import encoder_memory
from vidpipe.plan.graph_packing import Graphs
from vidpipe.plan.graph_proposal import MEMORY_LIMIT_BYTES, Proposal, propose
from vidpipe.record.disk import read_mark, set_mark
from vidpipe.record.run_dir import RunDir

STEP_TOKENS = 16384
"""vLLM's `max_num_batched_tokens` for offline work on large GPUs, where the recipe does not say; 8,192 on others."""


def proposal_for(prospect: Prospect, outlooks: Sequence[Outlook | MediaError]) -> Proposal:
    """The graphs for clips with these outlooks, in working order."""
    items = [item for outlook in outlooks if isinstance(outlook, Outlook) for item in outlook.encoder]
    step = prospect.recipe.engine.args.get("max_num_batched_tokens", STEP_TOKENS)
    return propose(
        items,
        step_tokens=step if isinstance(step, int) else STEP_TOKENS,
        memory=encoder_memory(prospect.checkpoint.config, MEMORY_LIMIT_BYTES),
        always=prospect.recipe.engine.encoder_graphs == "on",
    )


def store_graphs(run_dir: RunDir, prospect: Prospect, outlooks: Sequence[Outlook | MediaError]) -> None:
    """Keep the graphs for a run's clips, unless an earlier process has."""
    if run_dir.graphs_file.exists():
        return
    reason = why_no_graphs_here(prospect.recipe, prospect.checkpoint.config.get("architectures") or ())
    graphs = Graphs((), 0, 0) if reason else proposal_for(prospect, outlooks).graphs
    none_because = reason or (None if graphs.graphs else "they would save no time here")
    set_mark(run_dir.graphs_file, {**graphs.as_json(), "none_because": none_because})


def stored_graphs(run_dir: RunDir, prospect: Prospect) -> WantedGraphs | None:
    """The graphs that the run's engine is to have."""
    stored = read_mark(run_dir.graphs_file)
    if stored is None or not stored["graphs"]:
        return None
    return WantedGraphs(Graphs.from_json(stored), always=prospect.recipe.engine.encoder_graphs == "on")
