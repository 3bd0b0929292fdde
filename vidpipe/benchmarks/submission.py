"""The file that a benchmark's server takes where labels are hidden. It is written, never sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from vidpipe.benchmarks.predictions import Prediction
from vidpipe.benchmarks.profile import Profile


def write_submission(
    path: Path, rows: Sequence[tuple[Profile, Sequence[Prediction]]], prepare: Callable[[str], str] | None
) -> tuple[int, int]:
    """One JSON object, id -> answer, for every row, labelled or not.

    The answer is what the profile says (EgoSchema: the option's index), else the reply itself, as LongVideoBench takes
    it. A row without a reply, or without a readable one, has null: nothing is guessed.

    Returns:
        How many rows were written, and how many of them have null.
    """
    answers = {}
    for profile, found in rows:
        for row in found:
            text = prepare(row.text) if prepare and row.text else row.text
            submit = profile.submission
            answers[row.id] = submit(text, row.question) if submit and text is not None else text
    path.write_text(json.dumps(answers, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return len(answers), sum(answer is None for answer in answers.values())
