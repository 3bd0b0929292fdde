"""What a run expected when it was planned, beside what came true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.errors import MediaError
from vidpipe.job.parquet_size import results_bytes
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect
from vidpipe.job.tolerance import MEDIA_STATUSES
from vidpipe.plan.clips import Plan
from vidpipe.record.merge import is_complete

NAMES = {
    "frames": "frames and images, over all rows",
    "vision_tokens": "vision tokens by the rules, over all rows",
    "kept_tokens": "vision tokens in prompts, over all rows",
    "failed_rows": "rows that fail for their media or values",
    "results_bytes": "bytes of the results (planned without answers)",
}
"""Key of a prediction -> what it is."""
BESIDES = ("clips", "decoded_pixels")
"""What is stored with them: times are foretold by these (see `early`)."""


def predict(plan: Plan, outlooks: Sequence[Outlook | MediaError], prospect: Prospect) -> dict[str, int]:
    """What headers promise of rows that are about to run."""
    found = dict.fromkeys((*NAMES, *BESIDES), 0)
    for clip, outlook in zip(plan.clips, outlooks, strict=True):
        if isinstance(outlook, MediaError):
            found["failed_rows"] += len(clip.rows)
            continue
        found["clips"] += 1
        found["decoded_pixels"] += outlook.decoded_pixels
        found["frames"] += outlook.frames * len(clip.rows)
        found["vision_tokens"] += outlook.vision_tokens * len(clip.rows)
        found["kept_tokens"] += outlook.kept_tokens * len(clip.rows)
    rows = len(plan.bad_rows) + sum(len(clip.rows) for clip in plan.clips)
    found["failed_rows"] += len(plan.bad_rows)
    found["results_bytes"] = results_bytes(plan.clips, outlooks, prospect.manifest.columns, rows)
    return found


def came_true(results: Path, rows: int) -> dict[str, int] | None:
    """The same of a run that is complete; None before. What no row records is left out.

    Args:
        results: Its results file.
        rows: Rows of its plan.
    """
    if not is_complete(results, rows):
        return None
    table = pq.read_table(results, columns=["status", "frames", "more_frames", "images", "vision_tokens"]).flatten()
    more = pc.list_flatten(table["more_frames"]).combine_chunks()
    images = pc.sum(pc.list_value_length(table["images"])).as_py() or 0
    found: dict[str, int | None] = {
        "frames": (pc.sum(table["frames.count"]).as_py() or 0) + (pc.sum(more.field("count")).as_py() or 0) + images,
        "vision_tokens": pc.sum(table["vision_tokens.asked"]).as_py(),
        "kept_tokens": pc.sum(table["vision_tokens.kept"]).as_py(),
        "failed_rows": pc.sum(pc.is_in(table["status"], pa.array(MEDIA_STATUSES))).as_py(),
        "results_bytes": results.stat().st_size,
    }
    return {name: value for name, value in found.items() if value is not None}


def error_of(predicted: float, true: float) -> float | None:
    """Share by which a prediction was too high (or, negative, too low); None where nothing came."""
    return None if true == 0 and predicted else 0.0 if predicted == true else predicted / true - 1


def summed(marks: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The predictions of a run whose manifest has grown, together; empty where one is not there."""
    if not marks or not all(marks):
        return {}
    return {name: sum(mark.get(name, 0) for mark in marks) for name in (*NAMES, *BESIDES)}
