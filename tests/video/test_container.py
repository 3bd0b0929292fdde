from __future__ import annotations

import os
import socket
import struct
import threading
from pathlib import Path

import av
import pytest

from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video.container import display_name
from vidpipe.video.probe import probe
from vidpipe.video.sniff import playlist_kind


def kind_of(path: Path | str) -> str:
    with pytest.raises(MediaError) as error:
        probe(path)
    return error.value.kind


PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n{target}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile '{target}'\n",
    "concat with comment": "# made by hand\nffconcat version 1.0\nfile '{target}'\n",
    "dash": '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash"><BaseURL>{target}</BaseURL></MPD>',
    "sdp": "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 5004 RTP/AVP 96\r\n",
    "m3u": "#EXTINF:5,clip\n{target}\n",
    "smil": "<smil><body><video src='{target}'/></body></smil>",
    "with byte order mark": "\ufeff#EXTM3U\n#EXTINF:5,\n{target}\n",
}


@pytest.mark.parametrize("name", PLAYLISTS)
@pytest.mark.parametrize("suffix", [".mp4", ".m3u8", ".txt", ".ffconcat", ".sdp"])
def test_playlists_are_refused(name: str, suffix: str, tmp_path: Path) -> None:
    target = write_blocks(tmp_path / "target.mp4", numbers=range(3))
    playlist = tmp_path / f"list{suffix}"
    playlist.write_text(PLAYLISTS[name].format(target=target))
    assert kind_of(playlist) in (("protocol", "not_media") if "comment" in name else ("protocol",))


@pytest.mark.parametrize("prefix", ["http://127.0.0.1:{port}/a.mp4", "concat:{file}|{file}", "tcp://127.0.0.1:{port}"])
def test_ffmpeg_opens_no_protocol_of_its_own(prefix: str, tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    came: list[bool] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)

        def listen() -> None:
            try:
                server.accept()[0].close()
                came.append(True)
            except TimeoutError:
                came.append(False)

        listener = threading.Thread(target=listen)
        listener.start()
        assert kind_of(prefix.format(port=server.getsockname()[1], file=clip)) == "not_found"
        listener.join()
    assert came == [False]


def pointing_at(data: bytes, target: Path) -> bytes:
    """The QuickTime file `data` (its index at the end), whose frames are said to lie in the file `target`."""
    name = target.name.encode()
    path = os.fsencode(target)
    alias = bytes(10) + b"\1/".ljust(28, b"\0") + bytes(12) + bytes([len(name)]) + name.ljust(63, b"\0")
    alias += bytes(16) + struct.pack(">HH", 1, 1) + bytes(16)
    alias += struct.pack(">HH", 2, len(path)) + path + bytes(len(path) % 2) + struct.pack(">hH", -1, 0)
    entry = b"alis" + bytes(4) + alias
    box = b"dref" + bytes(4) + struct.pack(">II", 1, 4 + len(entry)) + entry
    box = struct.pack(">I", 4 + len(box)) + box
    at = data.rfind(b"dref") - 4
    (old,) = struct.unpack_from(">I", data, at)
    found = bytearray(data[:at] + box + data[at + old :])
    for outer in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
        place = data.rfind(outer) - 4
        (size,) = struct.unpack_from(">I", data, place)
        struct.pack_into(">I", found, place, size + len(box) - old)
    return bytes(found)


def test_frames_that_are_said_to_lie_in_another_file_are_not_fetched_there(tmp_path: Path) -> None:
    target = write_blocks(tmp_path / "target.mov", numbers=range(3))
    clip = tmp_path / "clip.mov"
    clip.write_bytes(pointing_at(target.read_bytes(), target))
    with av.open(str(clip), options={"enable_drefs": "1", "use_absolute_path": "1"}) as container:
        assert len(list(container.decode(video=0))) == 3, "FFmpeg would go there if it were told to"
    assert kind_of(clip) == "truncated"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    assert kind_of(tmp_path / "pipe.mp4") == "not_a_file"


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n" + bytes(300), b"hello\n" * 50, b"{}", b"\0" * 4000, b"PK\3\4" * 99]
)
@pytest.mark.parametrize("suffix", [".mp4", ".txt", ".mkv", "", ".png", ".h264"])
def test_what_was_never_a_video(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    assert kind_of(path) in ("not_media", "not_openable", "no_video_stream", "truncated", "corrupt")


def test_missing_and_nul_names() -> None:
    assert kind_of("/nonexistent/clip.mp4") == "not_found"
    assert kind_of("a\0b.mp4") == "not_found"


def test_names_print_whatever_their_bytes() -> None:
    assert display_name(b"caf\xe9.mp4") == "caf\\xe9.mp4"


def test_an_ordinary_file_is_no_playlist() -> None:
    assert playlist_kind(b"\0\0\0\x14ftypqt  ") is None
    assert playlist_kind(b"<html><body>404</body></html>") is None
