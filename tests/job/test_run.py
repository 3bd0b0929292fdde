"""Whole runs with the scripted engine: every row once, whatever the engine or the files do."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vidpipe.engine.fake import FakePreparer
from vidpipe.engine.interface import Prepared, Request
from vidpipe.errors import CapabilityError, EngineError, ManifestError, RecipeError
from vidpipe.job import sharding
from vidpipe.job.budget import Place
from vidpipe.job.decoders import Decoders
from vidpipe.job.prepare import ClipReader, Outlook, PreparedClip
from vidpipe.job.progress import Progress
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import RunResult, run
from vidpipe.job.work import ClipInputs
from vidpipe.plan.clips import Clip
from vidpipe.recipe.load import load_recipe
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import add_shards, read_order
from vidpipe.record.status import read_status

Make = Callable[..., Path]


class Watcher:
    """A display that remembers."""

    def __init__(self) -> None:
        self.begun: tuple[int, int] | None = None
        self.states: list[str] = []
        self.rows: list[OutputRow] = []
        self.ended = 0

    def begin(self, rows: int, done: int) -> None:
        self.begun = (rows, done)

    def state(self, text: str) -> None:
        self.states.append(text)

    def warn(self, text: str) -> None:
        self.states.append(text)

    def row(self, row: OutputRow) -> None:
        self.rows.append(row)

    def show(self, progress: Progress) -> None:
        self.last = progress

    def end(self) -> None:
        self.ended += 1


def go(recipe: Path, watcher: Watcher | None = None, **options: Any) -> RunResult:
    assignments = options.pop("assignments", [])
    prospect = look_ahead(load_recipe(recipe, assignments))
    return run(prospect, recipe.parent / "run", watcher or Watcher(), **options)


def rows_of(result: RunResult) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(result.results).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def test_every_row_once_with_what_the_model_saw(make_run: Make) -> None:
    watcher = Watcher()
    result = go(make_run(script={"texts": {"r3": "three"}}), watcher)
    rows = rows_of(result)
    assert list(rows) == [f"r{i}" for i in range(8)], "manifest order"
    assert rows["r3"]["text"] == "three" and rows["r0"]["text"] == "fake"
    row = rows["r0"]
    assert row["status"] == "ok" and row["clip_id"] == "a.mp4" and row["video"] == "a.mp4"
    assert row["frames"]["indices"] == [0, 5, 9, 14, 18, 23] and row["frames"]["size_wh"] == [64, 64]
    assert row["frames"]["times_s"] == pytest.approx([i / 8 for i in row["frames"]["indices"]])
    assert row["vision_tokens"] == {"asked": 12, "kept": None} and row["media"]["outcome"] == "ok"
    assert row["resolved"]["engine"] == "fake 1"
    metadata = pq.read_schema(result.results).metadata
    resolved = json.loads(metadata[b"vidpipe.resolved"])[row["resolved"]["sha"]]
    assert resolved["sampling"]["fps"] == 2.0 and resolved["generation"]["max_tokens"] == 64
    assert json.loads(metadata[b"vidpipe.run"])["versions"]["vidpipe"]
    assert watcher.begun == (8, 0) and len(watcher.rows) == 8 and watcher.ended == 1
    assert watcher.states == ["planning 8 rows: reading the headers of 2 clips", "starting fake 1", "running fake 1"]
    last = watcher.last
    assert (last.phase, last.rows, last.recorded, last.recorded_here) == ("ended", 8, 8, 8)
    assert last.statuses == {"ok": 8} and last.seconds_left == 0.0 and last.waits_for is None
    assert last.tokens_in == sum(row["tokens_in"] for row in rows.values())
    assert last.gauges is not None and last.gauges.clips == 2 and last.gauges.decode_core_s > 0
    assert not list(result.results.parent.glob("progress.*")), "it ended in order"


def test_each_clip_is_decoded_once(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    original = Decoders.read

    def counting(self: Decoders, clip: Clip, place: Place) -> Future[PreparedClip | ClipInputs]:
        decoded.append(clip.name)
        return original(self, clip, place)

    monkeypatch.setattr(Decoders, "read", counting)
    go(make_run())
    assert sorted(decoded) == ["a.mp4", "b.mp4"]


@pytest.mark.parametrize("where", ["workers", "engine"])
def test_clips_are_prepared_where_the_recipe_says(make_run: Make, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    here: list[str] = []
    original = FakePreparer.prepare

    def counting(self: FakePreparer, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        here.extend(request.id for request in requests)
        return original(self, requests, identities)

    monkeypatch.setattr(FakePreparer, "prepare", counting)
    rows = rows_of(go(make_run(feed={"prepare": where})))
    assert len(here) == (8 if where == "engine" else 0)
    assert all(row["status"] == "ok" and row["seconds"]["prepare"] >= 0 for row in rows.values())


class Accidents(ClipReader):
    """Reads as always, but dies or hangs at clips of certain names, as native decoders do."""

    def read(self, clip: Clip) -> PreparedClip:
        if clip.name == "segv.mp4":
            os.kill(os.getpid(), signal.SIGSEGV)
        if clip.name == "hang.mp4":
            time.sleep(600)
        return super().read(clip)


def test_a_decoder_that_crashes_or_hangs_costs_its_clip(make_run: Make, make_clip: Make) -> None:
    videos = ["a.mp4", "segv.mp4", "b.mp4", "hang.mp4", "a.mp4"]
    make_clip("segv.mp4")
    make_clip("hang.mp4")
    rows = [{"id": f"r{i}", "video": video, "question": "?"} for i, video in enumerate(videos)]
    prospect = look_ahead(load_recipe(make_run(rows, media={"decode_timeout_s": 2.0}), []))
    fields = {field.name: getattr(prospect.reader, field.name) for field in dataclasses.fields(ClipReader)}
    prospect = dataclasses.replace(prospect, reader=Accidents(**fields))
    found = rows_of(run(prospect, prospect.loaded.folder / "run", Watcher()))
    assert [found[f"r{i}"]["error_kind"] for i in range(5)] == [None, "corrupt", None, "timeout", None]
    assert "SIGSEGV" in found["r1"]["error"] and "media.decode_timeout_s" in found["r3"]["error"]


class Faulty(ClipReader):
    """Has a bug that shows with clips of a certain name."""

    def look(self, clip: Clip, *, tell: bool = False) -> Outlook:
        if clip.name == "odd.mp4":
            raise ZeroDivisionError("of ours")
        return super().look(clip, tell=tell)


def test_a_fault_of_ours_costs_its_clip(make_run: Make, make_clip: Make) -> None:
    make_clip("odd.mp4")
    rows = [{"id": video, "video": video, "question": "?"} for video in ("a.mp4", "odd.mp4", "b.mp4")]
    prospect = look_ahead(load_recipe(make_run(rows), []))
    fields = {field.name: getattr(prospect.reader, field.name) for field in dataclasses.fields(ClipReader)}
    prospect = dataclasses.replace(prospect, reader=Faulty(**fields))
    found = rows_of(run(prospect, prospect.loaded.folder / "run", Watcher()))
    assert [row["error_kind"] for row in found.values()] == [None, "corrupt", None]
    assert "ZeroDivisionError" in found["odd.mp4"]["error"]


def test_clips_of_an_allowed_scheme_are_fetched(make_run: Make, tmp_path: Path) -> None:
    recipe = make_run([{"id": "r", "video": "http://127.0.0.1:9/x.mp4", "question": "?"}], media={"schemes": ["http"]})
    assert rows_of(go(recipe))["r"]["error_kind"] == "not_openable", "nobody listens there, but it was tried"
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.mp4"
        recipe = make_run([{"id": "r", "video": url, "question": "?"}], media={"schemes": ["http"]})
        row = rows_of(go(recipe, fresh=True))["r"]
        server.shutdown()
    assert row["status"] == "ok" and row["clip_id"] == url and row["frames"]["count"] == 6


def test_again_there_is_nothing_to_do(make_run: Make) -> None:
    recipe = make_run()
    go(recipe)
    watcher = Watcher()
    before = (recipe.parent / "run" / "results.parquet").stat().st_mtime_ns
    result = go(recipe, watcher)
    assert result.answered_now == 0 and result.summary.complete
    assert watcher.rows == [] and watcher.states == [], "the engine was not started"
    assert result.results.stat().st_mtime_ns == before


def test_rows_added_later_are_added(make_run: Make) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?"} for i in range(3)]
    recipe = make_run(rows)
    go(recipe)
    watcher = Watcher()
    go(make_run([{"id": "first", "video": "b.mp4", "question": "?", "note": 1}, *rows]), watcher)
    assert [row.id for row in watcher.rows] == ["first"]
    assert watcher.begun == (4, 3)
    table = pq.read_table(recipe.parent / "run" / "results.parquet")
    assert table.num_rows == 4 and sorted(filter(None, table["note"].to_pylist())) == ["1"]


def test_a_changed_row_is_refused(make_run: Make) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?"} for i in range(3)]
    go(make_run(rows))
    with pytest.raises(RecipeError, match=r"1 row .*'r1'(.|\n)*--fresh"):
        go(make_run([rows[0], {**rows[1], "question": "Why?"}, rows[2]]))
    with pytest.raises(RecipeError, match="changed or went away"):
        go(make_run(rows[:2]))


def test_limit_then_the_rest(make_run: Make) -> None:
    recipe = make_run()
    first = go(recipe, limit=3)
    assert sorted(rows_of(first)) == ["r0", "r1", "r2"] and not first.summary.complete
    assert go(recipe).answered_now == 5


def test_a_run_killed_once_it_has_its_plan_keeps_the_manifests_order(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def planned_and_killed(*arguments: Any) -> None:
        add_shards(*arguments)
        raise KilledError

    recipe = make_run()
    monkeypatch.setattr(sharding, "add_shards", planned_and_killed)
    with pytest.raises(KilledError):
        go(recipe)
    assert read_order(RunDir(tmp_path / "run")).to_pylist() == [f"r{i}" for i in range(8)]


def test_another_recipe_is_refused_and_fresh_forgets(make_run: Make) -> None:
    recipe = make_run()
    go(recipe)
    with pytest.raises(RecipeError, match=r"generation.max_tokens: 64 -> 8(.|\n)*--fresh"):
        go(recipe, assignments=["generation.max_tokens=8"])
    go(recipe, assignments=["output.tolerance=0.5"])
    assert go(recipe, assignments=["generation.max_tokens=8"], fresh=True).answered_now == 8


def test_bad_rows_cost_themselves(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "page.mp4").write_text("<html>not found</html>")
    (tmp_path / "folder.mp4").mkdir()
    videos = {"none.mp4": "not_found", "empty.mp4": "empty_file", "page.mp4": "not_media", "folder.mp4": "not_a_file",
              "http://127.0.0.1:9/x.mp4": "protocol"}  # fmt: skip
    rows: list[dict[str, Any]] = [{"id": video, "video": video, "question": "?"} for video in videos]
    rows += [
        {"id": "good", "video": "a.mp4", "question": "?"},
        {"id": "mute", "video": "a.mp4"},
        {"id": "late", "video": "a.mp4", "question": "?", "clip_start": 99},
        {"id": "long", "video": "a.mp4", "question": "?"},
        {"id": "bad fps", "video": "a.mp4", "question": "?", "sampling.fps": "many"},
    ]
    found = rows_of(go(make_run(rows, script={"refuse": {"long": "prompt_too_long"}})))
    assert {row_id: found[row_id]["error_kind"] for row_id in videos} == videos
    assert all(found[row_id]["status"] == "media_error" and found[row_id]["error"] for row_id in videos)
    assert found["good"]["status"] == "ok"
    kinds = {"mute": "missing_field", "late": "bad_window", "long": "prompt_too_long", "bad fps": "bad_value"}
    assert {row_id: found[row_id]["error_kind"] for row_id in kinds} == kinds
    assert found["long"]["status"] == "row_error" and found["long"]["frames"] is not None
    assert found["mute"]["video"] == "a.mp4", "the manifest's own columns stand in failed rows too"


def test_media_root_is_a_border_only_where_it_is_named(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    rows = [{"id": "r", "video": "../a.mp4", "question": "?"}]
    found = rows_of(go(make_run(rows, media_root="inside")))
    assert found["r"]["error_kind"] == "outside_root"
    allowed = go(make_run(rows, media_root="inside", media={"allow_outside_root": True}), fresh=True)
    assert rows_of(allowed)["r"]["status"] == "ok"


def test_partial_clips_are_marked_or_failed(make_run: Make, make_clip: Make) -> None:
    whole = make_clip("cut.mp4", frames=64).read_bytes()
    path = make_clip("cut.mp4", frames=64)
    # The index stands at the end of this file: blank the last third of the pictures instead of cutting it off.
    start = whole.index(b"mdat") + 4
    end = whole.index(b"moov") - 4
    damaged = bytearray(whole)
    damaged[end - (end - start) // 3 : end] = bytes((end - start) // 3)
    path.write_bytes(damaged)
    rows = [{"id": "r", "video": "cut.mp4", "question": "?"}]
    row = rows_of(go(make_run(rows)))["r"]
    assert row["status"] == "ok" and row["media"]["outcome"] == "ok_partial" and row["media"]["frames_missing"] > 0
    failed = rows_of(go(make_run(rows, media={"on_partial": "fail"}), fresh=True))["r"]
    assert failed["status"] == "media_error" and failed["error_kind"] == "corrupt"


def test_replies_are_matched_by_id(make_run: Make) -> None:
    order = ["r7", "r0", "r3", "r3", "r2", "r1", "r6", "r5", "r4"]
    texts: dict[str, Any] = {f"r{i}": f"text {i}" for i in range(8)}
    result = go(make_run(script={"order": order, "texts": texts}))
    assert {row_id: row["text"] for row_id, row in rows_of(result).items()} == texts


def test_three_ways_to_say_nothing_are_three_states(make_run: Make) -> None:
    found = rows_of(go(make_run(script={"texts": {"r2": None, "r4": ""}, "lengths": ["r6"]})))
    assert (found["r2"]["status"], found["r2"]["error_kind"], found["r2"]["text"]) == (
        "row_error",
        "no_completion",
        None,
    )
    assert (found["r4"]["status"], found["r4"]["text"]) == ("ok", "")
    assert (found["r6"]["status"], found["r6"]["finish_reason"]) == ("length", "length")


def test_a_dead_engine_keeps_what_is_finished(make_run: Make) -> None:
    recipe = make_run(script={"die_after": 3}, retry={"engine_restarts": 0})
    with pytest.raises(EngineError, match=r"own output is in .*\.log"):
        go(recipe)
    status = read_status(recipe.parent / "run")
    assert status.statuses == {"ok": 3} and status.workers == (), "no row is blamed for the engine"


def test_a_row_that_kills_the_engine_again_and_again_is_given_up(make_run: Make, tmp_path: Path) -> None:
    recipe = make_run(script={"die_on": ["r3"]}, retry={"attempts": 2, "engine_restarts": 0})
    for _ in range(2):
        with pytest.raises(EngineError):
            go(recipe)
    found = rows_of(go(recipe))
    assert found["r3"]["status"] == "engine_error" and found["r3"]["error_kind"] == "poison_row"
    assert found["r3"]["attempt"] == 2
    others = [row for row in found.values() if row["id"] != "r3"]
    assert len(others) == 7 and all(row["status"] == "ok" for row in others)


def test_of_two_engines_only_the_dead_one_leaves_suspects(make_run: Make) -> None:
    rows = [{"id": f"{clip}{i}", "video": f"{clip}.mp4", "question": "?"} for i in range(6) for clip in "ab"]
    engine = {"name": "fake", "data_parallel": 2, "args": {"die_on": ["b3"], "seconds_per_reply": 0.02}}
    watcher = Watcher()
    found = rows_of(go(make_run(rows, engine=engine, retry={"attempts": 2}), watcher))
    assert {name for name, row in found.items() if row["status"] != "ok"} == {"b3"}
    assert found["b3"]["error_kind"] == "poison_row"
    assert all(found[f"a{i}"]["attempt"] == 1 for i in range(6)), "the other engine finished what it had"
    assert sum("starting it again" in state for state in watcher.states) == 2


def test_an_engine_that_does_not_start(make_run: Make) -> None:
    with pytest.raises(EngineError) as caught:
        go(make_run(script={"fail_start": True}))
    assert caught.value.kind == "engine_start"


def test_refusals_come_before_the_engine(make_run: Make) -> None:
    watcher = Watcher()
    with pytest.raises(ManifestError, match="line 2"):
        go(make_run([{"id": "x", "video": "a.mp4", "question": "?"}] * 2), watcher)
    with pytest.raises(CapabilityError, match="encoder_graphs"):
        go(make_run(engine={"name": "fake", "encoder_graphs": "on"}), watcher)
    with pytest.raises(RecipeError, match="media_root"):
        go(make_run(media_root="nowhere"), watcher)
    assert watcher.states == []


def test_an_empty_manifest_gives_an_empty_result(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("id,video,question\n")
    watcher = Watcher()
    result = go(make_run(manifest="empty.csv"), watcher)
    table = pq.read_table(result.results)
    assert table.num_rows == 0 and {"id", "frames", "question"} <= set(table.schema.names)
    assert watcher.states == [] and result.summary.complete


def test_exact_matches_are_counted(make_run: Make) -> None:
    rows = [
        {"id": str(i), "video": "a.mp4", "question": "?", **({"answer": answer} if answer is not None else {})}
        for i, answer in enumerate(["fake", "true", 3, None])
    ]
    summary = go(make_run(rows)).summary
    assert (summary.matches, summary.with_answer) == (1, 3)
    assert summary.samples[0].answer == "fake"
