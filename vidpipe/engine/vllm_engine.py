"""vLLM, CUDA or CPU build, through `add_request` and `step`.

Not through `LLM.generate` or `LLM.chat`: there a request that is too long raises for
the whole batch, nothing comes back before everything has, and prepared media are dropped
without a word. Here a bad request fails alone and finished rows come back one at a time.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from vidpipe.engine import vllm_environment, vllm_graphs
from vidpipe.engine.compile_cache import compiling
from vidpipe.engine.devices import computes_on_gpu
from vidpipe.engine.first_rows import FirstRows
from vidpipe.engine.interface import NO_DEMANDS, Capabilities, Demands, EngineInput, Refusal, Reply, WantedGraphs
from vidpipe.engine.vllm_plugin.run import PluginRun
from vidpipe.engine.vllm_prepare import VllmPreparer, row_error
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.garbage import lasting
from vidpipe.recipe.schema import EngineSection, Generation, Model

OWNED_ARGS = {
    "model": "model.path",
    "trust_remote_code": "model.trust_remote_code",
    "video_pruning_rate": "pruning.rate",
    "video_pruning_method": "pruning.method",
    "mm_processor_kwargs": "sampling.min_pixels and sampling.max_pixels",
    "media_io_kwargs": "sampling",
}
"""vLLM arguments that the recipe says elsewhere; set here they would make the records wrong."""


UNFINISHED = ("abort", "error")
"""Reasons with which vLLM ends a request that has no answer."""


class VllmEngine:
    """vLLM in this process or, with CUDA, in its own core process."""

    batch_rows = 0
    kv_tokens: int | None = None
    steps = 0

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> None:
        name, version = vllm_environment.installed()
        self.version = f"{name} {version}"
        # The CPU build computes on the cores that workers would use, and importing it there costs 7 s and 1 GB each.
        self.capabilities = Capabilities(prepare_in_workers=computes_on_gpu(settings))
        for key in OWNED_ARGS.keys() & settings.args.keys():
            raise CapabilityError(f"engine.args.{key} would contradict the recipe. Say it with {OWNED_ARGS[key]}.")
        vllm_graphs.refuse_own_keys(settings.args)
        arguments: dict[str, Any] = {
            "limit_mm_per_prompt": {"video": demands.most_videos, "image": demands.most_images},
            "disable_log_stats": False,  # the times of each request come from them
            "enforce_eager": vllm_environment.is_cpu_build(),
            "seed": 0,
        }
        if vllm_environment.is_cpu_build():
            arguments["mm_processor_cache_gb"] = 0  # no core process that should keep media: see `submit`
        arguments |= settings.args
        arguments |= {"model": checkpoint, "trust_remote_code": model.trust_remote_code}
        if demands.pruning is not None:
            arguments |= {
                "video_pruning_method": demands.pruning.method,
                "video_pruning_rate": demands.pruning.rate,
            }
        self._arguments, self._demands, self._settings = arguments, demands, settings
        # Each clip is prepared once, and a hit in this cache would leave its data out.
        self.preparer = VllmPreparer(checkpoint, {**arguments, "mm_processor_cache_gb": 0})

    def start(self, graphs: WantedGraphs | None = None) -> None:
        """See `Engine.start`. On the CPU build without `enforce_eager` this would take over a minute."""
        vllm_environment.prepare(self.preparer.checkpoint)
        try:
            _import_vllm()
            from vllm import EngineArgs
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.llm_engine import LLMEngine

            graphs = vllm_graphs.unless_unknown(graphs, self._settings.unknown_version)
            self._demands = replace(self._demands, graphs=graphs)
            self._plugin = PluginRun(self._demands, self._settings)
            self._plugin.begin()
            arguments = self._arguments | self._plugin.engine_arguments()
            arguments |= vllm_graphs.arguments(graphs, arguments.get("compilation_config"))
            with compiling(self.version, arguments):
                # As `LLM` says: batches for throughput. The engine's own default is for latency, 2,048 tokens a step.
                context = UsageContext.LLM_CLASS
                self._engine = LLMEngine.from_engine_args(EngineArgs(**arguments), usage_context=context)
            self._plugin.verify(self._engine)
            self._timings = vllm_graphs.settle(self._engine, graphs) if self._plugin.active else None
        except (CapabilityError, EngineError):
            raise
        except Exception as error:  # whatever a third-party engine raises while it starts
            raise EngineError("engine_start", f"vLLM cannot start: {type(error).__name__}: {error}") from error
        self._vision_ids: dict[str, tuple[int, ...]] = {}
        self._names: dict[str, str] = {}
        self._refusals: list[Reply | Refusal] = []
        cache = self._engine.vllm_config.cache_config
        self._first_rows = FirstRows(bool(cache.enable_prefix_caching))
        self.kv_tokens = cache.num_gpu_blocks * cache.block_size if cache.num_gpu_blocks else None
        self.batch_rows = self._engine.vllm_config.scheduler_config.max_num_seqs
        if self._engine.renderer.mm_processor_cache is None:
            self.preparer.share(self._engine.renderer)

    def submit(self, engine_input: EngineInput) -> None:
        """See `Engine.submit`. Rows wait here until the first one on their clip is computed."""
        if self._first_rows.enters(engine_input):
            self._add([engine_input])

    def _add(self, rows: list[EngineInput]) -> None:
        """Give rows to vLLM; in place of a first one that it refuses, the next on its clip.

        With a core process the rows of a clip send it their media once: it keeps the last
        `mm_processor_cache_gb` of them, and the cache on this side knows which.
        """
        from vllm.v1.engine.exceptions import EngineDeadError

        while rows:
            row, *rows = rows
            payload, sent = self._without_known_media(row.payload)
            try:
                name = self._engine.add_request(row.id, payload, _sampling_params(row.generation))
                self._names[row.id], self._vision_ids[row.id] = name, row.vision_token_ids
            except EngineDeadError as error:
                raise EngineError("engine_dead", f"vLLM died: {error}") from error
            except Exception as error:  # the engine itself has not seen the request
                for mm_hash in sent:
                    self._engine.renderer.mm_processor_cache.invalidate(mm_hash)
                self._refusals.append(Refusal(row.id, row_error(error)))
                rows += self._first_rows.refused(row.id)

    def _computed(self, row_id: str) -> bool:
        """Whether all of a row's prompt has been computed."""
        state = self._engine.output_processor.request_states.get(self._names[row_id])
        return state is None or not state.is_prefilling

    def _without_known_media(self, payload: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """A copy of a payload without the media that the core process has; hashes of those that it will get now."""
        cache = self._engine.renderer.mm_processor_cache
        if cache is None or payload["type"] != "multimodal":
            return dict(payload), []
        from vllm.multimodal.inputs import MultiModalKwargsItems

        items: dict[str, list[Any]] = {}
        sent: list[str] = []
        for modality, hashes in payload["mm_hashes"].items():
            items[modality] = []
            for item, mm_hash in zip(payload["mm_kwargs"][modality], hashes, strict=True):
                items[modality].append(cache.get_and_update_item((item, []), mm_hash)[0])
                if items[modality][-1] is not None:
                    sent.append(mm_hash)
        return {**payload, "mm_kwargs": MultiModalKwargsItems(items)}, sent

    def poll(self) -> list[Reply | Refusal]:
        """See `Engine.poll`. One engine step, so that new requests can join between steps."""
        refusals, self._refusals = self._refusals, []
        if not self._engine.has_unfinished_requests():
            return refusals
        try:
            outputs = self._engine.step()
        except Exception as error:  # after an error inside a step the engine's state is lost
            raise EngineError("engine_dead", f"vLLM died: {type(error).__name__}: {error}") from error
        self.steps += bool(outputs)
        replies = [self._reply(output) for output in outputs if output.finished]
        for reply in replies:
            self._add(self._first_rows.left(reply.id))
        for row_id in filter(self._computed, self._first_rows.ids):
            self._add(self._first_rows.computed(row_id))
        return [*refusals, *replies]

    def encoder_report(self) -> dict[str, Any] | None:
        """See `Engine.encoder_report`."""
        if not self._plugin.active:
            return None
        wanted, pruning = self._demands.graphs, self._demands.pruning is not None
        try:
            return vllm_graphs.report(self._engine, wanted, pruning, self._timings)
        except Exception as error:  # the only thing that a dead core process does
            raise EngineError("engine_dead", f"vLLM died: {type(error).__name__}: {error}") from error

    def stop(self) -> None:
        """See `Engine.stop`."""
        if hasattr(self, "_engine"):
            self._engine.engine_core.shutdown()
            del self._engine

    def _reply(self, output: Any) -> Reply:
        ids = np.asarray(output.prompt_token_ids, dtype="<i4")
        completion = output.outputs[0] if output.outputs else None
        if completion is not None and completion.finish_reason in UNFINISHED:
            completion = None
        times = output.metrics
        vision_ids = self._vision_ids.pop(output.request_id, ())
        self._names.pop(output.request_id, None)
        return Reply(
            id=output.request_id,
            text=None if completion is None else completion.text,
            finish_reason=None if completion is None else completion.finish_reason,
            prompt_sha=hashlib.sha256(ids.tobytes()).hexdigest(),
            tokens_in=len(ids),
            tokens_out=0 if completion is None else len(completion.token_ids),
            vision_tokens_kept=int(np.isin(ids, vision_ids).sum()),
            queue_s=None if times is None else max(0.0, times.scheduled_ts - times.queued_ts),
            engine_s=None if times is None else max(0.0, times.last_token_ts - times.scheduled_ts),
        )


@cache
def _import_vllm() -> None:
    """Import vLLM; once, for what a dead engine leaves is garbage that the start of the next one should find."""
    with lasting():
        import vllm.v1.engine.llm_engine  # noqa: F401


def _sampling_params(generation: Generation) -> Any:
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    values = generation.model_dump()
    names = {"json_schema": "json", "choice": "choice", "regex": "regex"}
    form = {upstream: found for ours, upstream in names.items() if (found := values.pop(ours)) is not None}
    return SamplingParams(**values, structured_outputs=StructuredOutputsParams(**form) if form else None)
