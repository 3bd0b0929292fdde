"""The encoder-graph arithmetic as golden vectors (see `vidpipe.models.trace`)."""

from __future__ import annotations

from typing import Any

from vidpipe.models.trace.attempt import attempt
from vidpipe.plan.encoder_graphs import GraphLimits, assign_to_ranks, budgets_between, graph_limits, pack

Values = dict[str, Any]


def budgets(given: Values) -> Values:
    """`encoder_cg_budgets`."""
    return {"budgets": budgets_between(given["min_budget"], given["max_budget"])}


def manager_init(given: Values) -> Values:
    """`encoder_cg_manager_init`."""
    limits, error = attempt(
        lambda: graph_limits(
            model_range=tuple(given["model_budget_range"]),
            model_steps_per_video=given["model_max_frames_per_video"],
            video_limit=given["video_limit_per_prompt"],
            token_budgets=given["user_budgets"] or (),
            max_items=given["user_max_items"],
            max_steps=given["user_max_frames"],
        )
    )
    if error is not None:
        return {"error": error}
    return {
        "error": None,
        "token_budgets": list(limits.token_budgets),
        "max_items_per_batch": limits.max_items,
        "max_frames_per_batch": limits.max_steps,
        "use_dp": given["mm_encoder_tp_mode"] == "data" and given["tp_size"] > 1,
        "num_graphs": len(limits.token_budgets),
    }


def packing(given: Values) -> Values:
    """`encoder_cg_packing`."""
    limits = GraphLimits(tuple(sorted(given["token_budgets"])), given["max_items_per_batch"], 0)
    batches = pack(given["item_tokens"], limits)
    hits = sum(len(batch.items) for batch in batches if batch.budget is not None)
    return {
        "batches": [
            {
                "items": list(batch.items),
                "mode": "eager" if batch.budget is None else "graph",
                "budget": batch.budget,
                "tokens": batch.tokens,
            }
            for batch in batches
        ],
        "graph_hits": hits,
        "graph_misses": len(given["item_tokens"]) - hits,
    }


def dp_assignment(given: Values) -> Values:
    """`encoder_dp_assignment`."""
    found = assign_to_ranks(given["sizes"], given["num_gpus"])
    return {"order": list(found.order), "counts": list(found.counts), "loads": list(found.loads)}
