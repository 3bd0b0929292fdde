"""Subtitle files of every form, and what is none."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import MediaError
from vidpipe.video.subtitles import Cue, read_cues

SRT = """\ufeff1\r
00:00:01,500 --> 00:00:02,250\r
<font color="white" size=".72c">Hello,</font>\r
<i>world</i> {\\an8}\r
\r
2\r
01:00:00,000 --> 01:00:01,000\r
1 < 2 and <3\r
3\r
00:00:00,000 --> 00:00:01,000\r
first\r
"""
VTT = """WEBVTT

NOTE 00:01 is no cue

intro
00:01.500 --> 00:02.250 position:10%
<v Ann>Hello,</v> <00:00:01.900><c>world</c>

01:00:00.000 --> 01:00:01.000
1 < 2 and <3

00:00.000 --> 00:01.000
first
"""
LIST = [
    {"start": "00:00:01.500", "end": "00:00:02.250", "line": "Hello, world"},
    {"timestamp": [3600, 3601.0], "text": "1 < 2 and <3"},
    {"start_time": 0, "end_time": 1, "text": "first"},
]
CUES = [Cue(0.0, 1.0, "first"), Cue(1.5, 2.25, "Hello, world"), Cue(3600.0, 3601.0, "1 < 2 and <3")]


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".srt", SRT),
        (".SRT", SRT.replace("\r\n", "\r")),
        (".vtt", VTT),
        (".json", json.dumps(LIST)),
        (".jsonl", "\n".join(map(json.dumps, LIST)) + "\n\n"),
    ],
)
def test_every_form_gives_the_same_cues(tmp_path: Path, suffix: str, content: str) -> None:
    path = tmp_path / f"s{suffix}"
    path.write_bytes(content.encode())
    assert read_cues(path) == CUES


def test_an_open_end(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('[{"timestamp": [1.5, null], "text": "on and on"}]')
    assert read_cues(tmp_path / "s.json") == [Cue(1.5, math.inf, "on and on")]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("s.srt", b"", "empty_file"),
        ("s.srt", b"<html>not found</html>", "not_media"),
        ("s.srt", "1\n00:00:01,0 --> 00:00:02,0\ncaf\xe9\n".encode("latin-1"), "not_media"),
        ("s.ass", b"[Script Info]", "not_media"),
        ("s.json", b"[]", "not_media"),
        ("s.json", b"{}", "not_media"),
        ("s.json", b'{"a": 1}', "not_media"),
        ("s.json", b'[{"text": "no times"}]', "not_media"),
        ("s.json", b'[{"timestamp": [1], "text": "x"}]', "not_media"),
        ("s.json", b'[{"start": NaN, "end": 1, "text": "x"}]', "not_media"),
        ("s.jsonl", b'{"start": "soon", "end": 1, "text": "x"}', "not_media"),
        ("s.json", b"[" * 100_000, "not_media"),
    ],
)
def test_what_is_no_subtitle_file(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MediaError) as caught:
        read_cues(tmp_path / name)
    assert caught.value.kind == kind and name in str(caught.value)


@given(st.binary(max_size=200), st.sampled_from([".srt", ".vtt", ".json", ".jsonl"]))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"noise{suffix}"
    path.write_bytes(content)
    with contextlib.suppress(MediaError):
        read_cues(path)
