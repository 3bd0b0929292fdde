"""`vidpipe frames`: what it shows is what a run would show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import ROOT, TINY_MODEL, vidpipe, write_clip
from vidpipe.job.preview import family_and_processor, preview
from vidpipe.models.registry import FAMILIES
from vidpipe.recipe.schema import Recipe

CLIP = ROOT / "data" / "demo" / "clip_00.mp4"


@pytest.fixture
def eight_seconds(tmp_path: Path) -> Path:
    """Of eight frames a second."""
    return write_clip(tmp_path / "eight.mp4", frames=64, fps=8, width=128, height=128)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_shows_a_clip(family: str, eight_seconds: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    arguments = ["frames", eight_seconds, "--model", family, "--set", "sampling.fps=1", "-o", sheet, "--json"]
    result = vidpipe(*arguments)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    frames = 16 if family == "ernie45_vl" else 8  # ERNIE's own rule takes no fewer
    assert document["family"] == family and document["frames"] == len(document["indices"]) == frames
    assert document["times_s"] == [index / 8 for index in document["indices"]]
    tenths = family == "llava_onevision2"  # it is told what is printed
    assert document["told_times_s"] == pytest.approx(document["times_s"], abs=0.0501 if tenths else 1e-6)
    assert document["vision_tokens"]["asked"] == document["vision_tokens"]["kept"] > 0
    assert all(text in result.stdout for text in document["time_texts"])
    assert Image.open(sheet).size[0] > 400
    words = vidpipe(*arguments[:-3])
    assert words.returncode == 0 and document["time_texts"][-1] in words.stdout and "prompt: " in words.stdout


def test_pruning_is_previewed_and_says_by_what(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    result = vidpipe(
        "frames", CLIP, "--model", TINY_MODEL, "--set", "pruning.method=evs", "--set", "pruning.rate=0.5",
        "-o", sheet, "--json",
    )  # fmt: skip
    document = json.loads(result.stdout)
    tokens, pruning = document["vision_tokens"], document["pruning"]
    assert tokens["kept"] == tokens["asked"] // 2 == sum(pruning["kept_per_step"])
    assert "not from the model's encoder" in pruning["scores"]
    red = np.asarray(Image.open(sheet).convert("RGB")).astype(int)
    assert ((red[..., 0] - red[..., 1]) > 60).mean() > 0.1, "dropped cells are shaded"


def test_it_reads_what_a_run_reads(eight_seconds: Path) -> None:
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": str(TINY_MODEL)}})
    family, processor = family_and_processor(str(TINY_MODEL), None, Path.cwd())
    shown = preview(eight_seconds, recipe, family, processor)
    assert processor["size"]["longest_edge"] == 25_165_824
    assert shown.seen.videos[0].count == len(shown.pixels) == 16
    assert shown.seen.vision_tokens == shown.tokens.asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "llava_onevision2", "--set", "pruning.method=evs", "--set", "pruning.rate=0.5"], "qwen3_vl"),
        (["--model", "minimax_m3", "--set", "sampling.rule=hf"], "Its rules: vllm"),
        (["--model", "qwen3_vl", "--set", "sampling.num_frames=4"], "Rules that have it: hf"),
        (["--model", "qwen3_vl", "--set", "generation.max_tokens=4"], "only sampling, pruning"),
        (["--model", "./nothing"], "no such folder"),
        (["--model", "qwen3_vl", "-o", "sheet.nothing"], "ends in .png"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = vidpipe("frames", CLIP, *arguments, cwd=tmp_path)
    assert result.returncode == 2 and words in result.stderr and "Traceback" not in result.stderr


def test_a_file_that_is_no_video_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no video")
    result = vidpipe("frames", tmp_path / "a.mp4", "--model", "qwen3_vl")
    assert result.returncode == 2 and "a.mp4" in result.stderr


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    for number in range(1, 13):
        Image.new("RGB", (64, 48), (9 * number, 0, 0)).save(tmp_path / f"{number}.png")
    arguments = ["frames", tmp_path, "--model", "qwen3_vl", "--json"]
    document = json.loads(vidpipe(*arguments, "--frames-fps", "3").stdout)
    assert document["frames"] == 8 and document["told_times_s"] == [index / 3 for index in document["indices"]]
    assert vidpipe(*arguments).returncode == 2, "a folder without a rate is no video"
