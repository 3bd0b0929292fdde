"""`vidpipe check` on manifests of any length."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from vidpipe.job.check import Checked, check_rows
from vidpipe.job.prospect import read_named
from vidpipe.recipe.load import load_recipe


def checked(recipe: Path, rows: int) -> tuple[Checked, int]:
    """The result, and the most bytes in use."""
    manifest = recipe.parent / "rows.jsonl"
    with manifest.open("w") as file:
        for i in range(rows):
            file.write(json.dumps({"id": f"q{i}", "video": "a.mp4", "question": "?" * 1000}) + "\n")
    named = read_named(load_recipe(recipe, []))
    tracemalloc.start()
    found = check_rows(named)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak


def test_memory_is_that_of_the_ids(make_run: Callable[..., Path]) -> None:
    recipe = make_run()
    few, many = checked(recipe, 100), checked(recipe, 2100)
    assert many[0] == Checked(2100, [], False)
    assert (many[1] - few[1]) / 2000 < 500, "bytes a row; its question alone has 1000"


def test_rows_whose_texts_alone_are_too_long_are_named(make_run: Callable[..., Path]) -> None:
    rows = [{"id": f"q{n}", "video": "a.mp4", "question": "word " * n} for n in (1, 5000, 300)]
    engine = {"name": "fake", "args": {"max_model_len": 256}}
    recipe = make_run(rows, engine=engine)
    faults = check_rows(read_named(load_recipe(recipe, []))).faults
    assert [(fault.kind, fault.id, fault.line) for fault in faults] == [
        ("prompt_too_long", "q5000", 2),
        ("prompt_too_long", "q300", 3),
    ]
    counted = re.findall(r"have (\d+) tokens, and the context has 256", " ".join(fault.message for fault in faults))
    assert counted == ["25000", "1500"], "the toy's tokenizer has a token a character"
