"""SGLang's processor for Moss-VL, for requests that are prepared already.

SGLang's own takes paths and a text: it would sample and decode the files again, and tokenise the text again, so that
control words in a question become control tokens. Here token ids and patches come in as they are; positions and the
layout of the encoder's cache are computed by SGLang's own functions.

A row without media gets none. SGLang's own processor would hand it the checkpoint's blank picture, for which no
token stands, and then refuses it (`_compute_vision_position_ids`: one frame, no image token); to the model a picture
that no token sees is the same as none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from sglang.srt.managers.schedule_batch import Modality, MultimodalDataItem, MultimodalProcessorOutput
from sglang.srt.multimodal.processors.moss_vl import MossVLImageProcessor

from vidpipe.models.moss_vl_layout import visible_frames


class PreparedMossVL(MossVLImageProcessor):  # type: ignore[misc]
    """Takes token ids, and at most one dictionary with `pixel_values` and `grid_thw`."""

    models: ClassVar[list[Any]] = MossVLImageProcessor.models

    async def process_mm_data_async(
        self, image_data: list[dict[str, Any]] | None, input_text: list[int], request_obj: Any, *args: Any, **kw: Any
    ) -> MultimodalProcessorOutput:
        """What SGLang's scheduler gets.

        Args:
            image_data: The media of the request.
            input_text: Its token ids, one image token a frame.
            request_obj: The request.
            args: Of other models.
            kw: Of other models.

        Raises:
            ValueError: there are not as many image tokens as frames.
        """
        given = image_data[0] if image_data else {}
        grid = given.get("grid_thw")
        ids = torch.tensor([input_text], dtype=torch.long)
        media = None if grid is None else [len(grid)]
        positions, delta, vision, info = self._compute_position_metadata(ids, None, grid, media)
        items: list[Any] = []
        visible = None
        if grid is not None:
            item = MultimodalDataItem(modality=Modality.IMAGE, feature=given["pixel_values"], model_specific_data={})
            item.set("grid_thw", grid)
            item.set("vision_token_info", info[0])
            items = self._prepare_mm_items_for_transport([item])
            visible = torch.tensor(visible_frames(input_text, self.image_token_id), dtype=torch.int32)
        return MultimodalProcessorOutput(
            input_ids=list(input_text),
            mm_items=items,
            im_token_id=self.image_token_id,
            mrope_positions=positions.squeeze(1),
            mrope_position_delta=delta,
            media_nums_per_sample=media,
            vision_position_ids=None if vision is None else vision.squeeze(1),
            visible_frame_counts=visible,
        )
