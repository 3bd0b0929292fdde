"""Still pictures as RGB, read by Pillow, as the loaders of models read them."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError
from vidpipe.video.container import PathLike, check_file, display_name

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""What Pillow may open; it also knows formats that start programs."""
_SIDEWAYS = (5, 6, 7, 8)
_ORIENTATION = 0x0112


def read_picture(path: PathLike) -> npt.NDArray[np.uint8]:
    """Return the picture in `path`, uint8 [H, W, 3] RGB, turned as its EXIF data say; transparency is dropped.

    MediaError `not_found`, `not_a_file`, `empty_file`, `not_media`, `too_large`, or
    `truncated`, also for other damage.
    """
    from PIL import ImageOps

    with _opened(path) as image:
        return np.array(ImageOps.exif_transpose(image).convert("RGB"))


def picture_size(path: PathLike) -> tuple[int, int]:
    """Return width and height of the picture as `read_picture` gives it, from its header; errors as there."""
    with _opened(path) as image:
        width, height = image.size
        return (height, width) if image.getexif().get(_ORIENTATION) in _SIDEWAYS else (width, height)


@contextmanager
def _opened(path: PathLike) -> Iterator[Any]:
    from PIL import Image

    check_file(path)
    name = display_name(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(path, formats=FORMATS)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise MediaError("too_large", f"{name}: {error}; scale the picture down") from None
    except PermissionError as error:
        raise MediaError("not_openable", f"{name}: {error.strerror}; check the file's rights") from None
    except (OSError, ValueError, SyntaxError, struct.error):
        raise MediaError("not_media", f"{name}: is no picture ({', '.join(FORMATS)})") from None
    with image:
        try:
            yield image
        except (OSError, ValueError, SyntaxError, struct.error) as error:
            raise MediaError("truncated", f"{name}: the picture is cut off or damaged ({error})") from None
