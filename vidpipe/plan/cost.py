"""How much work a clip will be, and shards that workers of any number share out evenly. Pure."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN_COST = 64 * 640 * 480
"""For a clip whose header cannot be read: 64 frames of 640 x 480."""
CLIPS_A_SHARD = 8
QUICK_CLIPS = 2
MAX_SHARDS = 2048


def clip_cost(frames: int, width: int, height: int) -> int:
    """Pixels that the encoder sees: planned frames x pixels of a frame."""
    return frames * width * height


def cut(costs: Sequence[int], shards: int) -> list[range]:
    """Consecutive stretches of items, at most `shards`, none empty, of decreasing total cost.

    The k-th of n ends where (1 - ((n - k - 1) / n)^2) of the cost is reached, so the first has
    about twice the mean and the last ones next to nothing: trapezoid self-scheduling
    (Tzeng and Ni, IEEE Transactions on Parallel and Distributed Systems 4(1), 1993). Workers of
    whatever number and speed then end together, with no more files than equal stretches need.

    Args:
        costs: Cost of each item, at least 0.
        shards: Wanted number of stretches, at least 1.
    """
    total, done, first = sum(costs), 0, 0
    stretches: list[range] = []
    for place, cost in enumerate(costs):
        done += cost
        left = shards - len(stretches) - 1
        due = done * shards**2 >= total * (shards**2 - left**2) or len(costs) - place - 1 <= left
        if due and left > 0:
            stretches.append(range(first, place + 1))
            first = place + 1
    if first < len(costs):
        stretches.append(range(first, len(costs)))
    return stretches


def share_out(costs: Sequence[int]) -> list[list[int]]:
    """Places of each shard's clips, in the order in which they are best done; the costliest shard first.

    A clip of many times the usual cost makes its shard one of the first, so that nobody is
    left alone with it at the end.
    """
    stretches = cut(costs, shard_count(len(costs)))
    stretches.sort(key=lambda stretch: sum(costs[stretch.start : stretch.stop]), reverse=True)
    return [[stretch[place] for place in working_order(costs[stretch.start : stretch.stop])] for stretch in stretches]


def working_order(costs: Sequence[int]) -> list[int]:
    """Places of a shard's clips in the order in which they are best done.

    The cheapest few first, so that the engine has work early; then the longest first, so
    that no long one is left alone at the end.
    """
    places = sorted(range(len(costs)), key=costs.__getitem__)
    return places[:QUICK_CLIPS] + places[QUICK_CLIPS:][::-1]


def shard_count(clips: int) -> int:
    """Number of shards for a plan: small enough to share out work, few enough to keep files few."""
    mean = -(-clips // CLIPS_A_SHARD)
    # A small run too ends with single clips, so that two processes can share it.
    return min(MAX_SHARDS, mean + CLIPS_A_SHARD - 1 if mean > 1 else 1)
