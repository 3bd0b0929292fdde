"""What one vLLM process knows of a run's encoder graphs: which were wanted, what they cost, what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from vidpipe.plan.graph_packing import Costs, EncoderItem, Graph, Graphs
from vidpipe.plan.graph_proposal import token_costs


@dataclass
class Counters:
    """Since the run began; all but the last two are set back by `reset`."""

    calls: int = 0
    """Of the graph manager."""
    hits: int = 0
    """Items that went through a graph."""
    misses: int = 0
    """Items that went to the manager and ran without one."""
    overruns: int = 0
    """Of the misses, those that upstream would have crashed on or computed wrong."""
    captured_tokens: int = 0
    """Tokens that replays computed."""
    used_tokens: int = 0
    """Of those, tokens that were asked for."""
    eager_tokens: int = 0
    """Tokens of the misses."""
    capture_s: float = 0.0
    capture_bytes: int = 0

    def reset(self) -> None:
        """Forget what the engine did to warm up."""
        for counter in fields(self):
            if not counter.name.startswith("capture_"):
                setattr(self, counter.name, 0)


@dataclass
class GraphRun:
    """The graphs of this process."""

    graphs: Graphs
    costs: Costs
    counters: Counters = field(default_factory=Counters)

    def graph_of(self, tokens: int) -> Graph:
        """The graph with that budget."""
        return next(graph for graph in self.graphs.graphs if graph.tokens == tokens)


@dataclass
class _Process:
    run: GraphRun | None = None


_process = _Process()


def current() -> GraphRun:
    """The graphs of this process.

    Raises:
        RuntimeError: no run asked for any.
    """
    if _process.run is None:
        raise RuntimeError("this process was not told of any encoder graphs")
    return _process.run


def begin(options: Mapping[str, Any]) -> None:
    """Set the graphs of this process, from what `options_for` gave."""
    graphs = Graphs(
        tuple(Graph(*numbers) for numbers in options["graphs"]), options["max_items"], options["eager_tokens"]
    )
    budgets = [graph.tokens for graph in graphs.graphs]
    _process.run = GraphRun(graphs, token_costs(budgets, always=options["always"]))


def options_for(graphs: Graphs, *, always: bool) -> dict[str, Any]:
    """`graphs` as JSON, for `begin`.

    Args:
        graphs: Of the plan.
        always: Whether graphs are wanted wherever they fit, instead of where they save time.
    """
    return {
        "graphs": [[graph.tokens, graph.sequences, graph.patches_per_sequence] for graph in graphs.graphs],
        "max_items": graphs.max_items,
        "eager_tokens": graphs.eager_tokens,
        "always": always,
    }


def takes(graph: Graph, items: Sequence[EncoderItem], max_items: int) -> bool:
    """Whether a replay of `graph` with `items` would be right."""
    return (
        len(items) <= max_items
        and sum(item.tokens for item in items) <= graph.tokens
        and sum(item.sequences for item in items) <= graph.sequences
        and all(item.patches_per_sequence <= graph.patches_per_sequence for item in items)
    )


def report() -> dict[str, Any] | None:
    """The counters of this process; None if no run asked for graphs."""
    return None if _process.run is None else asdict(_process.run.counters)
