"""A video that lies as pictures in a folder, or in a list: TVQA's 3 frames a second, for example."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError
from vidpipe.manifest.folder import PICTURE_SUFFIXES
from vidpipe.video.container import display_name
from vidpipe.video.decode import Frames
from vidpipe.video.pictures import picture_size, read_picture
from vidpipe.video.window import window_of

_LONGEST_NUMBER = 15
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class PictureVideo:
    """Pictures with their times; has what `Timeline` has, as far as frames are chosen by it."""

    paths: tuple[str, ...]
    times_s: npt.NDArray[np.float64]
    """Seconds, [N], strictly increasing."""
    header_fps: float
    missing: int
    """Pictures that the numbering skips."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def elapsed_s(self) -> npt.NDArray[np.float64]:
        """Seconds since the picture with the first number, [N]; that one need not be there."""
        return self.times_s

    def window(self, start_s: float | None, end_s: float | None) -> tuple[int, int]:
        """Return the half-open index range of the pictures in a window; see `window_of`."""
        return window_of(self.times_s, start_s, end_s)

    @property
    def size_wh(self) -> tuple[int, int]:
        """Size of the first picture, from its header."""
        return picture_size(self.paths[0])

    def decode(self, indices: Sequence[int]) -> Frames:
        """Read the pictures with those numbers; one of another size than the first is scaled to it.

        A picture that cannot be read is left out and counted in `missing`. MediaError
        `corrupt` when none can.
        """
        kept: list[int] = []
        read: dict[int, npt.NDArray[np.uint8]] = {}
        errors: dict[int, str] = {}
        scaled = set()
        for index in indices:
            if index in errors:
                continue
            if index not in read:
                try:
                    pixels = read_picture(self.paths[index])
                except MediaError as error:
                    errors[index] = str(error)
                    continue
                first = next(iter(read.values()), pixels)
                if pixels.shape != first.shape:
                    scaled.add(index)
                    pixels = cv2.resize(pixels, (first.shape[1], first.shape[0]), interpolation=cv2.INTER_AREA)
                read[index] = pixels
            kept.append(index)
        if not kept:
            raise MediaError(
                "corrupt", f"none of the {len(errors)} pictures asked for can be read: {errors.popitem()[1]}"
            )
        notes = []
        if lost := len(indices) - len(kept):
            notes.append(f"partial: {lost} of {len(indices)} pictures asked for cannot be read")
        if scaled:
            notes.append(f"sizes: {len(scaled)} pictures had another size than the first and were scaled")
        shown = np.asarray(kept, np.int64)
        return Frames(np.stack([read[i] for i in kept]), shown, self.times_s[shown], lost, tuple(notes))


def pictures_in(folder: str) -> list[str]:
    """Return the paths of the pictures in a folder, in natural order (`2.jpg` before `10.jpg`).

    MediaError `not_found`, `not_a_file` (a file where a folder should be) or
    `not_media` when there is none.
    """
    name = display_name(folder)
    try:
        names = [
            p.name
            for p in Path(folder).iterdir()
            if p.suffix.lower() in PICTURE_SUFFIXES and not p.name.startswith(".")
        ]
    except FileNotFoundError:
        raise MediaError("not_found", f"{name}: no such folder; check `frames`, `video` and `media_root`") from None
    except NotADirectoryError:
        raise MediaError(
            "not_media", f"{name}: is a file, and frames_fps speaks of a folder of pictures; remove frames_fps"
        ) from None
    except OSError as error:
        raise MediaError("not_openable", f"{name}: {error.strerror}") from None
    if not names:
        raise MediaError("not_media", f"{name}: the folder holds no picture ({', '.join(sorted(PICTURE_SUFFIXES))})")
    return [str(Path(folder) / picture) for picture in sorted(names, key=natural_key)]


def natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which numbers in names count as numbers."""
    pieces = _DIGITS.split(name)
    return [(int(piece), "") if n % 2 else (0, piece) for n, piece in enumerate(pieces)], name


def picture_video(paths: Sequence[str], fps: float, first_number: int | None) -> PictureVideo:
    """Return pictures as a video.

    Without `first_number` they follow each other at `fps`. With it the last number in a
    name tells the place, and that number stands at 0 s; numbers left out are gaps.
    MediaError `corrupt` when names have no numbers, or they do not rise.
    """
    places = np.arange(len(paths), dtype=np.int64)
    if first_number is not None:
        places = np.array([_number(path) - first_number for path in paths], np.int64)
        if places[0] < 0 or (np.diff(places) <= 0).any():
            raise MediaError(
                "corrupt",
                f"{display_name(paths[0])} and the pictures behind it: their numbers do not rise from"
                f" frames_start_index {first_number} on",
            )
    missing = int(places[-1]) + 1 - len(paths)
    return PictureVideo(tuple(paths), places / fps, fps, missing)


def _number(path: str) -> int:
    digits = _DIGITS.findall(Path(path).stem)
    if not digits or len(digits[-1]) > _LONGEST_NUMBER:
        raise MediaError("corrupt", f"{display_name(path)}: no number in its name, which frames_start_index needs")
    return int(digits[-1])
