"""What a report holds, whatever has become of the run's files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import TINY_MODEL, vidpipe, write_clip
from tests.job.test_run import go
from tests.report.pages import data_of, page_with, row_of
from vidpipe.errors import RecipeError
from vidpipe.job import report
from vidpipe.job.report import write_report
from vidpipe.report.histogram import histogram
from vidpipe.report.page import render, script_json

Make = Callable[..., Path]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab<>&!-/\u2028"), inner),
)


@settings(max_examples=40)
@given(JSON)
def test_json_in_the_page_says_the_same_and_ends_no_element(value: object) -> None:
    text = str(script_json(value))
    assert json.loads(text) == value and not set("<>&\u2028\u2029") & set(text)


@given(st.lists(st.floats(-1e9, 1e9) | st.integers(-1000, 1000), min_size=1, max_size=60))
def test_a_histogram_counts_every_value_once_in_bins_that_can_be_read(values: list[float]) -> None:
    found = histogram(values)
    assert found is not None and found.total == len(values) and 1 <= len(found.counts) <= 18
    assert found.counts[0] and found.counts[-1] and found.most == max(values)
    assert found.low <= min(values) + 1e-6 * found.width and max(values) <= found.high + 1e-6 * found.width
    digit = found.width / 10.0 ** math.floor(math.log10(found.width) + 1e-9)
    assert min(abs(digit - step) for step in (1, 2, 5, 10)) < 1e-6
    assert len(found.line()) == len(found.counts)
    assert all((mark == " ") == (count == 0) for mark, count in zip(found.line(), found.counts, strict=True))


def test_no_values_make_no_histogram() -> None:
    assert histogram([]) is None and histogram([math.nan]) is None


def test_failed_rows_come_first_and_rows_can_be_few(make_run: Make, tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?", "answer": "fake"} for i in range(6)]
    rows[4]["video"], rows[2]["answer"] = "gone.mp4", "other"
    go(make_run(rows))
    made = write_report(tmp_path / "run", tmp_path / "page.html", 3, {})
    shown = data_of(made.path)["rows"]
    assert [(row["id"], row["mark"]) for row in shown] == [("r4", "wrong"), ("r2", "wrong"), ("r0", "right")]
    assert (made.rows, made.of_rows) == (3, 6) and "3 of 6 rows are on this page" in made.notes[0]
    text = " ".join(made.path.read_text().split())
    assert "not_found" in text and "66.7" in text, "four of six rows are right"
    line = '<th scope="row">{}</th><td class="n">{}</td><td class="n">{}</td><td class="n">none</td>'
    for name, value in (("frames and images, over all rows", 30), ("rows that fail for their media or values", 1)):
        assert line.format(name, value, value) in text, "what was planned came true"


def test_what_is_gone_is_said_and_costs_no_more(make_run: Make, tmp_path: Path) -> None:
    go(make_run())
    (tmp_path / "a.mp4").unlink()
    (tmp_path / "b.mp4").write_bytes((tmp_path / "b.mp4").read_bytes()[:-2000])
    clips = data_of(write_report(tmp_path / "run", tmp_path / "page.html", 100, {}).path)["clips"]
    assert "no such file" in clips[0]["why"] and clips[0]["media"][0]["frames"] == [0, 5, 9, 14, 18, 23]
    assert clips[1]["why"] or "not those that the row records" in clips[1]["media"][0]["notes"][0]
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_text("\n".join([lines[0].replace("What", "Where"), *lines[1:]]))
    made = write_report(tmp_path / "run", tmp_path / "page.html", 100, {})
    assert any("1 row of the run cannot be found in the manifest any more" in note for note in made.notes)
    (tmp_path / "rows.jsonl").unlink()
    made = write_report(tmp_path / "run", tmp_path / "page.html", 100, {})
    assert made.rows == 8 and made.clips == 0 and made.notes


def test_a_run_that_goes_on_has_a_report_marked_partial(make_run: Make, tmp_path: Path) -> None:
    go(make_run(), limit=3)
    (tmp_path / "run" / "results.parquet").unlink()
    for part in (tmp_path / "run" / "done").iterdir():
        part.unlink()
        break
    made = write_report(tmp_path / "run", tmp_path / "page.html", 100, {})
    assert made.of_rows < 3 and 'class="chip bad">partial' in made.path.read_text()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of eight rows on two clips, one of them with a long answer."""
    folder = tmp_path_factory.mktemp("done")
    rows = [{"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": f"What is {i}?"} for i in range(8)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("a.mp4", "b.mp4"):
        write_clip(folder / name)
    engine = {"name": "fake", "args": {"texts": {"r0": "x" * 30_000}}}
    recipe = {"manifest": "rows.jsonl", "model": {"path": str(TINY_MODEL)}, "engine": engine}
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    go(folder / "recipe.yaml")
    return folder / "run"


def test_a_page_has_a_size_that_it_keeps(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_report(done, tmp_path / "page.html", 100, {})
    assert whole.clips == 2 and whole.bytes < report.PAGE_BYTES == 25_000_000
    row = data_of(whole.path)["rows"][0]
    assert row["text"].startswith("x" * 20_000) and "10000 characters more in results.parquet" in row["text"]
    monkeypatch.setattr(report, "MARGIN_BYTES", 0)
    monkeypatch.setattr(report, "PAGE_BYTES", 20_000)
    made = write_report(done, tmp_path / "page.html", 100, {})
    assert made.clips < 2 and made.bytes < whole.bytes and any("clips have pictures" in note for note in made.notes)
    monkeypatch.setattr(report, "ROW_BYTES", 22_000)
    assert 0 < write_report(done, tmp_path / "page.html", 100, {}).rows < 8


def test_the_command_says_where_the_page_is(done: Path, tmp_path: Path) -> None:
    said = vidpipe("report", done)
    assert said.returncode == 0 and f"report: {done}/report.html (8 rows" in said.stdout
    document = json.loads(vidpipe("report", done, "-o", tmp_path / "x.html", "--json").stdout)
    assert (document["rows"], document["clips_with_pictures"], document["notes"]) == (8, 2, [])
    assert document["bytes"] == (tmp_path / "x.html").stat().st_size
    assert vidpipe("report", tmp_path).returncode == 2
    with pytest.raises(RecipeError, match="cannot be written"):
        write_report(done, tmp_path, 1, {})


def test_server_side_texts_are_escaped() -> None:
    page = page_with([row_of(0)])
    evil = "<script>window.hacked=1</script>"
    changed = {"title": evil, "description": evil, "notes": [evil], "recipe": evil, "facts": [(evil, evil)]}
    text = render(type(page)(**{**vars(page), **changed}))
    assert evil not in text and text.count("&lt;script&gt;window.hacked") == 7
