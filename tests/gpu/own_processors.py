"""What a checkpoint's own processor makes of the frames that vidpipe shows: family by family, for `real_checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.engine.interface import Video
from vidpipe.errors import CapabilityError


@dataclass(frozen=True)
class Own:
    """A prompt and pixels, made without vidpipe and vLLM."""

    ids: list[int]
    pixels: npt.NDArray[np.float32]
    """Normalised patches as the vision encoder takes them, [patches, 3, values]."""


@dataclass(frozen=True)
class OwnProcessor:
    """How one family's processor is loaded and asked."""

    load: Callable[[str, bool, Mapping[str, Any]], Any]
    """Checkpoint, whether its code may run, and the family's `processor_kwargs`, to the processor."""
    ask: Callable[[Any, str, Video, Sequence[str]], Own]
    """Processor, chat text with the video's slot, frames, and the texts of their times, to what it makes."""


def own_inputs(name: str, checkpoint: str, messages: Any, video: Video, times: Sequence[str], *, trust: bool) -> Own:
    """What the processor of `checkpoint`, of the family `name`, makes of a clip.

    Raises:
        CapabilityError: transformers finds no processor there.
    """
    own = OWN[name]
    processor = own.load(checkpoint, trust, video.processor_kwargs)
    if not hasattr(processor, "tokenizer"):
        raise CapabilityError(f"transformers finds no processor in {checkpoint}, only a {type(processor).__name__}.")
    text = processor.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return own.ask(processor, text, video, times)


def normalised(patches: Any, processor: Any) -> npt.NDArray[np.float32]:
    """Patches of 0 to 255, [patches, 3 x values], as the encoder gets them after the processor's mean and deviation."""
    raw = patches.float().numpy().reshape(len(patches), 3, -1) / 255
    mean, std = (np.asarray(getattr(processor, key), np.float32)[:, None] for key in ("image_mean", "image_std"))
    result: npt.NDArray[np.float32] = (raw - mean) / std
    return result


def _load(checkpoint: str, trust: bool, kwargs: Mapping[str, Any]) -> Any:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(checkpoint, trust_remote_code=trust)


def _load_with(checkpoint: str, trust: bool, kwargs: Mapping[str, Any]) -> Any:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(checkpoint, trust_remote_code=trust, **kwargs)


def _load_llava_onevision2(checkpoint: str, trust: bool, kwargs: Mapping[str, Any]) -> Any:
    """Put together as vLLM does it; the class's own `from_pretrained` stops to ask whether its code may run."""
    from transformers import AutoTokenizer, Qwen2VLImageProcessor
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    name = "processing_llava_onevision2.LlavaOnevision2Processor"
    return get_class_from_dynamic_module(name, checkpoint)(
        image_processor=Qwen2VLImageProcessor.from_pretrained(checkpoint, **kwargs),
        tokenizer=AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=trust),
    )


def _metadata(video: Video) -> Any:
    from transformers.video_utils import VideoMetadata

    return VideoMetadata(**{key: video.metadata[key] for key in ("fps", "frames_indices", "total_num_frames")})


def _own(made: Any, patches: str) -> Own:
    pixels = made[patches].float().numpy()
    return Own(made["input_ids"][0].tolist(), pixels.reshape(len(pixels), 3, -1))


def _qwen3_vl(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames and metadata; the processor itself computes the times."""
    asked = {"video_metadata": [_metadata(video)], "do_sample_frames": False, **video.processor_kwargs}
    made = processor(text=[text], videos=[video.pixels], videos_kwargs=asked, return_tensors="pt")
    return _own(made, "pixel_values_videos")


def _llava_onevision2(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames as images with their times before them, as the published scores were made."""
    from PIL import Image

    slot, image = (f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("video", "image"))
    frames = [Image.fromarray(frame) for frame in video.pixels]
    text = text.replace(slot, "".join(time + image for time in times))
    return _own(processor(text=[text], images=frames, return_tensors="pt"), "pixel_values")


def _ernie45_vl(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames on which vidpipe has drawn the times; the code takes an array for such frames."""
    made = processor(text=[text], images=[], videos=[video.pixels], return_tensors="pt")
    return Own(made["input_ids"][0].tolist(), normalised(made["images"], processor.image_processor))


def _minimax_m3(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames and metadata, as transformers' own class takes them; it resizes only when told to."""
    asked = {"do_sample_frames": False, "do_resize": True, **video.processor_kwargs}
    made = processor(
        text=[text], videos=[video.pixels], video_metadata=[_metadata(video)], **asked, return_tensors="pt"
    )
    return _own(made, "pixel_values_videos")


OWN: dict[str, OwnProcessor] = {
    "qwen3_vl": OwnProcessor(_load, _qwen3_vl),
    "llava_onevision2": OwnProcessor(_load_llava_onevision2, _llava_onevision2),
    "ernie45_vl": OwnProcessor(_load_with, _ernie45_vl),
    "minimax_m3": OwnProcessor(_load, _minimax_m3),
}
