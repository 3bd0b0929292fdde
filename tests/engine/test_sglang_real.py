"""The real SGLang on the CPU: the demo's model, and the tiny Moss-VL with a stand-in for flashinfer's kernel.

`make test-sglang`. The two engines start side by side, each in processes of its own; that is most of the time.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.checkpoints import moss_vl as checkpoint
from tests.conftest import ROOT
from tests.engine import moss_reference
from tests.engine.sglang_cpu_kernels import write_plugin
from tests.engine.sglang_stand_in import Engine as StandIn
from tests.engine.test_moss_prepare import video
from vidpipe.engine import sglang_environment, torchvision_on_cpu
from vidpipe.engine.devices import PARALLEL_ARGS
from vidpipe.engine.group import EngineGroup
from vidpipe.engine.interface import Demands, EngineInput, Refusal, Reply, Request, Video
from vidpipe.engine.registry import make_engine
from vidpipe.engine.sglang_engine import OWNED_ARGS
from vidpipe.engine.sglang_prepare import SglangPrompt, _renderers
from vidpipe.engine.sglang_sampling import SEEDED
from vidpipe.errors import EngineError
from vidpipe.recipe.schema import EngineSection, Generation, Model

pytestmark = [pytest.mark.sglang, pytest.mark.skipif(find_spec("sglang") is None, reason="make test-sglang")]

CPU = {
    "device": "cpu", "sampling_backend": "pytorch", "disable_cuda_graph": True, "mem_fraction_static": 0.2,
    "max_running_requests": 4, "context_length": 2048, "max_total_tokens": 16384,
}  # fmt: skip
RETRACT_EVERY = 60
"""Steps of SGLang's scheduler after which, told to test this, it takes a request back where several run."""
ANSWER = 6


@pytest.fixture(scope="module", autouse=True)
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The demo's first rows through the whole of vidpipe, under way while the other tests run."""
    folder = tmp_path_factory.mktemp("demo")
    args = json.dumps({**CPU, "attention_backend": "torch_native", "max_running_requests": 16})
    rows = (ROOT / "data" / "demo" / "rows.jsonl").read_text().splitlines()[:12]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    values = {"manifest": folder / "rows.jsonl", "media_root": ROOT / "data" / "demo", "engine.name": "sglang"}
    settings = [f"{key}={value}" for key, value in {**values, "engine.args": args}.items()]
    command = [sys.executable, "-m", "vidpipe", "run", ROOT / "recipes" / "demo.yaml", "-o", folder / "run"]
    command += [word for setting in settings for word in ("--set", setting)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    yield process, folder / "run"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moss_vl")
    checkpoint.make(folder)
    return folder


@pytest.fixture(scope="module")
def moss(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineGroup]:
    plugin = tmp_path_factory.mktemp("plugin")
    write_plugin(plugin)
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(plugin))  # a member's `PYTHONPATH` is this process's path
    # One place for the checkpoint's code: this process may know another, from before the tests' own cache was set.
    environment = {"HF_MODULES_CACHE": modules_cache(), "SGLANG_TEST_RETRACT": "true"}
    for name, value in {**environment, "SGLANG_TEST_RETRACT_INTERVAL": str(RETRACT_EVERY)}.items():
        patch.setenv(name, value)
    backends = {"prefill_attention_backend": "flashinfer", "decode_attention_backend": "torch_native"}
    settings = EngineSection(name="sglang", args={**CPU, **backends, "dtype": "float32"})
    demands = Demands(architectures=("MossVLForConditionalGeneration",))
    engine = make_engine(Model(path=str(folder), trust_remote_code=True), settings, str(folder), demands)
    assert isinstance(engine, EngineGroup)
    engine.start()
    yield engine
    engine.stop()
    patch.undo()


def modules_cache() -> str:
    torchvision_on_cpu.install()
    from transformers.utils import HF_MODULES_CACHE

    return str(HF_MODULES_CACHE)


def ask(engine: EngineGroup, media: tuple[Video, ...], tokens: int, **questions: str) -> dict[str, SglangPrompt]:
    parts = [{"type": "video"} for _ in media]
    requests = [
        Request(
            name,
            ({"role": "user", "content": [*parts, {"type": "text", "text": text}]},),
            Generation(max_tokens=tokens),
            media,
        )
        for name, text in questions.items()
    ]
    prompts: dict[str, SglangPrompt] = {}
    for made in engine.preparer.prepare(requests, ["clip"] * len(media)).inputs:
        assert isinstance(made, EngineInput), made
        engine.submit(made)
        prompts[made.id] = made.payload
    return prompts


def all_of(engine: EngineGroup, count: int) -> dict[str, Reply]:
    found: dict[str, Reply | Refusal] = {}
    until_s = time.monotonic() + 200
    while len(found) < count:
        assert time.monotonic() < until_s, found
        found |= {reply.id: reply for reply in engine.poll()}
    assert all(isinstance(reply, Reply) for reply in found.values()), found
    return {name: reply for name, reply in found.items() if isinstance(reply, Reply)}


def test_moss_vl_answers(moss: EngineGroup, folder: Path) -> None:
    short, long = video(folder, 3, 90, 70), video(folder, 6, 60, 100)
    prompts = ask(moss, (short,), ANSWER, first="What?", second="When?")
    prompts |= ask(moss, (long,), ANSWER, other="What?")
    prompts |= ask(moss, (), ANSWER, text="What?")
    found = all_of(moss, 4)
    assert {reply.finish_reason for reply in found.values()} <= {"length", "stop"}
    slots = {name: reply.vision_tokens_kept for name, reply in found.items()}
    assert slots == {"first": 3 * 7, "second": 3 * 7, "other": 6 * 7, "text": 0}
    texts = {name: reply.text for name, reply in found.items()}
    assert texts["text"] not in (texts["first"], texts["other"])  # what is shown changes the answer
    renderer = _renderers[moss.preparer]
    image_id = renderer._token_id("<|image_pad|>")
    for name, asked in (("first", (short,)), ("second", (short,)), ("other", (long,)), ("text", ())):
        made = prompts[name]
        media = made.media["image_data"][0] if asked else None
        ids = moss_reference.answer(folder, made.token_ids, image_id, media, ANSWER)
        assert renderer._tokenizer.decode(ids, skip_special_tokens=True) == texts[name], name
    ask(moss, (short,), ANSWER, again="What?")  # its clip and question from the prefix cache
    ask(moss, (long,), ANSWER, alone="What?")
    later = all_of(moss, 2)
    assert (later["again"].text, later["alone"].text) == (texts["first"], texts["other"])
    assert later["again"].prompt_sha == found["first"].prompt_sha


def test_too_long_a_clip_costs_its_row(moss: EngineGroup, folder: Path) -> None:
    ask(moss, (video(folder, 40, 320, 320),), ANSWER, long="What?")
    refusals: list[Any] = []
    while not refusals:
        refusals = moss.poll()
    assert isinstance(refusals[0], Refusal) and refusals[0].error.kind == "prompt_too_long", refusals
    assert moss.steps > 0 and moss.kv_tokens == 16384 and moss.batch_rows == 4


def test_a_request_taken_back_is_an_engine_error_and_no_answer(moss: EngineGroup, folder: Path) -> None:
    """The last of this engine: SGLang ends its processes. This process, and what else it has started, lives on."""
    shown = video(folder, 3, 90, 70)
    ask(moss, (shown,), 4 * RETRACT_EVERY, one="What?", two="When?", three="Who?")
    with pytest.raises(EngineError) as caught:
        all_of(moss, 3)
    assert caught.value.kind == "engine_dead"


def test_the_demo_is_answered_as_with_vllm(demo_run: tuple[subprocess.Popen[str], Path]) -> None:
    process, run = demo_run
    printed, _ = process.communicate(timeout=500)
    assert process.returncode == 0, printed
    rows = pq.read_table(run / "results.parquet").to_pylist()
    assert len(rows) == 12 and {row["status"] for row in rows} == {"ok"}
    assert [row["text"] for row in rows] == [json.loads(row["answer"]) for row in rows]
    for row in rows:
        tokens = {"clip_00.mp4": 45, "clip_01.mp4": 144}[row["video"]]
        assert row["vision_tokens"] == {"asked": tokens, "kept": tokens}
    assert rows[0]["prompt_sha"] == "9dc2b67725518b1fa7139cfdaec929a0480c35032c04b0ebec80405080ac1f35"  # as vLLM's
    assert rows[0]["resolved"]["engine"] == f"sglang {sglang_environment.installed()}"


def test_the_stand_in_is_called_as_the_real_one() -> None:
    torchvision_on_cpu.install()
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.environ import envs
    from sglang.srt.server_args import ServerArgs

    def names(function: Any) -> list[tuple[str, Any, bool]]:
        parameters = inspect.signature(function).parameters.values()
        return [(one.name, one.kind, one.default is inspect.Parameter.empty) for one in parameters]

    assert names(StandIn.async_generate) == names(Engine.async_generate)
    assert inspect.iscoroutinefunction(Engine.async_generate)
    assert names(StandIn.shutdown) == names(Engine.shutdown)
    assert names(StandIn.__init__) == names(Engine.__init__)
    known = set(inspect.signature(ServerArgs).parameters)
    used = {"log_level", "random_seed", "max_running_requests", SEEDED, *PARALLEL_ARGS["sglang"], *OWNED_ARGS, *CPU}
    assert used - {"server_args"} <= known
    for name in sglang_environment.RESERVE_WHOLE_ANSWERS:
        assert hasattr(envs, name), name


def test_whole_answers_are_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.managers.scheduler_components import new_token_ratio_tracker as tracker

    for name, value in sglang_environment.RESERVE_WHOLE_ANSWERS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tracker, "get_schedule", lambda: type("Schedule", (), {"schedule_conservativeness": 1.0}))
    made = tracker.NewTokenRatioTracker.from_config()
    for _ in range(1000):
        made.decay_step()
    assert made.current == 1.0
