"""Video-MME-v2: four questions on a video are one set, whose score grows faster than its right answers.

EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vidpipe.benchmarks.multiple_choice import by_letter, videomme_v2_letter
from vidpipe.benchmarks.profile import Profile, Sets

SOURCE = "EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py"
_WEIGHTS = {
    "[1,2,3,4]": (16, (0, 1, 4, 9, 16)),
    "[1,[2,3],4]": (12, (0, 1, 4, 7, 12)),
    "[[1,2],3,4]": (10, (0, 1, 2, 5, 10)),
}
"""Structure of a logic group -> points for the whole, and for each length of the right beginning."""


def group_score(scores: Sequence[float], group_type: str, structure: str | None) -> float:
    """Percent for four answers of Video-MME-v2 that belong together.

    `_cal_relevance` and `_cal_logic`: relevance counts right answers; logic counts the right ones before the first
    wrong one, where of two parallel questions the second may stand in for the first.

    Raises:
        ValueError: the structure is not known.
    """
    if group_type == "relevance":
        return 100 * sum(scores) ** 2 / 16 if sum(scores) <= 4 else 0.0
    key = (structure or "").replace(" ", "")
    if key not in _WEIGHTS:
        raise ValueError(f"group structure {structure!r} is not known; there are {', '.join(_WEIGHTS)}")
    right = next((n for n, score in enumerate(scores) if not score), len(scores))
    parallel = {"[1,[2,3],4]": 1, "[[1,2],3,4]": 0}.get(key)
    if parallel is not None and right == parallel and scores[parallel + 1]:
        right += 1
    whole, points = _WEIGHTS[key]
    return 100 * points[right] / whole


def _set_score(scores: Sequence[float], group_type: str, categories: Mapping[str, str]) -> float:
    if group_type not in ("relevance", "logic"):
        raise ValueError(f"group type {group_type!r} is neither relevance nor logic")
    return group_score(scores, group_type, categories.get("group_structure")) / 100


ROWS = Profile(
    "videomme_v2.rows", 1, f"{SOURCE}, _extract_answer; accuracy of rows, not of sets", by_letter(videomme_v2_letter)
)
OV2 = Profile(
    "videomme_v2.ov2",
    1,
    f"{SOURCE}, videommev2_aggregate_results: mean over sets of four",
    by_letter(videomme_v2_letter),
    sets=Sets(4, _set_score),
)
