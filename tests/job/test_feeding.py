"""The feed with the scripted engine: bounded, once a clip, and honest about who kept the engine waiting."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.job.test_run import Watcher, rows_of
from vidpipe.engine.fake import FakeEngine, FakePreparer
from vidpipe.engine.interface import EngineInput, Prepared, Refusal, Reply, Request
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.job import answer, decoders
from vidpipe.job.budget import ByteBudget, Place
from vidpipe.job.decoders import Decoders
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import RunResult, run
from vidpipe.job.watchdog import Watchdog
from vidpipe.plan.clips import Clip
from vidpipe.recipe.load import load_recipe
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_shards

Make = Callable[..., Path]


class Noting(ClipReader):
    """Notes each clip that it decodes, in a file, for it does so in several processes."""

    def read(self, clip: Clip) -> PreparedClip:
        with (self.media_root / "decoded.txt").open("a") as file:
            file.write(f"{clip.name} {clip.first.row.media[0].start_s}\n")
        return super().read(clip)


class Slow(ClipReader):
    """Takes its time over every clip."""

    def read(self, clip: Clip) -> PreparedClip:
        time.sleep(0.6)
        return super().read(clip)


def go(recipe: Path, reader: type[ClipReader]) -> RunResult:
    prospect = look_ahead(load_recipe(recipe, []))
    fields = {field.name: getattr(prospect.reader, field.name) for field in dataclasses.fields(ClipReader)}
    return run(dataclasses.replace(prospect, reader=reader(**fields)), recipe.parent / "run", Watcher())


def windows(rows: int) -> list[dict[str, Any]]:
    """Rows on many clips: two rows a part of one of two files, shuffled."""
    found = [
        {"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?", "clip_start": (i // 4) * 0.1}
        for i in range(rows)
    ]
    return found[::3] + found[1::3] + found[2::3]


def test_bytes_in_flight_stay_in_the_budget_and_each_clip_is_decoded_once(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    original = ByteBudget._set

    def watched(self: ByteBudget, place: Any, nbytes: int) -> None:
        original(self, place, nbytes)
        seen.append(self._used)

    monkeypatch.setattr(ByteBudget, "_set", watched)
    limit = 1_500_000  # a clip of 6 frames is reckoned as at most 400 kB
    feed = {"memory": limit, "workers": 3, "queue_depth": 100}
    result = go(make_run(windows(40), script={"seconds_per_reply": 0.005}, feed=feed), Noting)
    assert all(row["status"] == "ok" for row in rows_of(result).values())
    decoded = (result.results.parent.parent / "decoded.txt").read_text().splitlines()
    assert len(decoded) == len(set(decoded)) == 20
    assert 400_000 < max(seen) <= limit and seen[-1] == 0
    assert result.feed is not None and result.feed.peak_media_bytes == max(seen)


def test_a_clip_larger_than_the_budget_passes_alone(make_run: Make) -> None:
    result = go(make_run(windows(12), feed={"memory": "1KiB", "workers": 2}), ClipReader)
    assert all(row["status"] == "ok" for row in rows_of(result).values())
    assert result.feed is not None and result.feed.clips == 6 and result.feed.peak_media_bytes < 500_000


def test_rows_in_the_engine_fit_into_its_kv_cache(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    submit = FakeEngine.submit

    def counted(self: FakeEngine, engine_input: EngineInput) -> None:
        submit(self, engine_input)
        held.append(sum(one.tokens for one in self._waiting.values()))

    monkeypatch.setattr(FakeEngine, "submit", counted)
    generation = {"max_tokens": 1}
    slow = {"seconds_per_reply": 0.1}
    free = make_run(windows(24), script=slow, generation=generation)
    assert go(free, ClipReader).summary.statuses == {"ok": 24}
    shutil.rmtree(free.parent / "run")
    most, held[:] = max(held), []
    bounded = make_run(windows(24), script={**slow, "kv_tokens": 200}, generation=generation)
    assert go(bounded, ClipReader).summary.statuses == {"ok": 24}
    assert 81 < max(held) < 200 + 81 < most, "a row takes 81 tokens, shared ones among them"


def test_all_clips_that_have_come_through_go_to_the_engine_together(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Future[Any]] = []
    found: list[tuple[int, int]] = []
    read, poll = Decoders.read, FakeEngine.poll

    def noted(self: Decoders, clip: Clip, place: Place) -> Future[Any]:
        begun.append(read(self, clip, place))
        return begun[-1]

    def counted(self: FakeEngine) -> list[Reply | Refusal]:
        found.append((len(self._waiting), len(begun)))
        return poll(self)

    monkeypatch.setattr(Decoders, "read", noted)
    monkeypatch.setattr(FakeEngine, "poll", counted)
    monkeypatch.setattr(FakeEngine, "start", lambda self, graphs: futures.wait(begun))
    assert go(make_run(windows(40), feed={"workers": 3}), ClipReader).summary.statuses == {"ok": 40}
    assert found[0] == (4 * 2, 4 + 4), "two rows of one clip more than there are workers; as many clips are begun"


def test_a_starved_engine_gets_more_workers(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "cores", lambda: 5)
    fixed = go(make_run(windows(16), feed={"workers": 1}), Slow).feed
    grown = go(make_run(windows(32)), Slow).feed
    assert fixed is not None and fixed.workers == 1
    assert grown is not None and grown.workers == 5, "begun with 4, for 5 cores"


class Unable(FakePreparer):
    """One that no worker can make ready."""

    def warm_up(self) -> None:
        raise CapabilityError("checkpoint x has no chat template; use an instruction-tuned one.")


def test_a_checkpoint_that_workers_cannot_prepare_for_costs_no_row(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEngine, "preparer", Unable())
    recipe = make_run(feed={"workers": 1})
    with pytest.raises(CapabilityError, match="chat template"):
        go(recipe, ClipReader)
    monkeypatch.undo()
    assert go(recipe, ClipReader).summary.statuses == {"ok": 8}, "nothing was recorded"


def test_what_this_host_lacks_costs_no_row(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(self: Decoders, clip: Clip, place: Place) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(OSError(24, "Too many open files"))
        return future

    recipe = make_run(feed={"workers": 1})
    monkeypatch.setattr(Decoders, "read", lacking)
    with pytest.raises(EngineError, match="Too many open files"):
        go(recipe, ClipReader)
    monkeypatch.undo()
    assert go(recipe, ClipReader).summary.statuses == {"ok": 8}, "nothing was recorded"


def test_the_last_shards_are_single_clips(make_run: Make) -> None:
    recipe = make_run(windows(80))
    result = go(recipe, ClipReader)
    sizes = [len(ids) for ids in read_shards(RunDir(result.results.parent)).ids.values()]
    assert sizes[0] >= 10 and sizes[-1] == 2 and sizes == sorted(sizes, reverse=True) and sum(sizes) == 80


def test_a_slow_decoder_is_named(make_run: Make) -> None:
    feed = go(make_run(windows(16), feed={"workers": 1}), Slow).feed
    assert feed is not None
    assert max(feed.idle_s, key=lambda cause: feed.idle_s[cause]) == "decode" and feed.idle_s["decode"] > 2
    assert "decode" in feed.sentence() and feed.rows == 16


def test_a_slow_preparation_is_named(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    original = FakePreparer.prepare

    def slow(self: FakePreparer, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        time.sleep(0.5)
        return original(self, requests, identities)

    monkeypatch.setattr(FakePreparer, "prepare", slow)
    feed = go(make_run(windows(16)[::2], feed={"prepare": "engine"}), ClipReader).feed
    assert feed is not None
    assert max(feed.idle_s, key=lambda cause: feed.idle_s[cause]) == "prepare" and feed.idle_s["prepare"] > 2


def test_a_slow_start_is_named_and_used(make_run: Make) -> None:
    result = go(make_run(script={"seconds_to_start": 2.0}), Noting)
    assert result.feed is not None and result.feed.idle_s["start"] >= 2.0
    assert result.feed.idle_s["decode"] < 0.5, "clips were decoded meanwhile"


def test_a_busy_engine_is_not_called_idle(make_run: Make) -> None:
    result = go(make_run(script={"seconds_per_reply": 0.2}), ClipReader)
    assert result.feed is not None and result.feed.wall_s > 1.6
    assert sum(result.feed.idle_s.values()) < result.feed.wall_s - 1.5


def test_cheap_clips_come_first_and_then_the_longest(make_run: Make, make_clip: Make) -> None:
    lengths = {"c": 60, "d": 16, "e": 120, "f": 24}
    for name, frames in lengths.items():
        make_clip(f"{name}.mp4", frames=frames)
    result = go(make_run([{"id": name, "video": f"{name}.mp4", "question": "?"} for name in lengths]), ClipReader)
    assert read_shards(RunDir(result.results.parent)).ids == {0: ("d", "f", "e", "c")}


def test_suspects_of_one_clip_are_decoded_together_and_run_apart(make_run: Make) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?"} for i in range(8)]
    result = go(make_run(rows, script={"die_after": 5}), Noting)
    assert all(row["status"] == "ok" for row in rows_of(result).values())
    assert result.feed is not None and result.feed.engine_starts == 2
    decoded = (result.results.parent.parent / "decoded.txt").read_text().splitlines()
    assert len(decoded) == 2, "once for the first engine, once for the three rows that were in it"


def test_the_last_words_of_a_run_give_the_terminal_back(
    make_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog ends a process without further ado, so what it says must end the display."""
    told: list[Callable[[str], None]] = []

    class Noting(Watchdog):
        def __init__(self, limit_s: float, log: Path, last_words: Callable[[str], None]) -> None:
            super().__init__(limit_s, log, last_words)
            told.append(last_words)

    monkeypatch.setattr(answer, "Watchdog", Noting)
    watcher = Watcher()
    run(look_ahead(load_recipe(make_run(), [])), tmp_path / "run", watcher)
    ended = watcher.ended
    (last_words,) = told
    last_words("hung")
    assert watcher.ended == ended + 1 and watcher.states[-1] == "hung"


def test_a_slow_disk_is_not_taken_for_a_hung_engine(tmp_path: Path) -> None:
    said: list[str] = []
    with Watchdog(0.3, tmp_path / "log", said.append) as watchdog:
        time.sleep(0.8)
        assert watchdog.call(lambda: 7) == 7
    assert not said and not (tmp_path / "log").exists()
