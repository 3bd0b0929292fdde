"""The quick ways for simple lines and rows, against the slow ones that know every rule."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vidpipe.manifest import jsonl, rows
from vidpipe.manifest.row import BadRow, Record, Row

COMMON = (
    "id", "video", "question", "prompt", "options", "clip_id", "group_id", "answer", "answer_type", "answers",
    "categories",
)  # fmt: skip
OTHERS = (*sorted(rows.RARE_COLUMNS | rows.WINDOW_COLUMNS), "sampling", "sampling.fps", "generation.seed", "meta")
TEXTS = st.sampled_from(["a", "", "é", "\ud800", "3", "nan"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["fps", "start", "end"]), inner),
    max_leaves=4,
)
ROWS = st.builds(
    lambda usual, odd: {**usual, **odd},
    st.fixed_dictionaries({"id": st.integers() | TEXTS, "video": st.just("a.mp4"), "question": st.just("?")}),
    st.dictionaries(st.sampled_from(COMMON), VALUES, max_size=3)
    | st.dictionaries(st.sampled_from(COMMON + OTHERS), VALUES, max_size=4),
)


def without_quick_way(monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], has_prompt: bool) -> Row | BadRow:
    with monkeypatch.context() as patch:
        patch.setattr(rows, "_simple_row", lambda *_: None)
        return rows.to_row(Record(7, values), 3, recipe_has_prompt=has_prompt)


@given(ROWS, st.booleans())
@example({"id": "a", "video": "b", "clip_start": 2, "end": "3.5", "clip_id": "", "group_id": "g"}, True)
@example({"id": "a", "video": "b", "question": "?", "sampling.fps": 1, "generation": {"seed": 2}}, False)
@example({"id": "a", "video": "b", "question": 0}, True)
@example({"id": "a", "video": "b", "question": "?", "options": ["x"], "answer": "B", "answer_type": "choice"}, True)
@example({"id": "a", "video": "b", "question": "?", "categories": "long"}, True)
@example({"id": "a", "video": "b", "question": "?", "answers": "kitty"}, True)
def test_simple_rows_are_what_the_whole_check_makes_of_them(values: dict[str, Any], has_prompt: bool) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        slow = without_quick_way(monkeypatch, values, has_prompt)
    assert repr(rows.to_row(Record(7, values), 3, recipe_has_prompt=has_prompt)) == repr(slow)


class Asked(dict[str, Any]):
    """A record that remembers what was looked up in it."""

    def __init__(self) -> None:
        super().__init__(id="a", video="b", question="?")
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def test_every_column_with_a_meaning_is_known_to_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    values = Asked()
    assert isinstance(without_quick_way(monkeypatch, values, has_prompt=False), Row)
    assert values.names - rows.RARE_COLUMNS - rows.WINDOW_COLUMNS - {*COMMON, *rows.SECTIONS} == set()


def test_an_ordinary_row_and_line_take_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare the slow way with itself."""
    values = {"id": "q", "video": "a.mp4", "question": "What: é?", "options": ["a"], "meta": {"k": 1.5}, "end": 2}
    values |= {"answers": ["b"], "categories": {"c": "d"}}
    monkeypatch.setattr(rows, "_row", pytest.fail)
    monkeypatch.setattr(jsonl, "_DECODER", None)
    record = jsonl._read_line(1, json.dumps(values).encode())
    assert isinstance(record, Record) and record.values == values
    assert isinstance(rows.to_row(record, 0, recipe_has_prompt=False), Row)


KEYS = st.sampled_from(['"a"', '"b"', '"a:"', '"\\u0061"', '"a\\""', '"é"'])
WHITE = st.sampled_from(["", " ", "\t", "\n"])
NUMBERS = st.sampled_from(
    ["-0", "-0.0", "1.0", "1e5", "1e400", "9223372036854775808", "18446744073709551616", "-9223372036854775809", "01"]
)
LEAVES = (
    NUMBERS
    | st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(json.dumps)
    | st.text(max_size=4).map(json.dumps)
    | st.sampled_from(["true", "null", "NaN", "nul", '"\\ud83d"', '"x": 1', '"\\":"', '"\x01"'])
)


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """JSON objects, also with a key twice and white space before colons."""
    pairs = st.builds(lambda key, white, value: f"{key}{white}: {value}", KEYS, WHITE, inner)
    return st.lists(pairs, max_size=4).map(lambda found: "{" + ",".join(found) + "}")


JSON = st.recursive(
    LEAVES, lambda inner: objects(inner) | st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]")
)


@given(objects(LEAVES) | objects(JSON) | JSON)
@example('{"a" :1, "a":2}')
@example('{"a": 1, "b": {"a": 1, "a": 2}}')
@example('{"a": [18446744073709551616]}')
def test_simple_lines_are_what_the_strict_parser_makes_of_them(line: str) -> None:
    raw = line.encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(jsonl, "_read_plain", lambda _: None)
        slow = jsonl._read_line(1, raw)
    assert repr(jsonl._read_line(1, raw)) == repr(slow)
