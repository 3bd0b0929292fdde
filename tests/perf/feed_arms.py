"""The arms of `feed.py`, in a few processes: `python feed_arms.py A|B|D|D1|P FOLDER OPTIONS_JSON`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from vidpipe.engine import vllm_environment
from vidpipe.engine.interface import Engine, EngineInput, Reply
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.errors import MediaError
from vidpipe.job.budget import ByteBudget, default_limit
from vidpipe.job.decoders import Decoders
from vidpipe.job.host import cores
from vidpipe.job.prepare import PreparedClip
from vidpipe.job.progress import Progress
from vidpipe.job.prospect import Prospect, look_ahead
from vidpipe.job.run import run
from vidpipe.job.work import ClipInputs, prepare
from vidpipe.plan.clips import Clip
from vidpipe.recipe.load import load_recipe
from vidpipe.record.row import OutputRow

BEGAN_S = time.monotonic()
MARK = "figures: "
"""Before a line of figures; whatever else a process prints is its log."""
Arms = Iterator[tuple[str, dict[str, Any]]]


def main() -> None:
    """Run one process's arms, print the figures of each on a line of its own as soon as they are there."""
    process, folder, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    arms = {"A": ready_inputs, "B": chat, "D": whole, "D1": whole_fresh, "P": decoding}[process]
    for arm, figures in arms(folder, options):
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        figures |= {
            "peak_rss_mib": own.ru_maxrss / 1024,
            "worker_rss_mib": children.ru_maxrss / 1024,
            "cpu_s": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        }
        print(f"{MARK}{json.dumps({arm: figures})}", flush=True)


def prospect_of(folder: Path, options: dict[str, Any], rows: str) -> Prospect:
    """The recipe of all arms; nominal times, because the plain loop knows no others."""
    recipe = {
        "manifest": rows,
        "model": {"path": options["model"]},
        "sampling": {"fps": 2, "time_base": "nominal"},
        "generation": {"max_tokens": options["max_tokens"]},
        "engine": {"args": options["engine_args"]},
        "feed": options["feed"],
        "output": {"tolerance": 0.5},
    }
    path = folder / f"recipe-{rows}.yaml"
    path.write_text(json.dumps(recipe))
    return look_ahead(load_recipe(path, []))


def ready_inputs(folder: Path, options: dict[str, Any]) -> Arms:
    """A, A1: everything decoded and prepared beforehand, grouped; only the engine is measured."""
    prospect = prospect_of(folder, options, "grouped.jsonl")
    engine = VllmEngine(prospect.recipe.model, prospect.recipe.engine, prospect.checkpoint.location)
    engine.start()
    startup_s = time.monotonic() - BEGAN_S
    for arm, rows in (("A", "grouped.jsonl"), ("A1", "fresh.jsonl")):
        prospect = prospect_of(folder, options, rows)
        inputs: list[EngineInput] = []
        for clip, made in through_workers(prospect, engine, 2**60):
            done = prepare(prospect.recipe, engine.preparer, clip, made) if isinstance(made, PreparedClip) else made
            inputs += [one for one in done.inputs if isinstance(one, EngineInput)]
        yield arm, answered(engine, inputs) | {"startup_s": startup_s}
        engine._engine.reset_prefix_cache()
    engine.stop()


def answered(engine: VllmEngine, inputs: list[EngineInput]) -> dict[str, Any]:
    """Give the engine all inputs, as fast as it takes them."""
    waiting, prompts, finished_s = list(reversed(inputs)), {}, []
    before = prefix_counts(engine)
    start_s = time.monotonic()
    in_engine = 0
    while waiting or in_engine:
        while waiting and in_engine < 2 * engine.batch_rows:
            engine.submit(waiting.pop())
            in_engine += 1
        for reply in engine.poll():
            assert isinstance(reply, Reply), reply
            in_engine -= 1
            finished_s.append(time.monotonic())
            prompts[reply.id] = [reply.prompt_sha, reply.text]
    hits = share_of_hits(before, prefix_counts(engine))
    return figures_of(finished_s, 0.0, start_s) | {"prompts": prompts, "prefix_hits": hits}


def through_workers(
    prospect: Prospect, engine: Engine | None, limit: int
) -> Iterator[tuple[Clip, PreparedClip | ClipInputs]]:
    """The clips that decode, in order, read ahead by all cores; prepared there too, if that pays with the engine."""
    preparer = engine.preparer if engine and engine.capabilities.prepare_in_workers else None
    budget = ByteBudget(limit)
    with Decoders(prospect.reader, cores(), budget, preparer) as decoders:
        clips = prospect.plan(prospect.manifest.rows).clips
        places = [budget.queue() for _ in clips]
        futures = deque(decoders.read(clip, place) for clip, place in zip(clips, places, strict=True))
        for clip, place in zip(clips, places, strict=True):
            with contextlib.suppress(MediaError):
                yield clip, futures.popleft().result()
            budget.leave(place)


def decoding(folder: Path, options: dict[str, Any]) -> Arms:
    """P: no engine at all; the rate at which this host can decode clips with one question each."""
    prospect = prospect_of(folder, options, "fresh.jsonl")
    start_s = time.monotonic()
    finished_s: list[float] = []
    decode_s = clips = 0.0
    for clip, made in through_workers(prospect, None, default_limit()):
        finished_s += [time.monotonic()] * len(clip.rows)
        decode_s, clips = decode_s + made.seen.decode_core_s, clips + 1
    yield "P", figures_of(finished_s, 0.0, start_s) | {"decode_core_s_per_clip": decode_s / clips}


def chat(folder: Path, options: dict[str, Any]) -> Arms:
    """B, B2, B1: what people write today. Rows that would raise for the whole call are left out of the sample."""
    vllm_environment.prepare(options["model"])
    from vllm import LLM

    llm = LLM(
        model=options["model"],
        seed=0,
        enforce_eager=vllm_environment.is_cpu_build(),
        limit_mm_per_prompt={"video": 1, "image": 0},
        allowed_local_media_path=str(folder),
        media_io_kwargs={"video": {"fps": 2, "num_frames": -1, "video_backend": "qwen3_vl"}},
        **options["engine_args"],
    )
    startup_s = time.monotonic() - BEGAN_S
    for arm, name in (("B", "sample.jsonl"), ("B2", "sample.jsonl"), ("B1", "fresh-sample.jsonl")):
        rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        if arm == "B2":
            random.Random(1).shuffle(rows)
        yield arm, chatted(llm, folder, rows, options["max_tokens"]) | {"startup_s": startup_s}
        llm.reset_prefix_cache()
        llm.reset_mm_cache()


def chatted(llm: Any, folder: Path, rows: list[dict[str, Any]], max_tokens: int) -> dict[str, Any]:
    """One call of `LLM.chat`."""
    from vllm import SamplingParams

    conversations: list[Any] = [
        [
            {
                "role": "user",
                "content": [
                    {"type": "video_url", "video_url": {"url": (folder / row["video"]).resolve().as_uri()}},
                    {"type": "text", "text": row["question"]},
                ],
            }
        ]
        for row in rows
    ]
    start_s = time.monotonic()
    outputs = llm.chat(conversations, SamplingParams(temperature=0, max_tokens=max_tokens), use_tqdm=False)
    took_s = time.monotonic() - start_s
    prompts = {}
    for row, output in zip(rows, outputs, strict=True):
        ids = np.asarray(output.prompt_token_ids, "<i4")
        prompts[row["id"]] = [hashlib.sha256(ids.tobytes()).hexdigest(), output.outputs[0].text]
    return {"rows": len(rows), "rows_per_s": len(rows) / took_s, "took_s": took_s, "prompts": prompts}


class Stopwatch:
    """A display that notes when each row was recorded."""

    def __init__(self) -> None:
        self.rows: dict[str, OutputRow] = {}
        self.finished_s: list[float] = []
        self.running_s = 0.0

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""

    def state(self, text: str) -> None:
        """See `Display.state`."""
        if text.startswith("running"):
            self.running_s = time.monotonic()

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""
        self.rows[row.id] = row
        if row.status in ("ok", "length"):
            self.finished_s.append(time.monotonic())

    def warn(self, text: str) -> None:
        pass

    def show(self, progress: Progress) -> None:
        pass

    def end(self) -> None:
        """See `Display.end`."""


def whole(folder: Path, options: dict[str, Any]) -> Arms:
    """D: the whole of vidpipe on shuffled rows."""
    yield "D", ran(folder, options, "rows.jsonl")


def whole_fresh(folder: Path, options: dict[str, Any]) -> Arms:
    """D1: the same with one question a clip."""
    yield "D1", ran(folder, options, "fresh.jsonl")


def ran(folder: Path, options: dict[str, Any], rows: str) -> dict[str, Any]:
    """A run of vidpipe."""
    hits: list[float | None] = []

    class Counted(VllmEngine):
        def stop(self) -> None:
            if hasattr(self, "_engine"):
                hits.append(share_of_hits((0, 0), prefix_counts(self)))
            super().stop()

    display = Stopwatch()
    prospect = prospect_of(folder, options, rows)
    with patch("vidpipe.job.run.make_engine", Counted):
        result = run(prospect, folder / f"run-{rows}", display, fresh=True)
    feed = result.feed
    assert feed is not None
    statuses = dict(result.summary.statuses)
    prompts = {r.id: [r.prompt_sha, r.text] for r in display.rows.values() if r.text is not None}
    startup_s = display.running_s - BEGAN_S
    return figures_of(display.finished_s, startup_s, display.running_s) | {
        "statuses": statuses,
        "prompts": prompts,
        "idle_s": dict(feed.idle_s),
        "decode_s_per_clip": feed.decode_s / max(1, feed.clips),
        "decode_core_s_per_clip": (feed.decode_core_s or 0.0) / max(1, feed.clips),
        "prepare_s_per_clip": feed.prepare_s / max(1, feed.clips),
        "transfer_s_per_clip": feed.transfer_s / max(1, feed.clips),
        "clips": feed.clips,
        "workers": feed.workers,
        "peak_media_mib": feed.peak_media_bytes / 2**20,
        "prefix_hits": hits[0],
    }


def figures_of(finished_s: list[float], startup_s: float, start_s: float) -> dict[str, Any]:
    """Rate from the first to the last finished row, and the time to the first."""
    took_s = finished_s[-1] - finished_s[0]
    return {
        "rows": len(finished_s),
        "rows_per_s": (len(finished_s) - 1) / took_s if took_s else 0.0,
        "startup_s": startup_s,
        "first_row_s": finished_s[0] - start_s,
        "took_s": took_s,
    }


def prefix_counts(engine: VllmEngine) -> tuple[int, int]:
    """Prompt tokens that the prefix cache was asked for, and that it had."""
    counted = {metric.name: getattr(metric, "value", 0) for metric in engine._engine.get_metrics()}
    return counted.get("vllm:prefix_cache_queries", 0), counted.get("vllm:prefix_cache_hits", 0)


def share_of_hits(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """Between two counts."""
    asked, had = after[0] - before[0], after[1] - before[1]
    return had / asked if asked else None


if __name__ == "__main__":
    main()
