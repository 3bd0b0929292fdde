"""Rows of several pruned videos as the language model gets them: what stays, in order, with text between and channels.

A fixed number of operations for all videos together and one for each; nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from vidpipe.engine.vllm_plugin.encoder_batches import batches
from vidpipe.engine.vllm_plugin.encoder_counters import counters
from vidpipe.engine.vllm_plugin.host_copies import to_device
from vidpipe.engine.vllm_plugin.row_channels import number_channels
from vidpipe.engine.vllm_plugin.token_choice import kept_counts, kept_tokens
from vidpipe.engine.vllm_plugin.video_layout import VideoLayout

TOKENS_TOGETHER = 4096
"""How many tokens are pruned together. So many keep a GPU busy for longer than their operations take to launch; the
few copies of them that scores need are small beside the encoder's own memory."""


def pruned_rows(
    encoded: Sequence[Any], layouts: Sequence[VideoLayout], method: str, rate: float, embed: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """Rows [rows, channels + `CHANNELS`] of each video, in its own memory.

    Args:
        encoded: Embeddings [tokens, channels] of each video.
        layouts: Of the videos.
        method: `evs` or `vidcom2`.
        rate: Share to drop.
        embed: Embeds text, [tokens] int64 -> [tokens, channels or fewer]; what is missing is 0.
    """
    found: list[Any] = []
    for batch in batches([layout.grid.tokens for layout in layouts], TOKENS_TOGETHER):
        chosen = [layouts[number] for number in batch]
        grids = [layout.grid for layout in chosen]
        rows = torch.cat([encoded[number] for number in batch])
        counts = kept_counts(grids, method, rate)
        kept = kept_tokens(rows, grids, counts, method, rate)
        counters.unpruned_tokens += len(rows)
        counters.kept_tokens += len(kept)
        found += assembled(rows.index_select(0, kept), kept, counts, chosen, embed)
    return tuple(found)


def assembled(
    rows: Any, kept: Any, counts: Sequence[int], layouts: Sequence[VideoLayout], embed: Callable[[Any], Any]
) -> list[Any]:
    """As `pruned_rows`, of tokens that were chosen.

    Args:
        rows: Embeddings [kept tokens, channels], video by video.
        kept: int64 [kept tokens]: which of all videos' tokens they are.
        counts: Kept tokens of each video.
        layouts: Of the videos.
        embed: Embeds text.
    """
    whole = np.cumsum([0, *(len(layout.channels) for layout in layouts)])
    lengths = [len(layout.text_ids) + count for layout, count in zip(layouts, counts, strict=True)]
    numbers = number_channels(max(lengths))
    text_ids, text_places, token_places, place, number = to_device(
        [
            np.concatenate([layout.text_ids for layout in layouts]),
            np.concatenate([layout.text_places + start for layout, start in zip(layouts, whole, strict=False)]),
            np.concatenate([layout.token_places + start for layout, start in zip(layouts, whole, strict=False)]),
            np.concatenate([layout.channels for layout in layouts]),
            np.concatenate([numbers[:length] for length in lengths]),
        ],
        rows.device,
    )
    text = embed(text_ids)
    text = torch.nn.functional.pad(text, (0, rows.shape[1] - text.shape[1]))
    # Sorting the places that stay in the whole videos puts every row where it belongs.
    places, order = torch.cat([text_places, token_places.index_select(0, kept)]).sort()
    final = torch.cat([text, rows.to(text.dtype)]).index_select(0, order).split(lengths)
    channels = (place.index_select(0, places) + number).to(text.dtype).split(lengths)
    return [torch.cat(parts, dim=1) for parts in zip(final, channels, strict=True)]
