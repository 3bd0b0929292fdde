"""What one vLLM process knows of a run's encoder graphs: which were captured for what, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vidpipe.engine.vllm_plugin import settings
from vidpipe.plan.graph_packing import Costs, EncoderItem, Graph, Graphs
from vidpipe.plan.graph_proposal import token_costs

NAME = "encoder_graphs"
"""Of the repair, under which the settings hold the graphs."""


@dataclass
class GraphRun:
    """The graphs of this process."""

    graphs: Graphs
    costs: Costs
    """Foretold in tokens, or measured in seconds at the engine's start."""

    def graph_of(self, tokens: int) -> Graph:
        """The graph with that budget."""
        return next(graph for graph in self.graphs.graphs if graph.tokens == tokens)


@dataclass
class _Process:
    options: Mapping[str, Any] | None = None
    run: GraphRun | None = None


_process = _Process()


def current() -> GraphRun | None:
    """The graphs of this process, as the settings say; None if the run asked for none.

    Read anew when the settings have changed: a process may have one engine after another.
    """
    told = settings.read()
    options = None if told is None else told.repairs.get(NAME)
    if options != _process.options:
        _process.options, _process.run = options, None if options is None else _made(options)
    return _process.run


def required() -> GraphRun:
    """The graphs of this process.

    Raises:
        RuntimeError: there are none.
    """
    run = current()
    if run is None:
        raise RuntimeError("this process was told of no encoder graphs")
    return run


def _made(options: Mapping[str, Any]) -> GraphRun:
    graphs = Graphs.from_json(options)
    return GraphRun(graphs, token_costs([graph.tokens for graph in graphs.graphs], always=options["always"]))


def options_for(graphs: Graphs, *, always: bool) -> dict[str, Any]:
    """`graphs` as JSON, for the settings.

    Args:
        graphs: Of the plan.
        always: Whether graphs are wanted wherever they fit, instead of where they save time.
    """
    return {**graphs.as_json(), "always": always}


def takes(graph: Graph, items: Sequence[EncoderItem], max_items: int) -> bool:
    """Whether a replay of `graph` with `items` would be right."""
    return (
        len(items) <= max_items
        and sum(item.tokens for item in items) <= graph.tokens
        and sum(item.sequences for item in items) <= graph.sequences
        and all(item.patches_per_sequence <= graph.patches_per_sequence for item in items)
    )
