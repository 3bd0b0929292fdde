"""What is tried, and what must hold of it: only vidpipe's own errors, and rows that can be written and read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.conftest import TINY_MODEL
from vidpipe.errors import RecipeError, RowError
from vidpipe.job import outcome
from vidpipe.manifest.row import BadRow, Fault, Medium, Row
from vidpipe.manifest.scan import scan_manifest
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import make_plan
from vidpipe.plan.prompts import PromptTemplate
from vidpipe.recipe.load import load_recipe
from vidpipe.recipe.schema import Recipe
from vidpipe.record.schema import to_json, to_table

RECIPE = Recipe.model_validate({"manifest": "m.jsonl", "model": {"path": str(TINY_MODEL)}})
FAMILY = get_family("qwen3_vl")
COLUMNS = (
    "id",
    "video",
    "frames",
    "frames_fps",
    "frames_start_index",
    "images",
    "question",
    "options",
    "option_style",
    "prompt",
    "template",
    "system",
    "prefill",
    "messages",
    "answer",
    "clip_start",
    "clip_end",
    "start",
    "end",
    "clips",
    "subtitles",
    "subtitle_offset",
    "timestamps_from",
    "clip_id",
    "group_id",
    "set_id",
    "set_index",
    "sampling",
    "sampling.fps",
    "sampling.max_frames",
    "generation",
    "generation.json_schema",
    "generation.regex",
    "status",
    "other",
)

words = st.sampled_from(
    ["", "a.mp4", "file:///%zz", "http://x/y", "concat:a|b", "A", "dot", "video", "vsi.official", "1.10", "nan", "(["]
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(2**53, 2**70) | st.floats() | words | st.text(max_size=8)
)
values = st.recursive(
    scalars | st.just("\ud83d"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "start", "end", "fps"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
records = st.lists(st.dictionaries(st.sampled_from(COLUMNS), values, max_size=8), max_size=4)
jsonl_pieces = st.sampled_from(
    [
        b'{"id": "q1", "video": "a.mp4", "question": "?"}\n',
        b"\xef\xbb\xbf",
        b'{"id": 1, "id": 2}\n',
        b"NaN\n",
        b"{",
        b"}",
        b"[" * 2000,
        b'"\\ud83d"',
        b"1e999",
        b"\r\n",
        b"\0",
        b"\xe9",
        b'{"id": ' + b"9" * 5000 + b"}\n",
        b",",
        b":",
        b'"',
    ]
)
csv_pieces = st.sampled_from(
    [
        b"id,video,question\n",
        b"id\tvideo\tquestion\n",
        b"q1,a.mp4,?\n",
        b'"',
        b'""',
        b",",
        b"\t",
        b"\r",
        b"\n",
        b"\xef\xbb\xbf",
        b"options,meta,clips\n",
        b"[1",
        b'"[""a""]"',
        b"\0",
        b"\xe9",
        b"id,id\n",
        b"sampling.fps\n",
    ]
)
manifest_bytes = st.tuples(
    st.sampled_from([".jsonl", ".csv", ".tsv", ".parquet"]),
    st.lists(jsonl_pieces | csv_pieces | st.binary(max_size=12), max_size=8).map(b"".join),
)
yaml_texts = st.lists(
    st.sampled_from(
        [
            "manifest: m.jsonl\n",
            "model: {path: x}\n",
            "sampling:\n  fps: ",
            "1\n",
            "[a, b]: c\n",
            "? {a: 1}\n: 2\n",
            "&a [*a]\n",
            "<<: *a\n",
            "*a",
            "!!python/object:os.system x\n",
            "!!int ''\n",
            "!!float x\n",
            "2024-99-99\n",
            "!!binary ä\n",
            "- ",
            "  ",
            "{",
            "}",
            "[",
            "]",
            ":",
            "'",
            '"',
            "|\n",
            "%YAML 9\n",
            "---\n",
            "\t",
            "\ufeff",
            "~: 1\n",
            "1: 2\n",
            "9" * 5000,
            "0x\n",
            "overrides: [{when: {a: 1}}]\n",
            "generation: {json_schema: {$ref: x}, regex: '(['}\n",
            "engine: {args: ",
            "prompt: '{{'\n",
        ]
    )
    | st.text(max_size=6),
    max_size=8,
).map("".join)
template_texts = st.lists(
    st.sampled_from(
        [
            "{{ ",
            " }}",
            "{% ",
            " %}",
            "{# ",
            "question",
            "options",
            "n",
            "nothing",
            " | ",
            "join",
            "list",
            "length",
            "tojson",
            "default('x')",
            "for x in ",
            "endfor",
            "if ",
            "else",
            "endif",
            "set y = ",
            "x",
            "(",
            ")",
            "[",
            "]",
            ".",
            "__class__",
            "format",
            "'",
            '"',
            "1",
            " + ",
            " / ",
            " % ",
            " ~ ",
            "range(",
            "loop.index",
            "macro f()",
            "endmacro",
            "f()",
            "{{ f() }}",
            "include 'x'",
            "import 'os' as o",
            "call",
            "{% macro f() %}{{ f() }}{% endmacro %}",
            "is defined",
        ]
    )
    | st.text(max_size=4),
    max_size=12,
).map("".join)


def check_rows(rows: list[dict[str, Any]], folder: Path) -> None:
    """Rows are planned or found bad one by one, and what they hold is written and read back."""
    path = folder / "rows.jsonl"
    numbered = [{"id": f"r{number}", **row} for number, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in numbered))
    manifest = scan_manifest(path, recipe_has_prompt=False)
    for fault in manifest.faults:
        assert fault.message.encode() and fault.line
    if any(fault.refuses_manifest for fault in manifest.faults):
        return
    plan = make_plan(manifest.rows, RECIPE, FAMILY, FAMILY.published)
    planned = [row.row.id for clip in plan.clips for row in clip.rows]
    assert sorted([*planned, *(row.id for row in plan.bad_rows)]) == sorted(row.id for row in manifest.rows)
    bad = [_as_bad(row) for row in manifest.rows]
    table = to_table([to_json(outcome.not_run(row), manifest.columns) for row in bad], manifest.columns)
    assert table["id"].to_pylist() == [row.id for row in bad]


def _as_bad(row: Row | BadRow) -> BadRow:
    return row if isinstance(row, BadRow) else BadRow(row.index, row.id, Fault("bad_value", "?"), row.values)


def check_manifest(found: tuple[str, bytes], folder: Path) -> None:
    """Bytes of any kind are rows, or faults that say where."""
    suffix, content = found
    path = folder / f"m{suffix}"
    path.write_bytes(content)
    manifest = scan_manifest(path, recipe_has_prompt=True)
    for fault in manifest.faults:
        assert fault.message.encode()
    make_plan(manifest.rows, RECIPE, FAMILY, FAMILY.published)


def check_recipe(text: str, folder: Path) -> None:
    """A text is a recipe, or an error that can be printed."""
    path = folder / "r.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        load_recipe(path, [])
    except RecipeError as error:
        assert str(error).encode()


def check_assignment(text: str, folder: Path) -> None:
    """`--set` with any value is an assignment, or an error."""
    path = folder / "s.yaml"
    path.write_text("manifest: m.jsonl\nmodel: {path: x}\n")
    for key in ("prompt", "sampling.fps", "engine.args.x"):
        with suppress(RecipeError):
            load_recipe(path, [f"{key}={text}"])


def check_template(source: str, folder: Path) -> None:
    """A text is a template that gives a text, or an error of the recipe or of the row."""
    row = Row(
        0, 1, "r", (Medium("video", "v"),), question="Why?", options=("a", "b"), values={"question": "Why?", "n": 3}
    )
    with suppress(RecipeError, RowError):
        template = PromptTemplate(source)
        with suppress(RecipeError):
            template.refuse_unknown_names(row.values)
        assert isinstance(template.user_text(row), str)


TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, Path], None]]] = {
    "rows": (records, check_rows),
    "manifest": (manifest_bytes, check_manifest),
    "recipe": (yaml_texts, check_recipe),
    "assignment": (yaml_texts, check_assignment),
    "template": (template_texts, check_template),
}
"""What to try, and the check that it must pass."""
