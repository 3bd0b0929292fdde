import os
from pathlib import Path

import pytest

from vidpipe.errors import MediaError
from vidpipe.video.media_path import media_path


def test_relative_absolute_and_uri(tmp_path: Path) -> None:
    assert media_path("a b/c.mp4", tmp_path, allow_outside=False) == str(tmp_path / "a b/c.mp4")
    assert media_path(str(tmp_path / "x.mp4"), tmp_path, allow_outside=False) == str(tmp_path / "x.mp4")
    uri = f"file://{tmp_path}/caf%E9%20%23%3F.mp4"
    assert os.fsencode(media_path(uri, tmp_path, allow_outside=False)) == bytes(tmp_path) + b"/caf\xe9 #?.mp4"


def test_a_colon_in_a_file_name_is_no_scheme(tmp_path: Path) -> None:
    (tmp_path / "a:b.mp4").touch()
    assert media_path("a:b.mp4", tmp_path, allow_outside=False) == str(tmp_path / "a:b.mp4")


@pytest.mark.parametrize(
    "video", ["http://127.0.0.1:9/x.mp4", "data:video/mp4;base64,AA", "concat:a|b", "file://host/x.mp4", "RTSP://x"]
)
def test_other_protocols_are_refused(tmp_path: Path, video: str) -> None:
    with pytest.raises(MediaError) as caught:
        media_path(video, tmp_path, allow_outside=True)
    assert caught.value.kind == "protocol"


def test_allowed_schemes_stay_urls(tmp_path: Path) -> None:
    url = "HTTPS://host/x.mp4"
    assert media_path(url, tmp_path, allow_outside=False, schemes=["https"]) == url
    with pytest.raises(MediaError):
        media_path(url, tmp_path, allow_outside=False, schemes=["s3"])


def test_nothing_outside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.mp4").touch()
    (root / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    for video in ("../secret.mp4", "/etc/passwd", "link.mp4", f"file://{tmp_path}/secret.mp4"):
        with pytest.raises(MediaError) as caught:
            media_path(video, root, allow_outside=False)
        assert caught.value.kind == "outside_root"
        media_path(video, root, allow_outside=True)


def test_nul_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(MediaError) as caught:
        media_path("a\0b", tmp_path, allow_outside=True)
    assert caught.value.kind == "not_found"
