"""STAND-IN for Moss-VL's processor on the model hub: text with places for videos, and videos by path.

Written from what SGLang's `MossVLImageProcessor` calls and reads, and what is known of the real one's prompt: an image
token and a time for each frame between the start and the end of a video.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import BatchFeature
from transformers.processing_utils import ProcessorMixin

VIDEO, VIDEO_TOKEN, IMAGE = "<|video|>", "<|video_pad|>", "<|image_pad|>"


class MossVLProcessor(ProcessorMixin):
    """Text and videos to token ids, patches, grids and a mask of the frames that each token does not see."""

    video_token = VIDEO_TOKEN

    def __init__(
        self, image_processor: Any = None, tokenizer: Any = None, video_processor: Any = None, **options: Any
    ) -> None:
        super().__init__(image_processor, tokenizer, video_processor, **options)

    def __call__(
        self,
        text: list[str],
        images: None = None,
        videos: list[str] | None = None,
        videos_kwargs: dict[str, Any] | None = None,
        return_tensors: str = "pt",
        **options: Any,
    ) -> BatchFeature:
        """One text at a time."""
        (prompt,) = text
        prompt = prompt.replace(VIDEO, VIDEO_TOKEN)
        features: dict[str, Any] = {}
        if videos:
            made = self.video_processor(videos, **(videos_kwargs or {}))
            features = {"pixel_values": made["pixel_values_videos"], "grid_thw": made["video_grid_thw"]}
            for metadata in made["video_metadata"]:
                prompt = prompt.replace(VIDEO_TOKEN, video_text(metadata.actual_timestamps), 1)
        encoded = self.tokenizer([prompt], add_special_tokens=False, return_tensors=return_tensors)
        ids = encoded["input_ids"]
        if videos:
            frames = torch.arange(int(features["grid_thw"][:, 0].sum()))
            seen = (ids == self.tokenizer.convert_tokens_to_ids(IMAGE)).cumsum(dim=1)
            features["cross_attention_mask"] = (seen[..., None] <= frames)[:, None]
        made_of_it = BatchFeature({"input_ids": ids, "attention_mask": encoded["attention_mask"], **features})
        made_of_it["media_nums_per_sample"] = [max(1, len(videos or ()))]
        return made_of_it


def video_text(times_s: list[float]) -> str:
    """What stands for a video whose frames are at `times_s`."""
    frames = (f"<|time_start|>{time_s:.1f} seconds<|time_end|>{IMAGE}" for time_s in times_s)
    return f"<|vision_start|>{''.join(frames)}<|vision_end|>"
