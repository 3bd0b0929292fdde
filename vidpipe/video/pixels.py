"""From a decoded frame to RGB as OpenCV makes it, in display orientation and size."""

from __future__ import annotations

from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.video.reformatter import Interpolation, VideoReformatter

from vidpipe.video.orientation import Orientation

_UNSPECIFIED = 2  # AVCOL_SPC_UNSPECIFIED


class RgbWriter:
    """Writes decoded frames into one array, reusing the conversion tables.

    Models are served by loaders that read with OpenCV, so colours must be
    OpenCV's: bicubic chroma through BGR24, matrix and range as the frame states
    them, no tone mapping. Equal to the bit for what OpenCV can read (tested).
    """

    def __init__(self, orientation: Orientation, display_wh: tuple[int, int]) -> None:
        self._reformatter = VideoReformatter()
        self._orientation = orientation
        self._display_wh = display_wh
        self._stored_wh = orientation.display_wh(display_wh)  # swapping sides is its own inverse

    def write(self, frame: Any, out: npt.NDArray[np.uint8]) -> None:
        """Convert PyAV's `frame` into `out`, uint8 [H, W, 3] RGB.

        A frame whose stored size differs from the stream's (size change in the
        middle) is scaled to it. `out` may be smaller than the display size (area
        average) or larger (cubic).
        """
        try:
            bgr = self._convert(frame)
        except av.error.FFmpegError:
            # The stream names a colour matrix that does not exist, or that FFmpeg does not know.
            frame.colorspace = _UNSPECIFIED
            bgr = self._convert(frame)
        shown = self._orientation.apply(bgr)
        out_wh = (out.shape[1], out.shape[0])
        if out_wh != self._display_wh:
            shrinks = out_wh[0] <= self._display_wh[0] and out_wh[1] <= self._display_wh[1]
            shown = cv2.resize(
                np.ascontiguousarray(shown),
                out_wh,
                interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC,
            )
        cv2.cvtColor(shown if shown.flags.c_contiguous else np.ascontiguousarray(shown), cv2.COLOR_BGR2RGB, dst=out)

    def _convert(self, frame: Any) -> Any:
        width, height = self._stored_wh
        return self._reformatter.reformat(
            frame, width=width, height=height, format="bgr24", interpolation=Interpolation.BICUBIC, threads=1
        ).to_ndarray()
