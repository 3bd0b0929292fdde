"""`vidpipe probe` as a program: its JSON keys are a contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.video.clips import write_blocks

KEYS = [
    *(
        "file",
        "outcome",
        "error",
        "stream_index",
        "codec",
        "display_wh",
        "frames",
        "duration_s",
        "average_fps",
    ),
    *("variable_rate", "rotation_deg", "mirrored", "notes"),
]


def probe(*arguments: str | bytes, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vidpipe", "probe", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, env=os.environ)


def document(*arguments: str | bytes, cwd: Path) -> Any:
    return json.loads(probe(*arguments, "--json", cwd=cwd).stdout)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_blocks(tmp_path / "clip.mp4", numbers=range(4), times_ms=(0, 100, 600, 700))


def test_one_file_is_one_object_with_the_contracts_keys(clip: Path) -> None:
    found = document("clip.mp4", cwd=clip.parent)
    assert list(found) == KEYS
    assert (found["outcome"], found["error"], found["codec"]) == ("ok", None, "h264")
    assert (found["display_wh"], found["frames"], found["variable_rate"]) == ([128, 96], 4, True)


def test_the_timeline_comes_when_asked_for(clip: Path) -> None:
    found = document("clip.mp4", "--timeline", cwd=clip.parent)
    assert found["times_s"] == pytest.approx([0, 0.1, 0.6, 0.7], abs=1e-3)
    assert sorted(found) == sorted([*KEYS, "times_s"])


def test_a_broken_file_is_an_answer_too(tmp_path: Path) -> None:
    (tmp_path / "page.mp4").write_text("<html>403</html>")
    found = document("page.mp4", cwd=tmp_path)
    assert found["outcome"] == "error"
    assert found["error"]["kind"] == "not_media"
    assert list(found) == KEYS


def test_several_files_are_a_list_in_their_order(clip: Path) -> None:
    found = document("clip.mp4", "absent.mp4", cwd=clip.parent)
    assert [(f["file"], f["outcome"]) for f in found] == [("clip.mp4", "ok"), ("absent.mp4", "error")]


def test_a_name_that_is_not_text_comes_back_as_a_uri(clip: Path) -> None:
    name = os.path.join(os.fsencode(clip.parent), b"caf\xe9 1.mp4")  # noqa: PTH118
    os.link(clip, name)
    found = document(b"caf\xe9 1.mp4", cwd=clip.parent)
    assert found["outcome"] == "ok"
    assert found["file"].startswith("file:///")
    assert found["file"].endswith("/caf%E9%201.mp4")
    assert document(found["file"], cwd=clip.parent)["frames"] == 4


def test_people_get_lines(clip: Path) -> None:
    lines = probe("clip.mp4", "--timeline", cwd=clip.parent).stdout.splitlines()
    assert lines[0] == "clip.mp4"
    assert "h264, 128 x 96, stream 0" in lines[1]
    assert "4 frames" in lines[2]
    assert len([line for line in lines if line.endswith(" s")]) == 4
