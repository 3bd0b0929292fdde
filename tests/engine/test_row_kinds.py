"""Rows of every kind in one run on the real vLLM, CPU build: prompts token by token, tokens by effect, answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

from tests.conftest import ROOT, TINY_MODEL, write_clip
from tests.job.test_run import go, rows_of
from vidpipe.models.prompt import Span, token_ids
from vidpipe.models.qwen3_vl import Qwen3VL, image_layout
from vidpipe.models.qwen3_vl_prompt import END, IMAGE, START
from vidpipe.recipe.schema import Sampling

pytestmark = pytest.mark.engine

PROCESSOR = json.loads((TINY_MODEL / "video_preprocessor_config.json").read_text())
IMAGES = json.loads((TINY_MODEL / "preprocessor_config.json").read_text())
FAMILY = Qwen3VL()
DEMO = ROOT / "data" / "demo"
QUESTION = "What appears at 5.5 seconds?"
PICTURES = {"small.png": (96, 64), "large.png": (320, 192)}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One run over all of them; the row `a` is an everyday one, to compare with."""
    folder = tmp_path_factory.mktemp("kinds")
    for name, (width, height) in PICTURES.items():
        pixels = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
        Picture.fromarray(pixels).save(folder / name)
    (folder / "a.mp4").symlink_to(DEMO / "clip_00.mp4")
    write_clip(folder / "b.mp4", frames=24, fps=8, width=96, height=64)
    asked: list[dict[str, Any]] = [
        {"id": "a", "video": "a.mp4", "question": QUESTION},
        {"id": "text", "video": [], "question": QUESTION},
        {"id": "image", "images": ["large.png"], "question": QUESTION},
        {"id": "images", "images": ["large.png", "small.png"], "question": QUESTION},
        {"id": "two", "video": ["a.mp4", "b.mp4"], "question": QUESTION},
        {"id": "two more", "video": ["a.mp4", "b.mp4"], "question": "Which one is grey?"},
        {"id": "same twice", "video": ["b.mp4", "b.mp4"], "question": QUESTION},
        {"id": "mixed", "images": ["large.png"], "video": ["b.mp4", "a.mp4"], "question": QUESTION},
        {
            "id": "bounded",
            "images": ["large.png"],
            "video": "a.mp4",
            "question": QUESTION,
            "sampling.max_pixels": 30000,
        },
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    recipe = {
        "manifest": "rows.jsonl",
        "model": {"path": str(TINY_MODEL)},
        "engine": {"args": {"max_model_len": 8192, "max_num_seqs": 4}},
        "generation": {"max_tokens": 8},
    }
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    return rows_of(go(folder / "recipe.yaml"))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(TINY_MODEL)


def video(row: dict[str, Any], which: int = 0, zero_s: float = 0.0) -> list[Span]:
    """What stands in the prompt for one of a row's videos, by the frames that the row records."""
    sampling = FAMILY.complete(Sampling(), PROCESSOR)
    frames = [row["frames"], *row["more_frames"]][which]
    width, height = frames["size_wh"]  # multiples of the patch: the rule leaves them as they are
    layout = FAMILY.layout(frames["count"], width, height, sampling, PROCESSOR)
    assert list(layout.size_wh) == frames["size_wh"]
    return FAMILY.prompt([time_s - zero_s for time_s in frames["times_s"]], layout, sampling)


def image(name: str) -> list[Span]:
    return [Span(START, 1), Span(IMAGE, image_layout(*PICTURES[name], IMAGES).vision_tokens), Span(END, 1)]


def sha_of(tokenizer: Any, parts: Sequence[str | Span]) -> str:
    """`prompt_sha` of a prompt made of template texts with control words, and of media."""
    ids: list[int] = []
    for part in parts:
        if isinstance(part, str):
            ids += tokenizer.encode(part, add_special_tokens=False)
        else:
            ids += token_ids(
                [part], lambda text: tokenizer.encode(text, add_special_tokens=False), tokenizer.convert_tokens_to_ids
            )
    return hashlib.sha256(np.asarray(ids, "<i4").tobytes()).hexdigest()


def user(*parts: Span, text: str = QUESTION, answer: str = "") -> list[str | Span]:
    return ["<|im_start|>user\n", *parts, f"{text}<|im_end|>\n<|im_start|>assistant\n{answer}"]


def test_all_are_answered_with_the_tokens_that_the_rules_say(rows: dict[str, dict[str, Any]]) -> None:
    assert {row["id"]: row["error"] for row in rows.values() if row["error"]} == {}
    for row in rows.values():
        assert row["vision_tokens"]["kept"] == row["vision_tokens"]["asked"], row["id"]
        assert row["tokens_out"] > 0 and row["text"] is not None
    assert rows["a"]["text"], "the model does answer what it was trained on"


def test_media_stand_in_the_prompt_as_the_family_says(rows: dict[str, dict[str, Any]], tokenizer: Any) -> None:
    two, mixed, twice = rows["two"], rows["mixed"], rows["same twice"]
    small, large = image("small.png"), image("large.png")
    expected = {
        "a": user(*video(rows["a"])),
        "text": user(),
        "image": user(*large),
        "images": user(*large, *small),
        "two": user(*video(two), *video(two, 1)),
        "two more": user(*video(two), *video(two, 1), text="Which one is grey?"),
        "same twice": user(*video(twice), *video(twice, 1)),
        "mixed": user(*large, *video(mixed), *video(mixed, 1)),
        "bounded": user(*large, *video(rows["bounded"])),
    }
    assert {name: rows[name]["prompt_sha"] for name in expected} == {
        name: sha_of(tokenizer, parts) for name, parts in expected.items()
    }


def test_frames_are_recorded_video_by_video(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["two"]["frames"] == rows["a"]["frames"] and len(rows["two"]["more_frames"]) == 1
    assert rows["mixed"]["frames"] == rows["two"]["more_frames"][0]
    assert rows["mixed"]["more_frames"] == [rows["a"]["frames"]]
    assert rows["bounded"]["frames"]["size_wh"] != rows["a"]["frames"]["size_wh"], "bounds of videos bound no images"
    assert [item["size_wh"] for item in rows["images"]["images"]] == [[320, 192], [96, 64]]
