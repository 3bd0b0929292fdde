"""Rows that no engine can answer: recorded without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.job.test_run import Make, Watcher
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import run
from vidpipe.job.unanswerable import rows_in_vain
from vidpipe.recipe.load import load_recipe


def test_no_engine_is_started_for_rows_that_none_can_answer(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "noise.mp4").write_bytes(b"no video" * 1000)
    rows = [
        {"id": "gone", "video": "none.mp4", "question": "?"},
        {"id": "broken", "video": "noise.mp4", "question": "?"},
        {"id": "wrong", "video": "a.mp4", "question": "?", "clip_start": 3, "clip_end": 2},
    ]
    recipe, watcher = make_run(rows, script={"fail_start": True}), Watcher()
    result = run(look_ahead(load_recipe(recipe, [])), tmp_path / "run", watcher)
    assert result.summary.statuses == {"media_error": 2, "row_error": 1} and result.feed is None
    (said,) = [state for state in watcher.states if "no row can be answered" in state]
    assert "3 rows to come" in said and "no engine is started" in said


def test_a_file_that_came_back_gets_its_engine_all_the_same(
    make_run: Make, tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    """Planned while it was missing: what the plan promised is a hint and no verdict."""
    rows = [{"id": name, "video": f"{name}.mp4", "question": "?"} for name in ("late", "never")]
    prospect = look_ahead(load_recipe(make_run(rows), []))

    class Late(Watcher):
        def warn(self, text: str) -> None:
            super().warn(text)
            make_clip("late.mp4")

    watcher = Late()
    result = run(prospect, tmp_path / "run", watcher)
    assert any("no row can be answered" in state for state in watcher.states)
    assert result.summary.statuses == {"ok": 1, "media_error": 1}


def test_rows_to_come_are_in_vain_only_where_none_is_promised_an_answer() -> None:
    seen = {"ok": 3, "media_error": 1}
    assert rows_in_vain([{"failed_rows": 2}], 5, [seen]) == 1
    assert rows_in_vain([{"failed_rows": 1}, {"failed_rows": 1}], 5, [{"ok": 3}, {"media_error": 1}]) == 1
    assert rows_in_vain([{"failed_rows": 1}], 5, [seen]) == 0, "one is promised an answer"
    assert rows_in_vain([{"failed_rows": 5}], 5, []) == 5
    assert rows_in_vain([{}, {"failed_rows": 5}], 5, []) == 0, "of an older version nothing is known"
