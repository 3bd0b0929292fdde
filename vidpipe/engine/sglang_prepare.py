"""Requests for SGLang: the checkpoint's own Hugging Face processor, run in any process, on the frames that we chose.

SGLang prepares media in the process of its engine, from files that it reads itself. It also takes what a processor
has made elsewhere (`format: processor_output`). The processor makes of each video, by itself, its part of the prompt
and its patches; the part is put into the prompt where the chat template has the video's place, so that texts of users
never go through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vidpipe.engine import sglang_environment
from vidpipe.engine.between import places_behind, with_texts
from vidpipe.engine.channels_first import channels_first
from vidpipe.engine.interface import CodecVideo, EngineInput, Image, Medium, Prepared, Request, Video
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.engine.sglang_moss_vl import PROCESSOR as MOSS_VL
from vidpipe.engine.sglang_moss_vl import encoder_slots, expand_moss_vl
from vidpipe.errors import CapabilityError, EngineError, RowError

FORMAT = "processor_output"


@dataclass(frozen=True)
class SglangPrompt:
    """What SGLang gets of a request."""

    token_ids: tuple[int, ...]
    """Media expanded."""
    media: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of SGLang's `async_generate`."""
    encoder_slots: int = 0
    """Of the cache of a model whose text attends to its vision tokens across; none where those stand in the prompt."""


@dataclass(frozen=True)
class Expanded:
    """A piece of media as the checkpoint's processor makes it."""

    ids: list[int]
    """What stands for it in the prompt."""
    tensors: Mapping[str, Any]
    """Patches and grid, by the names of the processor."""


@dataclass(frozen=True)
class SglangPreparer:
    """Prepares requests for an engine of the same checkpoint."""

    checkpoint: str
    trust_remote_code: bool

    def warm_up(self) -> None:
        """See `Preparer.warm_up`. Imports transformers and torch, not SGLang."""
        self._renderer()

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """See `Preparer.prepare`."""
        return self._renderer().prepare(requests, identities)

    def _renderer(self) -> Renderer:
        if self not in _renderers:
            sglang_environment.prepare(self.checkpoint)
            try:
                from transformers import AutoProcessor

                processor = AutoProcessor.from_pretrained(self.checkpoint, trust_remote_code=self.trust_remote_code)
            except Exception as error:  # the checkpoint's own code among it
                message = f"the checkpoint's processor cannot be loaded: {type(error).__name__}: {error}"
                raise EngineError("engine_start", message) from error
            _renderers[self] = Renderer(processor, self.checkpoint)
        return _renderers[self]


class Renderer:
    """A checkpoint's processor and what is needed beside it.

    Args:
        processor: Of the checkpoint.
        checkpoint: Its name, for messages.

    Raises:
        CapabilityError: the checkpoint has no chat template.
    """

    def __init__(self, processor: Any, checkpoint: str) -> None:
        self._processor, self._tokenizer = processor, processor.tokenizer
        template = getattr(processor, "chat_template", None) or getattr(self._tokenizer, "chat_template", None)
        if not isinstance(template, str):
            raise CapabilityError(f"checkpoint {checkpoint} has no chat template; use an instruction-tuned one.")
        self._prompts = PromptBuilder(self._tokenizer, template)

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """See `Preparer.prepare`."""
        media = requests[0].media
        made: list[Expanded] | RowError
        try:
            made = [self._expand(medium, requests[0]) for medium in media]
        except RowError as error:
            made = error
        arguments, slots = ({}, 0) if isinstance(made, RowError) else _arguments(media, made)
        inputs: list[EngineInput | RowError] = []
        for request in requests:
            try:
                if isinstance(made, RowError):
                    raise made
                ids = self._token_ids(request, made)
            except RowError as error:
                inputs.append(error)
                continue
            prompt = SglangPrompt(tuple(ids), arguments, slots)
            vision = tuple(dict.fromkeys(self._token_id(medium.vision_word) for medium in media))
            clip = " ".join(identities) or request.id
            inputs.append(EngineInput(request.id, request.generation, len(ids) + slots, prompt, vision, clip))
        return Prepared(tuple(inputs), 0 if isinstance(made, RowError) else _bytes_of(made))

    def _token_ids(self, request: Request, made: Sequence[Expanded]) -> list[int]:
        """The prompt's ids with each place for a medium replaced by what it is expanded to."""
        ids = self._prompts.token_ids(request.messages, request.special_tokens)
        left: dict[int, list[Expanded]] = {}
        for medium, expanded in zip(request.media, made, strict=True):
            word = self._prompts.slot_word(medium.slot_word)
            left.setdefault(self._token_id(word), []).append(expanded)
        for slot, expansions in left.items():
            if ids.count(slot) != len(expansions):
                word = self._tokenizer.convert_ids_to_tokens(slot)
                raise RowError(
                    "bad_value",
                    f"the prompt has {ids.count(slot)} places {word}, the row has {len(expansions)} for it.",
                )
        spliced: list[int] = []
        for token in ids:
            spliced += left[token].pop(0).ids if left.get(token) else [token]
        return spliced

    def _expand(self, medium: Medium, request: Request) -> Expanded:
        try:
            if isinstance(medium, Image):
                made = self._processor(text=[medium.slot_word], images=[medium.pixels], return_tensors="pt")
            elif isinstance(medium, CodecVideo):
                raise RowError("bad_value", "SGLang has no codec; set sampling.video_backend: frames.")
            elif type(self._processor).__name__ == MOSS_VL:
                made = expand_moss_vl(self._processor, medium)
            else:
                made = self._processor(
                    text=[medium.slot_word],
                    videos=[channels_first(medium.pixels)],
                    videos_kwargs={
                        **medium.processor_kwargs,
                        "video_metadata": [{key: medium.metadata[key] for key in _KNOWN}],
                        "do_sample_frames": False,
                    },
                    return_tensors="pt",
                )
        except RowError:
            raise
        except Exception as error:  # the checkpoint's own code raises all kinds
            message = f"the checkpoint's processor refuses the media: {type(error).__name__}: {error}"
            raise RowError("bad_value", message) from error
        ids: list[int] = made["input_ids"][0].tolist()
        if isinstance(medium, Video) and any(medium.texts_behind):
            ids = self._with_texts(ids, medium, request)
        return Expanded(ids, {name: made[name] for name in _TENSORS if name in made})

    def _with_texts(self, ids: list[int], video: Video, request: Request) -> list[int]:
        places = places_behind(ids, self._token_id(video.vision_word))
        if len(places) != len(video.texts_behind):
            raise RowError("bad_value", f"{len(places)} places between frames for {len(video.texts_behind)} texts.")
        texts = [self._prompts.plain_ids(text, request.special_tokens) for text in video.texts_behind]
        return with_texts(ids, places, texts)[0]

    def _token_id(self, word: str) -> int:
        found: int = self._tokenizer.convert_tokens_to_ids(word)
        return found


_renderers: dict[SglangPreparer, Renderer] = {}
"""Renderers of this process; loading one takes seconds."""
_KNOWN = ("fps", "total_num_frames", "frames_indices")
"""Of the metadata that families give, what transformers' processors take."""
_TENSORS = ("pixel_values", "image_grid_thw", "pixel_values_videos", "video_grid_thw", "grid_thw")


def _arguments(media: Sequence[Medium], made: Sequence[Expanded]) -> tuple[dict[str, Any], int]:
    """What `async_generate` is told of the media, one dictionary a modality; and slots of the encoder's cache."""
    import torch

    tensors: dict[str, dict[str, list[Any]]] = {}
    slots = 0
    for medium, expanded in zip(media, made, strict=True):
        across = "grid_thw" in expanded.tensors  # Moss-VL's frames are images to SGLang
        slots += encoder_slots(expanded.tensors["grid_thw"]) if across else 0
        for name, value in expanded.tensors.items():
            modality = "image" if across else medium.modality
            tensors.setdefault(f"{modality}_data", {}).setdefault(name, []).append(value)
    arguments = {
        argument: [{"format": FORMAT, **{name: torch.cat(values) for name, values in group.items()}}]
        for argument, group in tensors.items()
    }
    return arguments, slots


def _bytes_of(made: Sequence[Expanded]) -> int:
    return sum(tensor.nbytes for expanded in made for tensor in expanded.tensors.values())
