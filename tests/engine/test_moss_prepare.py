"""Moss-VL's prompts and patches for SGLang: the frames and times that we chose, through the checkpoint's processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints import moss_vl as checkpoint
from tests.conftest import vidpipe, write_clip
from vidpipe.engine.interface import EngineInput, Request, Video
from vidpipe.engine.retold import Teller
from vidpipe.engine.sglang_prepare import SglangPreparer, SglangPrompt, _renderers
from vidpipe.errors import CapabilityError, RowError
from vidpipe.job.prepare import ClipReader
from vidpipe.manifest.row import Medium, Row
from vidpipe.models import moss_vl
from vidpipe.models.moss_vl_layout import encoder_length
from vidpipe.models.prompt import Told, token_ids
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import make_plan
from vidpipe.recipe.schema import Generation, Recipe, Sampling

FAMILY = get_family("moss_vl")
QUESTION = "What happens?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moss_vl")
    checkpoint.make(folder)
    return folder


@pytest.fixture(scope="module")
def preparer(folder: Path) -> SglangPreparer:
    return SglangPreparer(str(folder), trust_remote_code=True)


def settings_of(folder: Path) -> tuple[dict[str, Any], Sampling]:
    processor = json.loads((folder / "video_preprocessor_config.json").read_text())
    return processor, FAMILY.complete(Sampling(), processor)


def video(
    folder: Path, frames: int, width: int, height: int, ticks: list[int] | None = None, fps: float = 4.0
) -> Video:
    processor, sampling = settings_of(folder)
    pixels = np.random.default_rng(frames).integers(0, 255, (frames, height, width, 3)).astype(np.uint8)
    metadata = {"fps": fps, "total_num_frames": 999, "frames_indices": ticks or list(range(0, 4 * frames, 4))}
    kwargs = FAMILY.processor_kwargs(sampling, processor)
    return Video(pixels, metadata, kwargs, FAMILY.slot_word, FAMILY.vision_word)


def ask(preparer: SglangPreparer, media: tuple[Video, ...], *questions: str) -> list[EngineInput | RowError]:
    parts = [{"type": "video"} for _ in media]
    requests = [
        Request(str(n), ({"role": "user", "content": [*parts, {"type": "text", "text": text}]},), Generation(), media)
        for n, text in enumerate(questions)
    ]
    return list(preparer.prepare(requests, ["clip"] * len(media)).inputs)


def prompt(made: EngineInput | RowError) -> SglangPrompt:
    assert isinstance(made, EngineInput), made
    assert isinstance(made.payload, SglangPrompt)
    return made.payload


def by_the_rules(preparer: SglangPreparer, times_s: list[float], question: str) -> list[int]:
    tokenizer = _renderers[preparer]._tokenizer
    layout, sampling = FAMILY.layout(1, 64, 64, Sampling(min_pixels=1, max_pixels=9999), {}), Sampling()

    def plain(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def word(text: str) -> int:
        found: int = tokenizer.convert_tokens_to_ids(text)
        return found

    seen = token_ids(FAMILY.prompt(times_s, layout, sampling), plain, word)
    begin, end = word("<|im_start|>"), word("<|im_end|>")
    return [begin, *plain("user\n"), *seen, *plain(question), end, *plain("\n"), begin, *plain("assistant\n")]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frames=st.integers(1, 12), width=st.integers(32, 300), height=st.integers(32, 300), data=st.data())
def test_clips_of_all_shapes(
    preparer: SglangPreparer, folder: Path, frames: int, width: int, height: int, data: st.DataObject
) -> None:
    ticks = sorted(data.draw(st.lists(st.integers(0, 5000), min_size=frames, max_size=frames)))
    shown = video(folder, frames, width, height, ticks, fps=1000.0)
    (made,) = ask(preparer, (shown,), QUESTION)
    asked = prompt(made)
    assert list(asked.token_ids) == by_the_rules(preparer, [tick / 1000 for tick in ticks], QUESTION)
    (given_media,) = asked.media["image_data"]
    processor, sampling = settings_of(folder)
    layout = FAMILY.layout(frames, width, height, sampling, processor)
    assert given_media["grid_thw"].tolist() == [list(layout.grid_thw)]
    assert tuple(given_media["pixel_values"].shape) == (np.prod(layout.grid_thw), 3 * 16 * 16)
    assert asked.encoder_slots == layout.vision_tokens == encoder_length([layout.grid_thw], 2)
    assert isinstance(made, EngineInput) and made.tokens == len(asked.token_ids) + asked.encoder_slots


@pytest.mark.parametrize("slot_is_a_token", [False, True])
def test_a_plan_and_a_report_tell_the_same_prompt(tmp_path: Path, slot_is_a_token: bool) -> None:
    checkpoint.make(tmp_path, slot_is_a_token=slot_is_a_token)
    preparer = SglangPreparer(str(tmp_path), trust_remote_code=True)
    ids = prompt(ask(preparer, (video(tmp_path, 2, 64, 64),), QUESTION)[0]).token_ids
    spans = FAMILY.prompt([0.0, 1.0], FAMILY.layout(1, 64, 64, Sampling(min_pixels=1, max_pixels=9999), {}), Sampling())
    messages = [{"role": "user", "content": [{"type": "video"}, {"type": "text", "text": QUESTION}]}]
    told = Teller(str(tmp_path)).tell(messages, [Told(FAMILY.slot_word, tuple(spans))], "literal")
    assert told.ids == ids


def test_patches_are_those_of_the_frames(preparer: SglangPreparer, folder: Path) -> None:
    shown = video(folder, 3, 64, 96)  # a size that needs no resizing
    patches = prompt(ask(preparer, (shown,), QUESTION)[0]).media["image_data"][0]["pixel_values"].numpy()
    blocks = patches.reshape(3, 3, 2, 2, 2, 3, 16, 16)  # frame, block row, block column, row, column, colour, y, x
    pixels = blocks.transpose(0, 1, 3, 6, 2, 4, 7, 5).reshape(3, 96, 64, 3)
    np.testing.assert_allclose(pixels, shown.pixels / 127.5 - 1, atol=1e-6)


def test_rows_of_a_clip_share_its_media(preparer: SglangPreparer, folder: Path) -> None:
    first, second = map(prompt, ask(preparer, (video(folder, 2, 64, 64),), "What?", "When is it?"))
    assert first.media["image_data"][0]["pixel_values"] is second.media["image_data"][0]["pixel_values"]
    assert first.token_ids != second.token_ids


def test_a_row_without_media(preparer: SglangPreparer) -> None:
    (made,) = ask(preparer, (), QUESTION)
    assert prompt(made).media == {} and prompt(made).encoder_slots == 0
    assert isinstance(made, EngineInput) and made.tokens == len(prompt(made).token_ids)


@pytest.mark.parametrize("word", [moss_vl.SLOT, "<|video_pad|>", moss_vl.IMAGE, moss_vl.TIME_START, "<|im_end|>"])
@pytest.mark.parametrize("slot_is_a_token", [False, True])
def test_control_words_of_users_stay_text(tmp_path: Path, word: str, slot_is_a_token: bool) -> None:
    checkpoint.make(tmp_path, slot_is_a_token=slot_is_a_token)
    preparer = SglangPreparer(str(tmp_path), trust_remote_code=True)
    question = f"Is {word} a word?"
    ids = prompt(ask(preparer, (video(tmp_path, 2, 64, 64),), question)[0]).token_ids
    assert list(ids) == by_the_rules(preparer, [0.0, 1.0], question)


def test_two_places_for_one_video(preparer: SglangPreparer, folder: Path) -> None:
    shown = video(folder, 2, 64, 64)
    content = [{"type": "video"}, {"type": "video"}]
    request = Request("r", ({"role": "user", "content": content},), Generation(), (shown,))
    (made,) = preparer.prepare([request], ["clip"]).inputs
    assert isinstance(made, RowError) and "has 2 places" in str(made)


def test_a_processor_that_shows_something_else_costs_its_rows(tmp_path: Path) -> None:
    """The hub's code may change: what comes out is held against what went in."""
    checkpoint.make(tmp_path)
    file = tmp_path / "processing_moss_vl.py"
    file.write_text(file.read_text().replace("{time_s:.1f} seconds", "{time_s + 1:.1f} seconds"))
    preparer = SglangPreparer(str(tmp_path), trust_remote_code=True)
    (made,) = ask(preparer, (video(tmp_path, 2, 64, 64),), QUESTION)
    assert isinstance(made, RowError) and made.kind == "bad_value" and "Its code has changed" in str(made)


def test_a_processor_that_takes_no_frames_costs_its_rows(tmp_path: Path) -> None:
    checkpoint.make(tmp_path)
    file = tmp_path / "video_processing_moss_vl.py"
    file.write_text(file.read_text().replace("self.fetch_videos(videos)", "self.open_files(videos)"))
    preparer = SglangPreparer(str(tmp_path), trust_remote_code=True)
    (made,) = ask(preparer, (video(tmp_path, 2, 64, 64),), QUESTION)
    assert isinstance(made, RowError) and "open_files" in str(made)


def test_without_a_chat_template(tmp_path: Path) -> None:
    checkpoint.make(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(CapabilityError, match="no chat template"):
        SglangPreparer(str(tmp_path), trust_remote_code=True).warm_up()


def test_a_file_as_a_run_reads_it(preparer: SglangPreparer, folder: Path, tmp_path: Path) -> None:
    path = write_clip(tmp_path / "clip.mp4", frames=20, fps=4)
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": str(folder), "trust_remote_code": True}})
    processor, _ = settings_of(folder)
    asked = Row(index=0, line=1, id="r", media=(Medium("video", str(path)),), question=QUESTION)
    clip = make_plan([asked], recipe, FAMILY, processor).clips[0]
    shown = ClipReader(recipe, FAMILY, processor, tmp_path, allow_outside_root=True).read(clip)
    request = Request("r", clip.first.messages, Generation(), shown.media)
    made = prompt(preparer.prepare([request], shown.identities).inputs[0])
    (record,) = shown.seen.videos
    text = _renderers[preparer]._tokenizer.decode(made.token_ids)
    told = [f"{moss_vl.TIME_START}{time_s:.1f} seconds{moss_vl.TIME_END}{moss_vl.IMAGE}" for time_s in record.times_s]
    assert "".join(told) in text and len(told) == 5
    assert made.encoder_slots == shown.seen.vision_tokens


def test_a_plan_counts_slots_against_the_context(folder: Path, tmp_path: Path) -> None:
    write_clip(tmp_path / "clip.mp4", frames=20, fps=4)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "r", "video": "clip.mp4", "question": QUESTION}) + "\n")
    recipe = {
        "manifest": "rows.jsonl",
        "model": {"path": str(folder), "trust_remote_code": True},
        "engine": {"args": {"context_length": 80}},
    }
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    plan = json.loads(vidpipe("plan", tmp_path / "recipe.yaml", "--json").stdout)
    (row,) = plan["predicted"]
    slots = encoder_length([(5, 4, 4)], 2)  # 64x48 pixels become 64x64
    words = len(prompt_of_five_frames(folder))
    assert (plan["context"], row["kept_tokens"]) == (80, slots)
    assert row["prompt_tokens"] == words + slots and plan["over_long"] == ["r"] and words < 80
    assert any("over context_length 80" in line for line in plan["advice"])


def prompt_of_five_frames(folder: Path) -> tuple[int, ...]:
    preparer = SglangPreparer(str(folder), trust_remote_code=True)
    return prompt(ask(preparer, (video(folder, 5, 64, 64),), QUESTION)[0]).token_ids
