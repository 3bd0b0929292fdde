"""SGLang through its offline engine, requests one by one.

SGLang answers in asyncio tasks. They run in a thread of their own, so that answers are received and requests handed
over while the run does other things; what has become of them comes out of a queue.

When something in SGLang fails, it kills the process that it runs in and all of that one's children. It therefore
never runs in the process of a run (`registry.OWN_PROCESS`), and a death is an engine error there.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import signal
import threading
from types import FrameType
from typing import Any

import numpy as np

from vidpipe.engine import sglang_environment
from vidpipe.engine.devices import computes_on_gpu
from vidpipe.engine.interface import NO_DEMANDS, Capabilities, Demands, EngineInput, Refusal, Reply, WantedGraphs
from vidpipe.engine.sglang_prepare import SglangPreparer, SglangPrompt
from vidpipe.engine.sglang_sampling import sampling_params
from vidpipe.errors import CapabilityError, EngineError, RowError
from vidpipe.recipe.schema import EngineSection, Model

OWNED_ARGS = {
    "model_path": "model.path",
    "trust_remote_code": "model.trust_remote_code",
    "mm_process_config": "sampling",
    "allow_auto_truncate": "sampling, with fewer frames: a prompt that is cut shows the model something else",
    "skip_tokenizer_init": "generation",
    "dp_size": "engine.data_parallel",
    "server_args": "engine.args, one key each",
    "custom_sigquit_handler": "retry.engine_restarts",
}
"""SGLang arguments that the recipe says elsewhere; set here they would make the records wrong."""
MOSS_VL = "MossVLForConditionalGeneration"
DEFAULT_ROWS = 64
"""Requests at a time where the recipe does not say."""
POLL_S = 0.05
TOO_LONG = ("context length", "maximum allowed length", "KV cache pool", "prompt is too long")
"""In the messages with which SGLang refuses a prompt for its length."""


class SglangEngine:
    """SGLang; its scheduler and detokenizer are child processes of this one."""

    batch_rows = 0
    kv_tokens: int | None = None
    steps = 0

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> None:
        self.version = f"{sglang_environment.DISTRIBUTION} {sglang_environment.installed()}"
        for key in OWNED_ARGS.keys() & settings.args.keys():
            raise CapabilityError(f"engine.args.{key} would contradict the recipe. Say it with {OWNED_ARGS[key]}.")
        sglang_environment.refuse_unknown_version(settings)
        # On the CPU it computes on the same cores.
        self.capabilities = Capabilities(prepare_in_workers=computes_on_gpu(settings))
        self._arguments: dict[str, Any] = {
            "log_level": "warning",
            "random_seed": 0,
            "max_running_requests": DEFAULT_ROWS,
            # With CUDA graphs its scheduler died of an index out of bounds on an H200 (docs/models.md).
            "disable_cuda_graph": MOSS_VL in demands.architectures,
            **settings.args,
            "model_path": checkpoint,
            "trust_remote_code": model.trust_remote_code,
            "custom_sigquit_handler": note_failed_child,
        }
        self._architectures = demands.architectures
        self.preparer = SglangPreparer(checkpoint, model.trust_remote_code)
        self._done: queue.SimpleQueue[Reply | Refusal] = queue.SimpleQueue()
        self._in_flight = 0
        self._seen_at: float | None = None
        self._engine: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, graphs: WantedGraphs | None = None) -> None:
        """See `Engine.start`. To be called in the main thread; there are no graphs of the vision encoder."""
        sglang_environment.prepare(self.preparer.checkpoint)
        _failed_child.clear()
        try:
            import sglang

            self._engine = sglang.Engine(**self._arguments)
            self._refuse_other_processor()
        except (CapabilityError, EngineError):
            raise
        except (Exception, SystemExit) as error:  # whatever a third-party engine raises while it starts
            raise EngineError("engine_start", f"SGLang cannot start: {type(error).__name__}: {error}") from error
        info = self._engine._scheduler_init_result.scheduler_infos[0]
        self.kv_tokens = info["max_total_num_tokens"]
        self.batch_rows = self._arguments["max_running_requests"]
        # A loop of our own: SGLang's would take this process's signals, were it to run in the main thread.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sglang", daemon=True)
        self._thread.start()

    def submit(self, engine_input: EngineInput) -> None:
        """See `Engine.submit`."""
        self._raise_if_dead()
        self._in_flight += 1
        try:
            asked = self._ask(engine_input, sampling_params(engine_input.generation, self._arguments))
        except RowError as error:
            self._done.put(Refusal(engine_input.id, error))
            return
        assert self._loop is not None, "started"
        asyncio.run_coroutine_threadsafe(asked, self._loop)

    def poll(self) -> list[Reply | Refusal]:
        """See `Engine.poll`."""
        found: list[Reply | Refusal] = []
        try:
            while True:
                wait = self._in_flight and not found
                found.append(self._done.get(timeout=POLL_S) if wait else self._done.get_nowait())
                self._in_flight -= 1
        except queue.Empty:
            pass
        if not found:
            self._raise_if_dead()
        self._note_progress(bool(found))
        return found

    def encoder_report(self) -> dict[str, Any] | None:
        """See `Engine.encoder_report`: nothing counts."""
        return None

    def stop(self) -> None:
        """See `Engine.stop`."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._end_loop(), self._loop)
            self._thread.join()
        engine.shutdown()

    async def _end_loop(self) -> None:
        """Give up what is under way, SGLang's own tasks among it, and end the thread."""
        loop = asyncio.get_running_loop()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        loop.call_soon(loop.stop)

    async def _ask(self, engine_input: EngineInput, sampling_params: dict[str, Any]) -> None:
        """Put what becomes of a request into the queue; a failure of SGLang itself shows in `_raise_if_dead`."""
        prompt: SglangPrompt = engine_input.payload
        request_id = engine_input.id
        try:
            answer = await self._engine.async_generate(
                input_ids=list(prompt.token_ids), sampling_params=sampling_params, **prompt.media
            )
        except ValueError as error:  # what it says of a request that is at fault
            self._done.put(Refusal(request_id, _row_error(error)))
            return
        except Exception as error:
            if not hasattr(error, "status_code"):  # no answer of its scheduler, but a fault of the code around
                self._done.put(Refusal(request_id, RowError("bad_value", f"SGLang refuses the request: {error!r}")))
                return
            detail = getattr(error, "detail", error)
            message = f"SGLang gave the request up ({error.status_code}): {detail}"
            self._done.put(Refusal(request_id, RowError("no_completion", message)))
            return
        self._done.put(self._outcome(engine_input, answer))

    def _outcome(self, engine_input: EngineInput, answer: dict[str, Any]) -> Reply | Refusal:
        prompt: SglangPrompt = engine_input.payload
        told = answer["meta_info"]
        if prompt.encoder_slots and told.get("num_retractions"):
            # Its frames were let go after the first time: see docs/models.md.
            return Refusal(engine_input.id, RowError("no_completion", RETRACTED))
        reason = told["finish_reason"] or {}
        finished = reason.get("type") in ("stop", "length")
        ids = np.asarray(prompt.token_ids, dtype="<i4")
        kept = prompt.encoder_slots or int(np.isin(ids, engine_input.vision_token_ids).sum())
        return Reply(
            id=engine_input.id,
            text=answer["text"] if finished else None,
            finish_reason=reason["type"] if finished else None,
            prompt_sha=hashlib.sha256(ids.tobytes()).hexdigest(),
            tokens_in=len(ids),
            tokens_out=told.get("completion_tokens", 0),
            vision_tokens_kept=kept,
            queue_s=told.get("queue_time"),
            engine_s=told.get("e2e_latency"),
        )

    def _refuse_other_processor(self) -> None:
        """SGLang only warns when it cannot load a processor of others, and goes on with its own."""
        if MOSS_VL not in self._architectures:
            return
        taken = type(self._engine.tokenizer_manager.mm_processor)
        if not taken.__module__.startswith(sglang_environment.PLUGIN):
            raise EngineError(
                "engine_start",
                f"SGLang took {taken.__module__}.{taken.__qualname__} for Moss-VL, which reads files by itself. "
                f"Unset SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE, or see the engine's log for the reason.",
            )

    def _note_progress(self, found: bool) -> None:
        """A step is an answer, or a sign of life: SGLang's processes tell of long answers now and then."""
        seen_at = getattr(self._engine.tokenizer_manager, "last_receive_tstamp", None)
        if found or (self._in_flight and seen_at != self._seen_at):
            self._seen_at = seen_at
            self.steps += 1

    def _raise_if_dead(self) -> None:
        if _failed_child.is_set():
            raise EngineError("engine_dead", "a process of SGLang's failed; the engine's log says how.")


RETRACTED = (
    "SGLang took the request back for want of memory, and cannot compute Moss-VL's frames a second time. Lower "
    "engine.args.max_running_requests or generation.max_tokens, or show fewer frames."
)
_failed_child = threading.Event()


def note_failed_child(number: int, frame: FrameType | None) -> None:
    """Handler of SIGQUIT, by which SGLang's processes say that they failed. In a module, so that it can be pickled."""
    assert number == signal.SIGQUIT
    _failed_child.set()


def _row_error(error: ValueError) -> RowError:
    message = str(error)
    if any(words in message for words in TOO_LONG):
        return RowError(
            "prompt_too_long",
            f"{message} Show fewer or smaller frames (sampling), or raise engine.args.context_length.",
        )
    return RowError("bad_value", f"SGLang refuses the request: {message}")
