"""A model class's own pruning methods on made-up clips: no weights, no encoder, milliseconds.

What a runner does with a pruned prompt, step by step: build the rows of each item, ask for the
first positions, then chunk by chunk gather rows and have positions recomputed. The truth beside
it: positions of the whole prompt, of which the kept rows keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

MERGE, HIDDEN = 2, 4
IMAGE_ID, VIDEO_ID, START_ID, END_ID, TEXT_ID = 3, 4, 1, 2, 9


@dataclass(frozen=True)
class Clip:
    """A made-up video of which some tokens were kept."""

    pairs: int
    side: int
    """Tokens along height and along width, after merging."""
    mask: Any
    """[pairs * side * side] bool tensor."""

    @property
    def times_s(self) -> list[float]:
        """One a pair; time texts grow longer."""
        return [0.5 + pair for pair in range(self.pairs)]


def half_kept(pairs: int, side: int = 3) -> Clip:
    """A clip that keeps its first pair and tokens here and there of the others, half of all."""
    total = pairs * side * side
    mask = torch.zeros(total, dtype=torch.bool)
    mask[: side * side] = True
    others = torch.randperm(total - side * side, generator=torch.Generator().manual_seed(pairs))
    mask[side * side + others[: max(0, total // 2 - side * side)]] = True
    return Clip(pairs, side, mask)


class _Tokenizer:
    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [TEXT_ID] * len(text)


class Rehearsal:
    """A prompt of text and clips under one model class.

    Args:
        model_class: `Qwen3VLForConditionalGeneration` or a class that descends from it.
        clips: The videos of the prompt.
        dtype: Of the embeddings.
        outer_start: Whether a vision start stands before and a vision end behind each video, besides its own
            (transformers >= 5.10).
        text: Tokens before each video, and behind the last.
    """

    def __init__(
        self, model_class: Any, clips: Sequence[Clip], dtype: Any, *, outer_start: bool, text: int = 5
    ) -> None:
        self.model = model = object.__new__(model_class)
        model.config = SimpleNamespace(
            image_token_id=IMAGE_ID,
            video_token_id=VIDEO_ID,
            vision_start_token_id=START_ID,
            vision_end_token_id=END_ID,
            vision_config=SimpleNamespace(spatial_merge_size=MERGE),
        )
        model.is_multimodal_pruning_enabled, model.use_deepstack = True, False
        model.visual_dim, model.multiscale_dim = HIDDEN, 0
        model._tokenizer = _Tokenizer()
        object.__setattr__(model, "visual", SimpleNamespace(spatial_merge_size=MERGE))
        embed = SimpleNamespace(embed_input_ids=lambda ids: torch.zeros(len(ids), HIDDEN, dtype=dtype))
        object.__setattr__(model, "get_language_model", lambda: embed)
        self.rows = [self._rows(clip, dtype) for clip in clips]
        lumped = [[int(clip.mask.sum()), *[0] * (clip.pairs - 1)] for clip in clips]
        whole = [[clip.side**2] * clip.pairs for clip in clips]
        self.ids, self.features = self._prompt(clips, lumped, outer_start, text)
        ids, features = self._prompt(clips, whole, outer_start, text)
        positions = type(model)._get_mrope_input_positions(ids, features, model.config)[0]
        keep = torch.ones(len(ids), dtype=torch.bool)
        keep[torch.tensor(ids) == VIDEO_ID] = torch.cat([clip.mask for clip in clips])
        self.truth = positions[:, keep].numpy()
        """[3, tokens] int64: where each row of the pruned prompt stands."""

    def positions(self, cuts: Sequence[int] = (), *, cached: int = 0, always_asked: bool = True) -> tuple[Any, int]:
        """The positions [3, tokens - cached] that rows have when they are computed, and that of the first answer token.

        Args:
            cuts: Where prefill chunks end, besides the end of the prompt.
            cached: Tokens at the prompt's start that are in the prefix cache.
            always_asked: Whether the runner has positions recomputed for chunks without media too (V1: yes, V2: no).
        """
        positions, delta = self.model.get_mrope_input_positions(self.ids, self.features)
        used = []
        for begin, end in zip([cached, *cuts], [*cuts, len(self.ids)], strict=True):
            gathered = [rows for rows in (self._window(i, begin, end) for i in range(len(self.rows))) if len(rows)]
            if gathered or always_asked:
                _, positions, delta = self.model.recompute_mrope_positions(self.ids, gathered, positions, begin)
            used.append(positions[:, begin:end].clone())
        return torch.cat(used, dim=1).numpy(), len(self.ids) + delta

    def is_right(self, cuts: Sequence[int] = (), *, cached: int = 0, always_asked: bool = True) -> bool:
        """Whether all rows and the answer have their true positions; False too where the class raises."""
        try:
            used, following = self.positions(cuts, cached=cached, always_asked=always_asked)
        except (IndexError, RuntimeError, ValueError):
            return False
        return bool(np.array_equal(used, self.truth[:, cached:]) and following == self.truth.max() + 1)

    def _rows(self, clip: Clip, dtype: Any) -> Any:
        rows: Any = self.model._create_final_video_embeddings(
            video_embeddings=torch.zeros(int(clip.mask.sum()), HIDDEN, dtype=dtype),
            num_tokens_per_frame=clip.mask.reshape(clip.pairs, -1).sum(dim=1).tolist(),
            timestamps=clip.times_s,
            video_grid_thw=[clip.pairs, MERGE * clip.side, MERGE * clip.side],
            retention_mask=clip.mask,
        )
        return rows

    def _window(self, number: int, begin: int, end: int) -> Any:
        place = self.features[number].mm_position
        return self.rows[number][max(0, begin - place.offset) : max(0, end - place.offset)]

    def _prompt(
        self, clips: Sequence[Clip], tokens_per_pair: Sequence[list[int]], outer_start: bool, text: int
    ) -> tuple[list[int], list[Any]]:
        from vllm.multimodal.inputs import (
            MultiModalFeatureSpec,
            MultiModalFieldConfig,
            MultiModalFieldElem,
            MultiModalKwargsItem,
            PlaceholderRange,
        )

        ids: list[int] = []
        features: list[Any] = []
        for clip, tokens in zip(clips, tokens_per_pair, strict=True):
            ids += [TEXT_ID] * text + [START_ID] * outer_start
            item = []
            for time_s, kept in zip(clip.times_s, tokens, strict=True):
                item += [*_Tokenizer().encode(f"<{time_s:.1f} seconds>"), START_ID, *[VIDEO_ID] * kept, END_ID]
            grid = torch.tensor([clip.pairs, MERGE * clip.side, MERGE * clip.side])
            data = MultiModalFieldElem(data=grid, field=MultiModalFieldConfig.batched("video").field)
            place = PlaceholderRange(offset=len(ids), length=len(item))
            features.append(
                MultiModalFeatureSpec(
                    data=MultiModalKwargsItem({"video_grid_thw": data}),
                    modality="video",
                    identifier=str(len(features)),
                    mm_position=place,
                )
            )
            ids += item + [END_ID] * outer_start
        return ids + [TEXT_ID] * text, features
