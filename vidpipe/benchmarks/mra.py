"""Mean relative accuracy: how close a number is, as ten thresholds see it.

The measure of VSI-Bench (Yang et al., arXiv:2412.14171, section 3.3). The paper writes
`<`; the published numbers come from code with `<=` (vision-x-nyu/thinking-in-space
@51e089c, lmms_eval/tasks/vsibench/utils.py, mean_relative_accuracy), whose floats decide
at the thresholds themselves. So the order of its float64 operations is kept.
"""

from __future__ import annotations

import numpy as np

_THRESHOLDS = int((0.95 - 0.5) / 0.05 + 2)
"""Ten, not eleven: the quotient is just below nine."""
TOLERANCES: tuple[float, ...] = tuple((1 - np.linspace(0.5, 0.95, _THRESHOLDS)).tolist())
"""Relative errors that still pass, widest first."""


def share_within(error: float) -> float:
    """Share of the tolerances that `error`, a relative one, keeps; 0 for NaN."""
    return sum(error <= tolerance for tolerance in TOLERANCES) / len(TOLERANCES)


def official_mra(prediction: float, target: float) -> float:
    """As the benchmark's own code has it: any prediction passes for a negative target.

    Raises:
        ZeroDivisionError: the target is 0.
    """
    return share_within(abs(prediction - target) / target)


def vlmevalkit_mra(prediction: float, target: float) -> float:
    """open-compass/VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench/cal_scores.py, mean_relative_accuracy.

    The error is relative to the target's size, and absolute where the target is 0.
    """
    return share_within(abs(prediction - target) if target == 0 else abs((prediction - target) / target))


def zero_exact_mra(prediction: float, target: float) -> float:
    """Relative to the target's size; of a target of 0 only an exact 0 is right.

    EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/vsisuper/count/vsc_utils.py, _mean_relative_accuracy.
    """
    if target == 0:
        return float(prediction == 0)
    return share_within(abs(prediction - target) / abs(target))
