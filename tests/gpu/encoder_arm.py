"""One arm of `encoder.py`, in a process of its own: `python -m tests.gpu.encoder_arm ARM SHAPE FOLDER RESULT [small]`.

The engine runs in this process, so that its encoder can be switched between graphs and none:
every figure stands beside its own control from the same engine, in turns.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

from tests.gpu.encoder_shapes import SHAPES, Shape, Workload, item_of, prompt_of, workloads
from vidpipe.engine import vllm_environment, vllm_graphs
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import Demands, WantedGraphs
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.models.registry import get_family
from vidpipe.plan.encoder_graphs import graph_limits
from vidpipe.plan.graph_memory import encoder_memory
from vidpipe.plan.graph_proposal import MEMORY_LIMIT_BYTES, propose
from vidpipe.recipe.schema import EngineSection, Model, Pruning

BATCHED_TOKENS = 16_384
OUT_TOKENS = 8
TURNS = 2
GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Arm:
    """One setting of the engine."""

    graphs: str
    """`none`, `default` (vLLM's budgets), `default_frames` (those, with room for every attention sequence), `auto` or
    `on` (ours)."""
    pruning_rate: float = 0.0


ARMS = {
    "auto": Arm("auto"),
    "pruning_0.5_auto": Arm("auto", 0.5),
    "default": Arm("default"),
    "on": Arm("on"),
    "pruning_0.75_auto": Arm("auto", 0.75),
    "default_frames": Arm("default_frames"),
    "eager": Arm("none"),
    "why": Arm("on"),
}
"""In the order of their worth. `default` is expected to crash: vLLM's packer overruns its own graphs."""


class Meter:
    """What an arm's graphs compute, counted outside of what is measured: every arm alike."""

    def __init__(self) -> None:
        self.captured = self.used = self.hits = 0
        self.capture_s = self.capture_bytes = 0.0

    def watch_capture(self) -> None:
        """Before the engine starts."""
        from torch import accelerator
        from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager

        upstream = EncoderCudaGraphManager.capture

        def capture(manager: Any, graph_pool: Any) -> None:
            accelerator.synchronize()
            accelerator.empty_cache()
            free, started = accelerator.get_memory_info()[0], time.perf_counter()
            upstream(manager, graph_pool)
            accelerator.synchronize()
            self.capture_s = time.perf_counter() - started
            self.capture_bytes = free - accelerator.get_memory_info()[0]

        EncoderCudaGraphManager.capture = capture

    def watch_replays(self, manager: Any) -> None:
        """After the engine has started."""
        upstream = manager._run_budget_graph

        def run(mm_kwargs: dict[str, Any], token_budget: int, *rest: Any, **named: Any) -> Any:
            before = manager.graph_hits
            output = upstream(mm_kwargs, token_budget, *rest, **named)
            specs = manager.model.get_encoder_cudagraph_item_specs(mm_kwargs)
            if manager.graph_hits > before:
                patches = sum(spec.input_size for spec in specs)
                tokens = sum(spec.output_tokens for spec in specs)
                rows = manager.budget_graphs["default"][token_budget].input_buffers["pixel_values"].shape[0]
                self.captured += rows * tokens // patches
                self.used += tokens
                self.hits += len(specs)
            return output

        manager._run_budget_graph = run

    def take(self) -> dict[str, Any]:
        """Counts since the last call."""
        found = {"captured_tokens": self.captured, "used_tokens": self.used, "hits": self.hits}
        self.captured = self.used = self.hits = 0
        return found


class Runs:
    """Runs of workloads through one started engine."""

    def __init__(self, engine: VllmEngine, arm: Arm, meter: Meter) -> None:
        self._llm, self._meter, self._number = engine._engine, meter, 0
        self._worker = self._llm.collective_rpc(_itself)[0]
        if arm.graphs != "none" and not _cuda() and (engine._demands.graphs or arm.graphs.startswith("default")):
            from tests.plugin import stub_graphs

            stub_graphs.install(self._llm)  # shows that the script works, and nothing of speed
            planned = engine._demands.graphs
            if arm.graphs == "auto" and planned is not None:
                wanted = dataclasses.replace(planned, always=False)
                engine._timings = vllm_graphs.settle(self._llm, wanted)
        self._manager = _get_manager(self._worker)
        if self._manager is not None:
            meter.watch_replays(self._manager)

    @property
    def manager(self) -> Any:
        """The engine's manager of encoder graphs."""
        return self._manager

    @property
    def has_graphs(self) -> bool:
        """Whether the engine has a manager of encoder graphs."""
        return self._manager is not None

    def run(self, inputs: list[dict[str, Any]], workload: Workload, *, graphs: bool) -> dict[str, Any]:
        """Every video once, as if never seen; seconds of the encoder as vLLM counts them."""
        from vllm import SamplingParams

        _set_manager(self._worker, self._manager if graphs else None)
        self._number += 1
        params = SamplingParams(temperature=0, max_tokens=OUT_TOKENS, ignore_eos=True, logprobs=1)
        waiting = [
            {**payload, "mm_hashes": {"video": [f"{payload['mm_hashes']['video'][0]}-{self._number}"]}}
            for payload in inputs
        ]
        self._llm.collective_rpc("get_encoder_timing_stats")  # reading sets them back
        self._meter.take()
        tokens: dict[str, list[int]] = {}
        logprobs: dict[str, float] = {}
        started, sent = time.perf_counter(), 0
        while len(tokens) < len(waiting):
            while sent < len(waiting) and (not workload.alone or sent == len(tokens)):
                self._llm.add_request(f"{self._number}-{sent}", dict(waiting[sent]), params)
                sent += 1
            for output in self._llm.step():
                if output.finished:
                    number, completion = output.request_id.split("-")[1], output.outputs[0]
                    tokens[number] = list(completion.token_ids)
                    logprobs[number] = completion.logprobs[0][completion.token_ids[0]].logprob
        wall_s = time.perf_counter() - started
        stats = self._llm.collective_rpc("get_encoder_timing_stats")[0]
        return {
            "wall_s": wall_s,
            "encoder_s": sum(one["encoder_forward_secs"] for one in stats.values()),
            **self._meter.take(),
            "tokens": tokens,
            "logprobs": logprobs,
        }


def main() -> None:
    """Run one arm; figures go to a file, and to standard output as they come."""
    name, shape_name, folder, result = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    small = "small" in sys.argv[5:]
    arm, shape = ARMS[name], SHAPES[shape_name]
    checkpoint = read_checkpoint(str(folder), folder)
    processor = dict(checkpoint.processor(get_family(shape.family)))
    loads = workloads(shape, small=small)
    found: dict[str, Any] = {"arm": name, "shape": shape_name, "workloads": {}}
    if not _cuda():
        vllm_environment.prepare(str(folder))
    meter = Meter()
    if arm.graphs != "none" and _cuda():
        vllm_environment.prepare(str(folder))
        meter.watch_capture()
    started = time.perf_counter()
    engine, found["plan"] = _start(arm, shape, checkpoint, loads, processor)
    runs = Runs(engine, arm, meter)
    found |= {
        "start_s": time.perf_counter() - started,
        "capture_s": meter.capture_s,
        "capture_gib": meter.capture_bytes / GIB,
        "runner": type(engine._engine.collective_rpc(_itself)[0].model_runner).__module__,
        "timings": engine._timings,
    }
    _say(f"{name} {shape_name}: started in {found['start_s']:.0f} s, captured in {meter.capture_s:.1f} s")
    try:
        if name == "why":
            found["why"], loads = _why(runs), {}
        for load_name, load in loads.items():
            prompts = [prompt_of(shape, size, processor, number) for number, size in enumerate(load.sizes)]
            inputs = [engine._engine.renderer.render_cmpl([prompt])[0] for prompt in prompts]
            runs.run(inputs[:2], load, graphs=False)  # warms up
            found["workloads"][load_name] = _beside_control(runs, inputs, load)
            _say(f"{name} {shape_name} {load_name}: {json.dumps(_brief(found['workloads'][load_name]))}")
            result.write_text(json.dumps(found))
    except Exception as error:  # a crash of the engine is a finding
        found["crash"] = f"{type(error).__name__}: {error}"
        _say(f"{name} {shape_name}: {found['crash']}")
    found["encoder"] = None if "crash" in found else engine.encoder_report()
    result.write_text(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # a crashed engine may not come down


def _why(runs: Runs) -> list[dict[str, Any]]:
    """Where replays spend their time; printed as it comes."""
    from tests.gpu.encoder_why import parts_of_replays

    budgets = runs.manager.token_budgets
    found = []
    for budget in (budgets[0], budgets[len(budgets) // 2], budgets[-1]):
        found += parts_of_replays(runs.manager, [budget])
        _say(f"why: {json.dumps(found[-1])}")
    return found


def _start(
    arm: Arm, shape: Shape, checkpoint: Any, loads: dict[str, Workload], processor: dict[str, Any]
) -> tuple[VllmEngine, Any]:
    args: dict[str, Any] = {
        "load_format": "dummy",
        "max_model_len": 32_768,
        "max_num_batched_tokens": BATCHED_TOKENS,
        "max_num_seqs": 64,
        "mm_processor_cache_gb": 0,
        "enable_mm_processor_stats": True,
        "skip_mm_profiling": True,
    }
    if _cuda():
        args |= {
            "kv_cache_memory_bytes": shape.kv_cache_gib * GIB,  # spares the profiling of memory
            "compilation_config": {"mode": 0, "cudagraph_mode": "NONE"},  # the language model is not measured
        }
    else:
        args["max_model_len"] = 4096
    pruning = Pruning(method="evs", rate=arm.pruning_rate) if arm.pruning_rate else None
    settings = EngineSection(args=args)
    model = Model(path=checkpoint.location, trust_remote_code=shape.remote_code)
    engine = VllmEngine(
        model, settings, checkpoint.location, Demands(pruning, tuple(checkpoint.config["architectures"]))
    )
    items = [item_of(shape, size, processor) for load in loads.values() for size in load.sizes]
    if arm.graphs in ("auto", "on"):
        memory = encoder_memory(checkpoint.config, MEMORY_LIMIT_BYTES)
        proposal = propose(items, step_tokens=BATCHED_TOKENS, memory=memory, always=arm.graphs == "on")
        graphs = proposal.graphs if proposal.graphs.graphs else None
        engine.start(WantedGraphs(graphs, arm.graphs == "on" or not _cuda()) if graphs else None)
        return engine, dataclasses.asdict(proposal)
    if arm.graphs.startswith("default") and _cuda():
        own: dict[str, Any] = {"cudagraph_mm_encoder": True}
        if arm.graphs == "default_frames":
            limits = graph_limits(model_range=(64, BATCHED_TOKENS), model_steps_per_video=1, video_limit=1)
            own["encoder_cudagraph_max_frames_per_batch"] = limits.max_items * max(item.sequences for item in items)
        engine._arguments["compilation_config"] |= own
    engine.start()
    return engine, None


def _beside_control(runs: Runs, inputs: list[dict[str, Any]], load: Workload) -> dict[str, Any]:
    """Both modes in turns; figures are the means of the turns."""
    modes = {"control": False} | ({"graphs": True} if runs.has_graphs else {})
    turns: dict[str, list[dict[str, Any]]] = {mode: [] for mode in modes}
    for _ in range(TURNS):
        for mode, graphs in modes.items():
            turns[mode].append(runs.run(inputs, load, graphs=graphs))
    found: dict[str, Any] = {}
    for mode, results in turns.items():
        encoder_s = [one["encoder_s"] for one in results]
        found[mode] = {
            "rows": len(inputs),
            "encoder_s": statistics.mean(encoder_s),
            "encoder_s_spread": max(encoder_s) - min(encoder_s),
            "rows_per_s": len(inputs) / statistics.mean(one["wall_s"] for one in results),
            **{key: results[-1][key] for key in ("captured_tokens", "used_tokens", "hits")},
        }
    found["control_differs_from_itself"] = _differing(turns["control"][0], turns["control"][1])
    if "graphs" in turns:
        found["rows_that_differ"] = _differing(turns["control"][0], turns["graphs"][0])
        first, second = turns["control"][0]["logprobs"], turns["graphs"][0]["logprobs"]
        found["largest_logprob_difference"] = max(abs(first[key] - second[key]) for key in first)
    return found


def _differing(one: dict[str, Any], other: dict[str, Any]) -> int:
    return sum(one["tokens"][key] != other["tokens"][key] for key in one["tokens"])


def _brief(found: dict[str, Any]) -> dict[str, Any]:
    brief: dict[str, Any] = {}
    for mode in ("control", "graphs"):
        if mode in found:
            one = found[mode]
            brief[mode] = {"encoder_s": round(one["encoder_s"], 3), "rows_per_s": round(one["rows_per_s"], 2)}
            if one["captured_tokens"]:
                brief[mode]["padded_share"] = round(1 - one["used_tokens"] / one["captured_tokens"], 3)
    return brief | {"differ": found.get("rows_that_differ"), "itself": found["control_differs_from_itself"]}


def _itself(worker: Any) -> Any:
    return worker


def _get_manager(worker: Any) -> Any:
    return importlib.import_module("vidpipe.engine.vllm_plugin.graph_timing").manager_of(worker)


def _set_manager(worker: Any, manager: Any) -> None:
    runner = worker.model_runner
    if hasattr(runner, "model_state"):
        runner.model_state.encoder_runner.cudagraph_manager = manager
    else:
        runner.encoder_cudagraph_manager = manager


def _cuda() -> bool:
    return not vllm_environment.is_cpu_build()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
