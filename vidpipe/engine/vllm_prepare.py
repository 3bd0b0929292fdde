"""vLLM's own preparation of media, taken out of the engine's process.

vLLM prepares in one thread of its front end, and more threads make it slower; a GPU then
waits for it. Its renderer also works alone, in any process: this file builds one from
the engine's arguments, or uses the engine's own where the two share a process.

The rows of a clip differ behind the media only. They are rendered once; every other row takes
the rendered beginning and adds its own end, so that the engine computes the clip once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from vidpipe.engine import vllm_codec, vllm_environment
from vidpipe.engine.between import places_behind, with_texts
from vidpipe.engine.channels_first import ARCHITECTURES, channels_first
from vidpipe.engine.ernie45_vl_frames import ARCHITECTURE, hand_over_frames_alone
from vidpipe.engine.interface import Canvases, CodecVideo, EngineInput, Medium, Prepared, Request, Video
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

    def share(self, vllm_renderer: Any) -> None:
        """Use this renderer in this process from now on."""
        _renderers[self._key] = Renderer(vllm_renderer)

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """See `Preparer.prepare`."""
        return self._renderer().prepare(requests, identities)

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
        self._renderer, self._tokenizer = vllm_renderer, tokenizer
        self._prompts = PromptBuilder(tokenizer, template)
        self._token_id: Callable[[str], int] = tokenizer.convert_tokens_to_ids
        self._context: int = config.max_model_len
        self._channels_first = not ARCHITECTURES.isdisjoint(config.hf_config.architectures or ())
        self._pruned = bool(config.multimodal_config and config.multimodal_config.is_multimodal_pruning_enabled())
        vision = getattr(config.hf_config, "vision_config", None)
        self._merge: int = getattr(vision, "spatial_merge_size", 1)

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """See `Preparer.prepare`."""
        inputs: list[EngineInput | RowError] = []
        first: tuple[list[int], dict[str, Any]] | None = None
        canvases: Canvases | None = None
        for request in requests:
            assert list(map(id, request.media)) == list(map(id, requests[0].media)), "rows of one clip"
            try:
                ids = self._token_ids(request)
                payload = None if first is None else self._beside(request, *first, ids)
                if payload is None:
                    payload = self._render(request, ids, identities)
                    if request.media and isinstance(request.media[0], CodecVideo):
                        payload, canvases = vllm_codec.with_true_times(request.media[0], payload, self._tokenizer)
                    first = first or (ids, payload)
                inputs.append(self._input(request, payload, " ".join(identities) or request.id))
            except RowError as error:
                inputs.append(error)
        return Prepared(tuple(inputs), 0 if first is None else _media_bytes(first[1]), canvases)

    def _token_ids(self, request: Request) -> list[int]:
        ids = self._prompts.token_ids(request.messages, request.special_tokens)
        for modality, items in by_modality(request.media).items():
            slots = ids.count(self._token_id(items[0].slot_word))
            if slots != len(items):  # vLLM itself leaves a slot too many in the prompt without a word
                raise RowError("bad_value", f"the prompt has {slots} places for {modality}s, the row has {len(items)}.")
        return ids

    def _render(self, request: Request, ids: list[int], identities: Sequence[str]) -> dict[str, Any]:
        prompt: dict[str, Any] = {"prompt_token_ids": ids}
        if request.media:
            groups = by_modality(request.media)
            names = by_modality(request.media, identities)
            prompt["multi_modal_data"] = {
                modality: [_item(item, self._channels_first) for item in items] for modality, items in groups.items()
            }
            prompt["mm_processor_kwargs"] = _processor_kwargs(groups)
            # Without names of ours, items are counted in each process, and two clips would be taken for one.
            prompt["multi_modal_uuids"] = names
        codec = next((medium for medium in request.media if isinstance(medium, CodecVideo)), None)
        try:
            with nullcontext() if codec is None else vllm_codec.scratch():
                rendered: dict[str, Any] = self._renderer.render_cmpl([prompt])[0]
        except Exception as error:  # its processors raise all kinds
            if codec is not None:
                raise vllm_codec.refusal(codec, error) from error
            raise row_error(error) from error
        for medium in request.media:
            if isinstance(medium, Video) and any(medium.texts_behind):
                rendered = self._with_texts(request, medium, rendered)
        return rendered

    def _with_texts(self, request: Request, video: Video, rendered: dict[str, Any]) -> dict[str, Any]:
        """The rendering with the texts of the only video between its frames.

        The engine finds each frame's tokens by the control tokens around them, so that text
        there moves positions as any text does (tested against the family's own rule).
        """
        import torch

        (spot,) = rendered["mm_placeholders"]["video"]
        ids: list[int] = rendered["prompt_token_ids"]
        span = ids[spot.offset : spot.offset + spot.length]
        places = places_behind(span, self._token_id(video.vision_word))
        if len(places) != len(video.texts_behind):
            raise RowError("bad_value", f"{len(places)} places between frames for {len(video.texts_behind)} texts.")
        texts = [self._prompts.plain_ids(text, request.special_tokens) for text in video.texts_behind]
        merged, stands = with_texts(span, places, texts)
        is_embed = torch.zeros(len(merged), dtype=torch.bool)
        is_embed[stands] = torch.ones(len(span), dtype=torch.bool) if spot.is_embed is None else spot.is_embed
        added = len(merged) - len(span)
        moved = {
            modality: [
                replace(other, offset=other.offset + added) if other.offset > spot.offset else other for other in others
            ]
            for modality, others in rendered["mm_placeholders"].items()
        }
        moved["video"] = [replace(spot, length=len(merged), is_embed=is_embed)]
        merged_ids = [*ids[: spot.offset], *merged, *ids[spot.offset + spot.length :]]
        return {**rendered, "prompt_token_ids": merged_ids, "mm_placeholders": moved}

    def _beside(
        self, request: Request, ids: list[int], rendered: dict[str, Any], others: list[int]
    ) -> dict[str, Any] | None:
        """The rendering of `others`, made from that of `ids`; None if they differ before or in the media.

        The token behind the last slot counts to the media: some families' updates take it in.
        """
        if rendered["type"] != "multimodal" or not request.media:
            return None
        slots = {self._token_id(medium.slot_word) for medium in request.media}
        end = max(place for place, token in enumerate(ids) if token in slots) + 2
        expanded: list[int] = rendered["prompt_token_ids"]
        head = len(expanded) - len(ids[end:])
        ends = [place.offset + place.length for items in rendered["mm_placeholders"].values() for place in items]
        if others[:end] != ids[:end] or expanded[head:] != ids[end:] or max(ends) > head:
            return None
        return {**rendered, "prompt_token_ids": expanded[:head] + others[end:]}

    def _input(self, request: Request, payload: dict[str, Any], clip: str) -> EngineInput:
        tokens = len(payload["prompt_token_ids"])
        if tokens >= self._context:
            raise RowError(
                "prompt_too_long",
                f"the prompt has {tokens} tokens, which with one token of answer is more than max_model_len "
                f"{self._context}. Show fewer or smaller frames (sampling), or raise engine.args.max_model_len.",
            )
        words = dict.fromkeys(medium.vision_word for medium in request.media)
        vision_token_ids = tuple(map(self._token_id, words))
        if self._pruned and request.media:
            self._refuse_positions(payload, vision_token_ids, request.generation.max_tokens)
        return EngineInput(request.id, request.generation, tokens, payload, vision_token_ids, clip)

    def _refuse_positions(self, payload: dict[str, Any], vision_token_ids: Sequence[int], answer_tokens: int) -> None:
        """Refuse a pruned prompt whose positions vLLM has no table for: it would read beyond its end.

        Raises:
            RowError: `prompt_too_long`.
        """
        ids: list[int] = payload["prompt_token_ids"]
        items = [item for modality in payload["mm_kwargs"].values() for item in modality]
        grids = [item.get("video_grid_thw") or item["image_grid_thw"] for item in items]
        spans = [
            positions_taken(0, 0, steps, height // self._merge, width // self._merge)
            for steps, height, width in (grid.data.tolist() for grid in grids)
        ]
        kept = sum(ids.count(token_id) for token_id in vision_token_ids)
        taken = len(ids) - kept + sum(spans) + answer_tokens
        if taken > POSITION_FACTOR * self._context:
            raise RowError(
                "prompt_too_long",
                f"the prompt has {len(ids)} tokens after pruning, but takes {taken} positions, and vLLM has "
                f"{POSITION_FACTOR} x max_model_len {self._context}. Show fewer or smaller frames (sampling), or raise "
                "engine.args.max_model_len.",
            )


_renderers: dict[str, Renderer] = {}
"""Renderers of this process; building one takes seconds."""


def by_modality(media: Sequence[Medium], values: Sequence[Any] | None = None) -> dict[str, list[Any]]:
    """`media`, or the values that stand for them, by modality, each in their order."""
    groups: dict[str, list[Any]] = {}
    for medium, value in zip(media, media if values is None else values, strict=True):
        groups.setdefault(medium.modality, []).append(value)
    return groups


def _item(medium: Medium, first: bool) -> Any:
    """A medium as vLLM takes it; a video's frames with their channels `first` or last."""
    if isinstance(medium, Video):
        return channels_first(medium.pixels) if first else medium.pixels, dict(medium.metadata)
    if isinstance(medium, CodecVideo):
        return vllm_codec.item(medium)
    from PIL import Image

    return Image.fromarray(medium.pixels)


def _processor_kwargs(groups: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Arguments of the model's processor; beside images they must reach the videos only.

    Arguments with `video` in their names do so as they are.
    """
    if "video" not in groups:
        return {}
    kwargs = dict(groups["video"][0].processor_kwargs)
    assert all(dict(video.processor_kwargs) == kwargs for video in groups["video"]), "one sampling a row"
    if "image" not in groups or all(key.startswith("video_") for key in kwargs):
        return kwargs
    return {"videos_kwargs": kwargs}


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
