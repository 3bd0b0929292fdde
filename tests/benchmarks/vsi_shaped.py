"""A made-up data set in VSI-Bench's published form, from the demo's clips and what is known of them.

`python -m tests.benchmarks.vsi_shaped FOLDER` writes `test.parquet` with the published columns and types, all ten
question types, and the three zip files of videos. The questions are about drawn shapes, not rooms: types,
columns and layout are VSI-Bench's, scores are not comparable with anything.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pyarrow as pa
import pyarrow.parquet as pq

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
DATASETS = ("arkitscenes", "scannet", "scannetpp")
WAYS = ("up", "down", "left", "right")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("dataset", pa.string()),
        ("scene_name", pa.string()),
        ("question_type", pa.string()),
        ("question", pa.string()),
        ("ground_truth", pa.string()),
        ("options", pa.list_(pa.string())),
        ("pruned", pa.bool_()),
    ]
)


def place(video: str) -> tuple[str, str]:
    """Data set and scene that a clip of the demo stands for."""
    number = int(video.removeprefix("clip_").removesuffix(".mp4"))
    return DATASETS[number % 3], f"scene{number:04}_00"


def records() -> list[dict[str, Any]]:
    """All questions, in the order of the demo's."""
    rows = [json.loads(line) for line in (DEMO / "rows.jsonl").read_text().splitlines()]
    found: list[dict[str, Any]] = []
    for row in rows:
        for question_type, question, answer, options in _questions(row):
            dataset, scene = place(row["video"])
            lettered = [f"{letter}. {option}" for letter, option in zip("ABCD", options, strict=False)]
            right = "ABCD"[options.index(answer)] if options else answer
            found.append(
                {
                    "id": len(found), "dataset": dataset, "scene_name": scene, "question_type": question_type,
                    "question": question, "ground_truth": right, "options": lettered or None,
                    "pruned": len(found) % 4 == 0,
                }
            )  # fmt: skip
    return found


def _questions(row: dict[str, str]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Question type, question, answer and options that follow from one question of the demo."""
    question, answer = _bare(row)
    if row["question_type"] == "count":
        width, height = _size(row["video"])
        yield "object_counting", question, answer, []
        yield "object_size_estimation", "How many pixels wide is the picture?", str(width), []
        yield "room_size_estimation", "How many pixels does the picture have?", str(width * height), []
    elif row["question_type"] == "time":
        yield "object_abs_distance", f"{question} Answer in seconds from the start.", answer, []
    elif row["question_type"] == "direction" and answer in WAYS:
        others = [way for way in WAYS if way != answer]
        for level, count in (("easy", 1), ("medium", 2), ("hard", 3)):
            yield f"object_rel_direction_{level}", question, answer, sorted([answer, *others[:count]])
        yield "route_planning", f"You follow it. {question}", f"Go {answer}", [f"Go {way}" for way in WAYS]
    elif row["question_type"] == "order":
        objects = re.findall(r"the (\w+ \w+)", question)[:2]
        orders = [", ".join(objects), ", ".join(reversed(objects))]
        yield "object_rel_distance", f"Which is nearer to the start? {question}", answer, objects
        yield "obj_appearance_order", "In which order do they appear?", orders[objects.index(answer)], orders


def _bare(row: dict[str, str]) -> tuple[str, str]:
    """The question without what the demo's wordings put around it, and its answer in words."""
    lines = row["question"].removeprefix("These are frames of a video.\n").splitlines()
    options = dict(line.split(". ", 1) for line in lines[1:] if re.match("[A-D]\\. ", line))
    return lines[0], options.get(row["answer"], row["answer"])


def _size(video: str) -> tuple[int, int]:
    with av.open(str(DEMO / video)) as container:
        stream = container.streams.video[0]
        return stream.width, stream.height


def write(folder: Path) -> None:
    """`test.parquet` and a zip file a data set, as they are published."""
    folder.mkdir(parents=True, exist_ok=True)
    made = records()
    pq.write_table(pa.Table.from_pylist(made, SCHEMA), folder / "test.parquet")
    for dataset in DATASETS:
        with zipfile.ZipFile(folder / f"{dataset}.zip", "w") as archive:
            for clip in sorted(DEMO.glob("*.mp4")):
                if place(clip.name)[0] == dataset:
                    archive.write(clip, f"{dataset}/{place(clip.name)[1]}.mp4")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
