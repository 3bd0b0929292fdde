"""The page in a real browser: asks for nothing, logs nothing, runs nothing that a run brought along, stays quick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TINY_MODEL, write_clip
from tests.job.test_run import go
from tests.report.browser import Browser
from tests.report.pages import data_of, page_with, row_of
from vidpipe.job.report import write_report
from vidpipe.report.page import render

ATTACKS = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'><svg onload=window.hacked=1>",
    "{{ 7 * 7 }}<!--",
    "javascript:window.hacked=1",
)
EVIL = " ".join(ATTACKS)
FILE = "<img src=x onerror=window.hacked=1>&\"'.mp4"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run in which everything that anybody may write is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    write_clip(folder / FILE)
    asked = [
        {"id": f"{n} {attack}", "video": FILE, "question": attack, "options": [attack, "b"], "answer": attack}
        for n, attack in enumerate(ATTACKS)
    ]
    asked += [
        {"id": f"gone {EVIL}", "video": f"gone {FILE}", "question": EVIL, "answer": EVIL, EVIL: EVIL},
        {"id": "wrong values", "video": FILE, "question": "?", "options": EVIL},
        {"id": "refused", "video": FILE, "question": EVIL, "answer": "x"},
        {"id": "no text", "video": FILE, "question": EVIL, "answer": "x"},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    texts = {row["id"]: row["question"] for row in asked[: len(ATTACKS)]} | {"no text": None}
    script = {"texts": texts, "refuse": {"refused": "bad_value"}}
    recipe = {
        "description": EVIL,
        "manifest": "rows.jsonl",
        "model": {"path": str(TINY_MODEL)},
        "engine": {"name": "fake", "args": script},
        "system": EVIL,
    }
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    go(folder / "recipe.yaml")
    return write_report(folder / "run", folder / "report.html", 5000, {"not_found": EVIL}).path


@pytest.fixture(scope="module")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("thousands") / "report.html"
    rows = [row_of(n) for n in range(5000)]
    rows[4711] |= {"status": "media_error", "kind": "not_found", "error": "no such file", "text": None, "mark": None}
    path.write_text(render(page_with(rows)))
    return path


def ids(browser: Browser) -> list[str]:
    found: list[str] = browser.value("[...document.querySelectorAll('#body .open')].map(b => b.textContent)")
    return found


def text(browser: Browser, element: str) -> str:
    found: str = browser.value(f"document.getElementById('{element}').textContent")
    return found


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"width": 390, "height": 844, "phone": True}])
def test_it_opens_from_disk_without_a_word_or_a_request(browser: Browser, hostile: Path, look: dict[str, Any]) -> None:
    browser.open(hostile, **look)
    assert browser.problems() == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out to the side"
    background = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(19, 20, 23)") == bool(look.get("dark")), background
    browser.value("document.querySelector('#body .open').click()")
    assert browser.value("document.getElementById('view').scrollWidth <= innerWidth")


def test_nothing_that_a_run_brings_along_runs(browser: Browser, hostile: Path) -> None:
    data = data_of(hostile)
    assert len(data["rows"]) == len(ATTACKS) + 4 and all(attack in hostile_texts(data) for attack in ATTACKS)
    browser.open(hostile)
    before = browser.value("document.querySelectorAll('script').length")
    for place in range(len(data["rows"])):
        browser.value(f"document.querySelector('tr[data-place=\"{place}\"] .open').click()")
        shown = text(browser, "view-body")
        row = data["rows"][place]
        assert text(browser, "view-title") == row["id"]
        assert all(part in shown for part in (row["question"], row["text"], row["answer"], row["error"]) if part)
        assert browser.value("[...document.querySelectorAll('img')].every(i => i.src.startsWith('data:image/webp'))")
        browser.value("document.getElementById('view').close()")
    assert browser.value("typeof window.hacked") == "undefined" and browser.problems() == []
    assert browser.value("document.querySelectorAll('script').length") == before
    made_by_texts = "body svg svg, td img, td script, td svg, [onerror], [onload], a[href^=javascript]"
    assert browser.value(f"document.querySelectorAll('{made_by_texts}').length - "
                         "document.querySelectorAll('.interval svg').length") == 0  # fmt: skip
    # Were there a hole, the policy would stop it.
    browser.value("document.body.append(Object.assign(document.createElement('script'), {text: 'window.hacked=1'}))")
    browser.value("void document.body.setAttribute('onclick', 'window.hacked=1'); document.body.click()")
    browser.value("void fetch('https://example.org').catch(() => 0)")
    assert browser.value("typeof window.hacked") == "undefined"
    assert sum("Content Security Policy" in problem for problem in browser.problems()) >= 3


def hostile_texts(data: dict[str, Any]) -> str:
    return "\n".join(str(value) for row in data["rows"] for value in row.values())


def test_a_row_shows_its_frames_and_a_missing_file_costs_only_them(browser: Browser, hostile: Path) -> None:
    data = data_of(hostile)
    gone = next(place for place, row in enumerate(data["rows"]) if row["id"].startswith("gone"))
    seen = next(place for place, row in enumerate(data["rows"]) if row["id"].startswith("0 "))
    assert gone < seen, "failed rows come first"
    browser.open(hostile)
    browser.value(f"document.querySelector('tr[data-place=\"{seen}\"] .open').click()")
    pictures = browser.value(
        "Promise.all([...document.querySelectorAll('.frames img')].map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert pictures == [64] * 6
    captions = browser.value("[...document.querySelectorAll('.frames figcaption')].map(c => c.textContent)")
    assert captions[1] == "0.625 s#5<0.3 seconds>", captions
    assert "every byte equals what the model was shown" in text(browser, "view-body")
    marks = browser.value("[...document.querySelectorAll('.prompt mark')].map(m => m.textContent)")
    assert marks == ["<0.3 seconds>", "<1.4 seconds>", "<2.6 seconds>"]
    browser.value("document.getElementById('view').close()")
    browser.value(f"document.querySelector('tr[data-place=\"{gone}\"] .open').click()")
    assert "no such file" in text(browser, "view-body")
    assert browser.value("document.querySelectorAll('dialog img').length") == 0


def test_five_thousand_rows_are_no_more_work_than_a_hundred(browser: Browser, thousands: Path) -> None:
    browser.open(thousands)
    nodes = "document.querySelectorAll('*').length"
    assert text(browser, "count") == "5,000 of 5,000 rows" and len(ids(browser)) == 100
    assert browser.value(nodes) < 2500
    for _ in range(3):
        browser.value("document.getElementById('next').click()")
    assert ids(browser)[0] == "row 300" and text(browser, "place") == "301 to 400"
    browser.value("document.querySelector('#heads button').click()")
    assert ids(browser)[:3] == ["row 0", "row 1", "row 2"], "numbers in names count as numbers"
    assert browser.value(nodes) < 2500
    # Filtering all rows must fit between two key presses; a bound that only a page that draws all rows would miss.
    browser.value("document.getElementById('search').focus()")
    browser.type("row 4711")
    assert ids(browser) == ["row 4711"] and browser.problems() == []


def test_filters_work_together_and_can_be_cleared(browser: Browser, thousands: Path) -> None:
    browser.open(thousands)
    browser.value("document.getElementById('mark').value = 'right'; "
                  "document.getElementById('mark').dispatchEvent(new Event('change'))")  # fmt: skip
    right = sum(n % 7 == n % 5 for n in range(5000) if n != 4711)
    assert text(browser, "count") == f"{right:,} of 5,000 rows"
    browser.value("document.getElementById('search').focus()")
    browser.type("89? WHAT")
    expected = [f"row {n}" for n in range(89, 5000, 100) if n % 7 == n % 5]
    assert ids(browser) == expected != [], "every word must be there, of whatever case and in whatever order"
    browser.value("document.getElementById('clear').click(); new Promise(done => setTimeout(done, 50))")
    assert text(browser, "count") == "5,000 of 5,000 rows"
    browser.value("document.getElementById('status').value = 'not_found'; "
                  "document.getElementById('status').dispatchEvent(new Event('change'))")  # fmt: skip
    assert ids(browser) == ["row 4711"]


def test_columns_sort_both_ways_and_say_so(browser: Browser, thousands: Path) -> None:
    browser.open(thousands)
    heads = browser.value("[...document.querySelectorAll('#heads button')].map(b => b.firstChild.textContent)")
    column = heads.index("Tokens in")
    tokens = f"[...document.querySelectorAll('#body tr')].map(r => Number(r.children[{column}].textContent))"
    for direction, edge in (("descending", 149), ("ascending", 100)):
        browser.value(f"document.querySelectorAll('#heads button')[{column}].click()")
        assert browser.value(f"document.querySelectorAll('#heads th')[{column}].ariaSort") == direction
        assert set(browser.value(tokens)) == {edge}
    assert browser.value("document.querySelectorAll('#heads th[aria-sort=ascending]').length") == 1


def test_everything_is_done_with_the_keyboard(browser: Browser, thousands: Path) -> None:
    browser.open(thousands)
    browser.value("document.querySelector('#body .open').focus()")
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", "focus can be seen"
    browser.press("Enter")
    assert browser.value("document.getElementById('view').open") and text(browser, "view-title") == "row 0"
    browser.press("ArrowRight", times=2)
    browser.press("ArrowLeft")
    assert text(browser, "view-title") == "row 1"
    browser.press("Tab", times=3)
    assert browser.value("document.activeElement.id") == "view-close", "previous, next, close"
    browser.press("Escape")
    assert not browser.value("document.getElementById('view').open")
    back = "new Promise(done => { const look = () => document.activeElement.textContent === 'row 1' ? done(true) : "
    assert browser.value(f"{back} setTimeout(look, 10); look(); }})"), "the focus goes to the row that was open last"
    unnamed = (
        "[...document.querySelectorAll('button, input, select')].filter(e => !e.hidden && !(e.textContent.trim() || "
        "e.ariaLabel || e.labels?.length)).length"
    )
    assert browser.value(unnamed) == 0 and browser.problems() == []
