"""STAND-IN for LLaVA-OneVision-2's processor on the model hub: images, and videos by path through the codec.

The real one also samples videos itself (vLLM does not use that). Written from what vLLM's
`LlavaOnevision2MultiModalProcessor` calls and reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from transformers import BatchFeature

from .codec_video_processing_llava_onevision2 import CodecConfig, canvases_and_positions, process_codec_video, runs_text
from .video_processing_llava_onevision2 import frame_positions

IMAGE = "<|image_pad|>"
VIDEO_SLOT = re.compile(r"<\|vision_start\|><\|video_pad\|><\|vision_end\|>")


class LlavaOnevision2Processor:
    """Text with media slots and media -> token ids, pixels and patch positions."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        video_processor: Any = None,
        codec_config: dict[str, Any] | None = None,
    ) -> None:
        self.image_processor, self.tokenizer, self.video_processor = image_processor, tokenizer, video_processor
        self._codec_config_defaults = codec_config or {}

    def __call__(
        self,
        text: str | Sequence[str],
        images: Sequence[Any] | None = None,
        videos: str | Sequence[str] | None = None,
        return_tensors: str = "pt",
        video_backend: str = "frames",
        max_pixels: int | None = None,
        codec_config: dict[str, Any] | None = None,
        **options: Any,
    ) -> BatchFeature:
        """Ids with each image slot as many times over as the image has tokens, and the images' tensors.

        Raises:
            ValueError: videos, but not for the codec.
        """
        texts = [text] if isinstance(text, str) else list(text)
        tensors: dict[str, Any] = {}
        if videos is not None:
            if video_backend != "codec":
                raise ValueError("this stand-in takes videos through the codec only")
            paths = [videos] if isinstance(videos, str) else list(videos)
            settings = {**self._codec_config_defaults, **(codec_config or {})}
            texts = [
                self._add_codec_video(slots, path, settings, max_pixels, tensors)
                for slots, path in zip(texts, paths, strict=True)
            ]
        if images:
            features = self.image_processor(images=images, return_tensors="pt")
            grids, merge = features["image_grid_thw"], self.image_processor.merge_size
            positions = [frame_positions(0, rows, columns, merge) for _, rows, columns in grids.tolist()]
            tensors |= {**features, "patch_positions": torch.cat(positions)}
            counts = iter((grids.prod(-1) // merge**2).tolist())
            texts = [re.sub(re.escape(IMAGE), lambda _: IMAGE * next(counts), slots) for slots in texts]
        return BatchFeature({**tensors, **self.tokenizer(texts, return_tensors=return_tensors)})

    def _add_codec_video(
        self, text: str, path: str, settings: dict[str, Any], max_pixels: int | None, tensors: dict[str, Any]
    ) -> str:
        config = CodecConfig(**settings | ({} if max_pixels is None else {"max_pixels": max_pixels}))
        made = process_codec_video(path, config)
        features, positions = canvases_and_positions(made, self.image_processor)
        tensors |= {**features, "patch_positions": positions}
        words = runs_text(positions[:, 0].tolist(), made["fps"], self.image_processor.merge_size)
        return VIDEO_SLOT.sub(lambda _: words, text, count=1)
