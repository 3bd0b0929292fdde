"""Still pictures, and videos that lie as pictures in a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vidpipe.errors import MediaError
from vidpipe.video.picture_video import natural_key, picture_video, pictures_in
from vidpipe.video.pictures import picture_size, read_picture


def write(
    path: Path, level: int = 100, size_wh: tuple[int, int] = (64, 48), mode: str = "RGB", **options: object
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size_wh, (level, level, level)).convert(mode).save(path, **options)  # type: ignore[arg-type]
    return path


def kind_of(error: pytest.ExceptionInfo[MediaError]) -> str:
    return error.value.kind


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "CMYK"])
def test_pictures_of_every_mode_are_rgb(tmp_path: Path, mode: str) -> None:
    path = write(tmp_path / ("a.jpg" if mode == "CMYK" else "a.png"), 255, mode=mode)
    pixels = read_picture(path)
    assert pixels.shape == (48, 64, 3) and pixels.dtype == np.uint8 and (pixels >= 250).all()


def test_a_picture_is_turned_as_its_exif_data_say(tmp_path: Path) -> None:
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # shown a quarter turn to the right
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    shown = read_picture(tmp_path / "a.png")
    assert shown.shape == (40, 20, 3) and picture_size(tmp_path / "a.png") == (20, 40)
    assert (shown[:20, :, 0] == 255).all() and (shown[20:, :, 0] == 0).all()


def test_what_is_no_sound_picture(tmp_path: Path) -> None:
    (tmp_path / "page.jpg").write_text("<html>")
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "script.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)).save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    for name, kind in {
        "page": "not_media", "empty": "empty_file", "script": "not_media", "cut": "truncated", "none": "not_found",
    }.items():  # fmt: skip
        with pytest.raises(MediaError) as caught:
            read_picture(tmp_path / f"{name}.jpg")
        assert kind_of(caught) == kind, name


def test_a_header_may_claim_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(MediaError) as caught:
        picture_size(write(tmp_path / "a.png"))
    assert kind_of(caught) == "too_large"


def test_a_folder_in_natural_order(tmp_path: Path) -> None:
    for name in ("10.jpg", "2.JPG", "1.png", ".hidden.jpg", "notes.txt"):
        write(tmp_path / name) if name != "notes.txt" else (tmp_path / name).write_text("no picture")
    assert [Path(path).name for path in pictures_in(str(tmp_path))] == ["1.png", "2.JPG", "10.jpg"]
    for name, kind in {"none": "not_found", "notes.txt": "not_media", ".": None}.items():
        if kind is not None:
            with pytest.raises(MediaError) as caught:
                pictures_in(str(tmp_path / name))
            assert kind_of(caught) == kind
    (tmp_path / "empty").mkdir()
    with pytest.raises(MediaError, match="holds no picture"):
        pictures_in(str(tmp_path / "empty"))


@given(st.lists(st.integers(0, 10**6), unique=True), st.sampled_from(["{}", "frame_{}", "v2_{}_x"]))
def test_numbers_in_names_count_as_numbers(numbers: list[int], form: str) -> None:
    names = sorted(map(form.format, numbers), key=natural_key)
    assert names == [form.format(number) for number in sorted(numbers)]


def test_times_by_place_or_by_number() -> None:
    paths = ["a/00001.jpg", "a/00002.jpg", "a/00005.jpg"]
    placed, numbered = picture_video(paths, 4.0, None), picture_video(paths, 4.0, 1)
    assert placed.times_s.tolist() == [0.0, 0.25, 0.5] and placed.missing == 0
    assert numbered.times_s.tolist() == [0.0, 0.25, 1.0] and numbered.missing == 2
    assert numbered.window(0.25, 1.0) == (1, 2) and numbered.window(0.25, None) == (1, 3)
    late = picture_video(["a/00003.jpg"], 4.0, 1)
    assert late.times_s.tolist() == [0.5] and late.missing == 2, "a window counts from the first number"
    with pytest.raises(MediaError, match="no frame"):
        late.window(0.0, 0.5)


@pytest.mark.parametrize("paths", [["a/x.jpg"], ["a/3.jpg", "a/2.jpg"], ["a/0.jpg"], [f"a/{10**30}.jpg"]])
def test_numbers_that_do_not_rise(paths: list[str]) -> None:
    with pytest.raises(MediaError) as caught:
        picture_video(paths, 4.0, 1)
    assert kind_of(caught) == "corrupt"


def test_pictures_that_are_damaged_or_of_another_size(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{i}.jpg", 20 * i, (64, 48) if i != 3 else (128, 96))) for i in range(5)]
    Path(paths[1]).write_text("<html>")
    frames = picture_video(paths, 2.0, None).decode([0, 1, 3, 3, 4])
    assert frames.indices.tolist() == [0, 3, 3, 4] and frames.times_s.tolist() == [0.0, 1.5, 1.5, 2.0]
    assert frames.pixels.shape == (4, 48, 64, 3) and frames.missing == 1
    assert [int(level) for level in frames.pixels[:, 0, 0, 0]] == [0, 60, 60, 80]
    assert [note.split(":")[0] for note in frames.notes] == ["partial", "sizes"]
    with pytest.raises(MediaError) as caught:
        picture_video(paths, 2.0, None).decode([1, 1])
    assert kind_of(caught) == "corrupt" and "1.jpg" in str(caught.value)
