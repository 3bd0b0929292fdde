"""vLLM's own preparation of media, taken out of the engine's process.

vLLM prepares in one thread of its front end, and more threads make it slower; a GPU then
waits for it. Its renderer also works alone, in any process: this file builds one from
the engine's arguments, or uses the engine's own where the two share a process.

The rows of a clip differ behind the video only. It is rendered once; every other row takes
the rendered beginning and adds its own end, so that the engine computes the clip once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vidpipe.engine import vllm_environment
from vidpipe.engine.ernie45_vl_frames import ARCHITECTURE, hand_over_frames_alone
from vidpipe.engine.interface import EngineInput, Prepared, Request
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.errors import CapabilityError, EngineError, RowError, RowKind
from vidpipe.pruning.counts import POSITION_FACTOR, positions_taken


@dataclass(frozen=True)
class VllmPreparer:
    """Prepares requests for an engine with the same arguments."""

    checkpoint: str
    arguments: Mapping[str, Any]
    """Of `EngineArgs`."""

    def warm_up(self) -> None:
        """See `Preparer.warm_up`. About 7 s and 1 GB: it imports vLLM."""
        self._renderer()
        import torch

        torch.set_num_threads(1)  # N workers already use N cores

    def share(self, vllm_renderer: Any) -> None:
        """Use this renderer in this process from now on."""
        _renderers[self._key] = Renderer(vllm_renderer)

    def prepare(self, requests: Sequence[Request], identity: str) -> Prepared:
        """See `Preparer.prepare`."""
        return self._renderer().prepare(requests, identity)

    def _renderer(self) -> Renderer:
        if self._key not in _renderers:
            vllm_environment.prepare(self.checkpoint)
            _renderers[self._key] = Renderer(self._build())
        return _renderers[self._key]

    def _build(self) -> Any:
        try:
            from vllm import EngineArgs
            from vllm.renderers.registry import renderer_from_config

            return renderer_from_config(EngineArgs(**self.arguments).create_engine_config())
        except Exception as error:  # whatever a third-party engine raises while it starts
            message = f"vLLM's renderer cannot start: {type(error).__name__}: {error}"
            raise EngineError("engine_start", message) from error

    @property
    def _key(self) -> str:
        return json.dumps([self.checkpoint, self.arguments], sort_keys=True, default=str)


class Renderer:
    """A vLLM renderer and what is needed beside it.

    Raises:
        CapabilityError: the checkpoint has no chat template, or a processor that draws times.
    """

    def __init__(self, vllm_renderer: Any) -> None:
        from vllm.renderers.hf import resolve_chat_template

        config, tokenizer = vllm_renderer.model_config, vllm_renderer.get_tokenizer()
        template = resolve_chat_template(tokenizer, None, None, model_config=config)
        if template is None:
            raise CapabilityError(f"checkpoint {config.model} has no chat template; use an instruction-tuned one.")
        if ARCHITECTURE in (config.hf_config.architectures or ()):
            hand_over_frames_alone(vllm_renderer.mm_processor)
        self._renderer = vllm_renderer
        self._prompts = PromptBuilder(tokenizer, template)
        self._token_id: Callable[[str], int] = tokenizer.convert_tokens_to_ids
        self._context: int = config.max_model_len
        self._pruned = bool(config.multimodal_config and config.multimodal_config.is_multimodal_pruning_enabled())
        vision = getattr(config.hf_config, "vision_config", None)
        self._merge: int = getattr(vision, "spatial_merge_size", 1)

    def prepare(self, requests: Sequence[Request], identity: str) -> Prepared:
        """See `Preparer.prepare`."""
        inputs: list[EngineInput | RowError] = []
        first: tuple[list[int], dict[str, Any]] | None = None
        for request in requests:
            assert request.video is requests[0].video, "rows of one clip"
            try:
                ids = self._token_ids(request)
                payload = None if first is None else self._beside(request, *first, ids)
                if payload is None:
                    payload = self._render(request, ids, identity)
                    first = first or (ids, payload)
                inputs.append(self._input(request, payload))
            except RowError as error:
                inputs.append(error)
        return Prepared(tuple(inputs), 0 if first is None else _media_bytes(first[1]))

    def _token_ids(self, request: Request) -> list[int]:
        ids = self._prompts.token_ids(request.messages, request.special_tokens)
        if request.video is not None:
            slots = ids.count(self._token_id(request.video.slot_word))
            if slots != 1:  # vLLM itself leaves a slot too many in the prompt without a word
                raise RowError("bad_value", f"the prompt has {slots} places for a video, the row has 1 video.")
        return ids

    def _render(self, request: Request, ids: list[int], identity: str) -> dict[str, Any]:
        prompt: dict[str, Any] = {"prompt_token_ids": ids}
        if request.video is not None:
            video = request.video
            prompt["multi_modal_data"] = {"video": [(video.pixels, dict(video.metadata))]}
            prompt["mm_processor_kwargs"] = dict(video.processor_kwargs)
            # Without a name of ours, items are counted in each process, and two clips would be taken for one.
            prompt["multi_modal_uuids"] = {"video": [identity]}
        try:
            rendered: dict[str, Any] = self._renderer.render_cmpl([prompt])[0]
        except Exception as error:  # its processors raise all kinds
            raise row_error(error) from error
        return rendered

    def _beside(
        self, request: Request, ids: list[int], rendered: dict[str, Any], others: list[int]
    ) -> dict[str, Any] | None:
        """The rendering of `others`, made from that of `ids`; None if they differ before or in the video.

        The token behind the slot counts to the video: some families' updates take it in.
        """
        if rendered["type"] != "multimodal" or request.video is None:
            return None
        end = ids.index(self._token_id(request.video.slot_word)) + 2
        expanded: list[int] = rendered["prompt_token_ids"]
        head = len(expanded) - len(ids[end:])
        ends = [place.offset + place.length for items in rendered["mm_placeholders"].values() for place in items]
        if others[:end] != ids[:end] or expanded[head:] != ids[end:] or max(ends) > head:
            return None
        return {**rendered, "prompt_token_ids": expanded[:head] + others[end:]}

    def _input(self, request: Request, payload: dict[str, Any]) -> EngineInput:
        tokens = len(payload["prompt_token_ids"])
        if tokens >= self._context:
            raise RowError(
                "prompt_too_long",
                f"the prompt has {tokens} tokens, which with one token of answer is more than max_model_len "
                f"{self._context}. Show fewer or smaller frames (sampling), or raise engine.args.max_model_len.",
            )
        vision_token_id = None if request.video is None else self._token_id(request.video.vision_word)
        if self._pruned and vision_token_id is not None:
            self._refuse_positions(payload, vision_token_id, request.generation.max_tokens)
        return EngineInput(request.id, request.generation, tokens, payload, vision_token_id)

    def _refuse_positions(self, payload: dict[str, Any], vision_token_id: int, answer_tokens: int) -> None:
        """Refuse a pruned prompt whose positions vLLM has no table for: it would read beyond its end.

        Raises:
            RowError: `prompt_too_long`.
        """
        ids: list[int] = payload["prompt_token_ids"]
        steps, height, width = payload["mm_kwargs"]["video"][0]["video_grid_thw"].data.tolist()
        sides = height // self._merge, width // self._merge
        taken = positions_taken(len(ids), ids.count(vision_token_id), steps, *sides) + answer_tokens
        if taken > POSITION_FACTOR * self._context:
            raise RowError(
                "prompt_too_long",
                f"the prompt has {len(ids)} tokens after pruning, but takes {taken} positions, and vLLM has "
                f"{POSITION_FACTOR} x max_model_len {self._context}. Show fewer or smaller frames (sampling), or raise "
                "engine.args.max_model_len.",
            )


_renderers: dict[str, Renderer] = {}
"""Renderers of this process; building one takes seconds."""


def row_error(error: Exception) -> RowError:
    """What an exception of vLLM means for the row that it is about; others are not touched."""
    from vllm.exceptions import VLLMValidationError

    if isinstance(error, VLLMValidationError):
        kind: RowKind = "prompt_too_long" if error.parameter == "input_tokens" else "bad_value"
        return RowError(kind, str(error))
    return RowError("bad_value", f"vLLM refuses the request: {type(error).__name__}: {error}")


def _media_bytes(payload: dict[str, Any]) -> int:
    if payload["type"] != "multimodal":
        return 0
    fields = (field for items in payload["mm_kwargs"].values() for item in items for field in item.values())
    return sum(getattr(field.data, "nbytes", 0) for field in fields)
