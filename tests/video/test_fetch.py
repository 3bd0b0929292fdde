"""Remote clips over a real local HTTP server and fsspec's memory file system."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video.fetch import Sources
from vidpipe.video.probe import probe
from vidpipe.video.source import local_path, uri_or_name


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server's address and the folder that it serves."""
    root = tmp_path / "site"
    root.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=root)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", root
        server.shutdown()


def sources(tmp_path: Path, *schemes: str, limit_bytes: int = 1 << 20) -> Sources:
    return Sources(frozenset(schemes), tmp_path / "copies", limit_bytes)


def kind_of(where: Sources, name: str) -> str:
    with pytest.raises(MediaError) as error, where.local(name):
        pass
    return error.value.kind


def test_a_clip_from_a_web_server(site: tuple[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    address, root = site
    write_blocks(root / "clip.mp4", numbers=range(5))
    with sources(tmp_path, "http").local(f"{address}/clip.mp4") as path:
        assert probe(path).frames == 5
        assert path.endswith(".mp4")
    assert kind_of(sources(tmp_path, "http"), f"{address}/absent.mp4") == "not_found"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    assert kind_of(sources(tmp_path, "http"), "http://127.0.0.1:9/clip.mp4") == "not_openable"


def memory_clip(name: str, content: bytes) -> str:
    fsspec.filesystem("memory").pipe(f"/{name}", content)
    return f"memory://{name}"


def test_a_copy_is_fetched_once_and_again_when_the_original_changes(tmp_path: Path) -> None:
    where = sources(tmp_path, "memory")
    name = memory_clip("once.mp4", b"first")
    with where.local(name) as path:
        assert Path(path).read_bytes() == b"first"
        made_ns = Path(path).stat().st_ctime_ns
    inode = Path(path).stat().st_ino
    with where.local(name) as again:
        assert (again, Path(again).stat().st_ino) == (path, inode)
    assert made_ns
    memory_clip("once.mp4", b"second, longer")
    with where.local(name) as changed:
        assert Path(changed).read_bytes() == b"second, longer"


def test_the_folder_stays_within_its_limit_and_keeps_what_is_in_use(tmp_path: Path) -> None:
    where = sources(tmp_path, "memory", limit_bytes=3000)
    names = [memory_clip(f"{n}.mp4", bytes([n + 1]) * 1000) for n in range(8)]
    with where.local(names[0]) as first:
        for name in names[1:]:
            with where.local(name):
                assert sum(p.stat().st_size for p in where.folder.iterdir()) <= 3000
        assert Path(first).read_bytes() == b"\1" * 1000


def test_a_clip_larger_than_the_folder_is_refused(tmp_path: Path) -> None:
    assert kind_of(sources(tmp_path, "memory", limit_bytes=10), memory_clip("big.mp4", bytes(11))) == "too_large"


def test_a_fetch_that_broke_off_leaves_no_half_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = sources(tmp_path, "memory")
    name = memory_clip("broken.mp4", b"all of it")
    filesystem = type(fsspec.filesystem("memory"))
    real_info = filesystem.info
    monkeypatch.setattr(filesystem, "info", lambda self, path: {**real_info(self, path), "size": 99})
    assert kind_of(where, name) == "truncated"
    assert list(where.folder.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["https://host/a.mp4", "s3://bucket/a.mp4", "concat://a", "rtsp://host/a", "FTP://h/a"]
)
def test_schemes_that_the_recipe_does_not_allow(name: str, tmp_path: Path) -> None:
    assert kind_of(sources(tmp_path, "memory"), name) == "protocol"


@pytest.mark.parametrize("name", ["file://host/a.mp4", "file:///a.mp4?x=1", "file:///a.mp4#part"])
def test_file_uris_that_mean_something_else(name: str) -> None:
    with pytest.raises(MediaError, match="file:"):
        local_path(name)


# "." names no file: pathlib leaves it out.
NAMES = st.binary(min_size=1, max_size=30).filter(lambda name: name != b"." and not {47, 0} & set(name))


@given(NAMES)
def test_any_name_survives_as_a_uri(name: bytes) -> None:
    text = "/clips/" + name.decode("utf-8", "surrogateescape")
    assert local_path(uri_or_name(text)) == text
    assert local_path(Path(text).as_uri()) == text
