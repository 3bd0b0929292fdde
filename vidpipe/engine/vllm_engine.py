"""vLLM, CUDA or CPU build, through `add_request` and `step`.

Not through `LLM.generate` or `LLM.chat`: there a request that is too long raises for
the whole batch, and nothing comes back before everything has. Here a bad request fails
alone and finished rows come back one at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from vidpipe.engine import vllm_environment
from vidpipe.engine.interface import Capabilities, Reply, Request
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.errors import CapabilityError, EngineError, RowError, RowKind
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


class VllmEngine:
    """vLLM in this process or, with CUDA, in its own core process."""

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str) -> None:
        name, version = vllm_environment.installed()
        self.version = f"{name} {version}"
        # Pruned runs crash or carry wrong positions in the tested versions (0.32, 0.33) until they are repaired.
        self.capabilities = Capabilities()
        self._model, self._checkpoint, self._args = model, checkpoint, dict(settings.args)
        for key in OWNED_ARGS.keys() & self._args.keys():
            raise CapabilityError(f"engine.args.{key} would contradict the recipe. Say it with {OWNED_ARGS[key]}.")

    def start(self) -> None:
        """See `Engine.start`. On the CPU build without `enforce_eager` this would take over a minute."""
        vllm_environment.prepare(self._checkpoint)
        arguments: dict[str, Any] = {
            "limit_mm_per_prompt": {"video": 1, "image": 0},
            "disable_log_stats": False,  # the times of each request come from them
            "enforce_eager": vllm_environment.is_cpu_build(),
            "seed": 0,
        }
        arguments |= self._args
        arguments |= {"model": self._checkpoint, "trust_remote_code": self._model.trust_remote_code}
        try:
            from vllm import EngineArgs
            from vllm.renderers.hf import resolve_chat_template
            from vllm.v1.engine.llm_engine import LLMEngine

            self._engine = LLMEngine.from_engine_args(EngineArgs(**arguments))
            config = self._engine.model_config
            tokenizer = self._engine.get_tokenizer()
            template = resolve_chat_template(tokenizer, None, None, model_config=config)
        except Exception as error:  # whatever a third-party engine raises while it starts
            raise EngineError("engine_start", f"vLLM cannot start: {type(error).__name__}: {error}") from error
        if template is None:
            raise CapabilityError(f"checkpoint {self._checkpoint} has no chat template; use an instruction-tuned one.")
        self._token_id: Callable[[str], int] = tokenizer.convert_tokens_to_ids
        self._vision_ids: dict[str, int] = {}
        self._prompts = PromptBuilder(tokenizer, template)

    def submit(self, request: Request) -> None:
        """See `Engine.submit`."""
        ids = self._prompts.token_ids(request.messages, request.special_tokens)
        prompt: dict[str, Any] = {"prompt_token_ids": ids}
        if request.video is not None:
            video = request.video
            slots = ids.count(self._token_id(video.slot_word))
            if slots != 1:  # vLLM itself leaves a slot too many in the prompt without a word
                raise RowError("bad_value", f"the prompt has {slots} places for a video, the row has 1 video.")
            prompt["multi_modal_data"] = {"video": [(video.pixels, dict(video.metadata))]}
            prompt["mm_processor_kwargs"] = dict(video.processor_kwargs)
        from vllm.exceptions import VLLMValidationError
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            (engine_input,) = self._engine.renderer.render_cmpl([prompt])
            self._engine.add_request(request.id, engine_input, _sampling_params(request.generation))
            if request.video is not None:
                self._vision_ids[request.id] = self._token_id(request.video.vision_word)
        except VLLMValidationError as error:
            kind: RowKind = "prompt_too_long" if error.parameter == "input_tokens" else "bad_value"
            raise RowError(kind, str(error)) from error
        except EngineDeadError as error:
            raise EngineError("engine_dead", f"vLLM died: {error}") from error
        except Exception as error:  # its processors raise all kinds; the engine itself has not seen the request
            raise RowError("bad_value", f"vLLM refuses the request: {type(error).__name__}: {error}") from error

    def poll(self) -> list[Reply]:
        """See `Engine.poll`. One engine step, so that new requests can join between steps."""
        if not self._engine.has_unfinished_requests():
            return []
        try:
            outputs = self._engine.step()
        except Exception as error:  # after an error inside a step the engine's state is lost
            raise EngineError("engine_dead", f"vLLM died: {type(error).__name__}: {error}") from error
        return [self._reply(output) for output in outputs if output.finished]

    def stop(self) -> None:
        """See `Engine.stop`."""
        if hasattr(self, "_engine"):
            self._engine.engine_core.shutdown()
            del self._engine

    def _reply(self, output: Any) -> Reply:
        ids = np.asarray(output.prompt_token_ids, dtype="<i4")
        completion = output.outputs[0] if output.outputs else None
        times = output.metrics
        vision_id = self._vision_ids.pop(output.request_id, None)
        kept = 0 if vision_id is None else int(np.count_nonzero(ids == vision_id))
        return Reply(
            id=output.request_id,
            text=None if completion is None else completion.text,
            finish_reason=None if completion is None else completion.finish_reason,
            prompt_sha=hashlib.sha256(ids.tobytes()).hexdigest(),
            tokens_in=len(ids),
            tokens_out=0 if completion is None else len(completion.token_ids),
            vision_tokens_kept=kept,
            queue_s=None if times is None else max(0.0, times.scheduled_ts - times.queued_ts),
            engine_s=None if times is None else max(0.0, times.last_token_ts - times.scheduled_ts),
        )


def _sampling_params(generation: Generation) -> Any:
    from vllm import SamplingParams

    return SamplingParams(**generation.model_dump())
