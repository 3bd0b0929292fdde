"""The real vLLM, CPU build, with the tiny trained model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, TINY_MODEL, write_clip
from vidpipe.engine.interface import Reply, Request, Video
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.engine.vllm_prepare import _renderers
from vidpipe.errors import CapabilityError, EngineError, RowError
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.job.reply import judge
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.prompt import token_ids
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import EngineSection, Generation, Model, Recipe

pytestmark = pytest.mark.engine

RECIPE = Recipe.model_validate({"manifest": "m", "model": {"path": str(TINY_MODEL)}})
PROCESSOR = json.loads((TINY_MODEL / "video_preprocessor_config.json").read_text())
QUESTION = "What appears at 5.5 seconds?"


@pytest.fixture(scope="module")
def engine() -> Iterator[VllmEngine]:
    settings = EngineSection(args={"max_model_len": 4096, "max_num_seqs": 8})
    engine = VllmEngine(RECIPE.model, settings, str(TINY_MODEL))
    engine.start()
    yield engine
    engine.stop()
    engine.stop()


def read_clip(path: Path, start_s: float | None = None, end_s: float | None = None) -> tuple[Clip, PreparedClip]:
    family = get_family("qwen3_vl")
    medium = Medium("video", str(path), start_s, end_s)
    asked = Row(index=0, line=1, id="r", media=(medium,), question=QUESTION)
    clip = make_plan([asked], RECIPE, family, PROCESSOR).clips[0]
    return clip, ClipReader(RECIPE, family, PROCESSOR, path.parent, allow_outside_root=True).read(clip)


def video_of(prepared: PreparedClip) -> Video:
    (video,) = prepared.media
    assert isinstance(video, Video)
    return video


def request(request_id: str, clip: Clip, prepared: PreparedClip, **generation: Any) -> Request:
    settings = Generation(**{"max_tokens": 8, **generation})
    return Request(request_id, clip.first.messages, settings, prepared.media)


def submit(engine: VllmEngine, *asked: Request) -> None:
    """Prepare rows of one clip in this process, as a run does, and queue them."""
    names = [hashlib.sha256(medium.pixels.tobytes()).hexdigest() for medium in asked[0].media]
    for made in engine.preparer.prepare(asked, names).inputs:
        if isinstance(made, RowError):
            raise made
        engine.submit(made)


def drain(engine: VllmEngine) -> dict[str, Reply]:
    replies: dict[str, Reply] = {}
    while engine._engine.has_unfinished_requests():
        replies |= {reply.id: reply for reply in engine.poll()}
    return replies


def upstream_prompt_ids(engine: VllmEngine, path: Path) -> list[int]:
    """Prompt ids that vLLM gets when its own loader reads the file."""
    from vllm.multimodal.media import ImageMediaIO
    from vllm.multimodal.media.video import VideoMediaIO

    loader = VideoMediaIO(ImageMediaIO(), num_frames=-1, fps=2, video_backend="qwen3_vl")
    frames, metadata = loader.load_bytes(path.read_bytes())
    prompt = (
        f"<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    item = {"prompt": prompt, "multi_modal_data": {"video": [(frames, {**metadata, "do_sample_frames": False})]}}
    ids: list[int] = engine._engine.renderer.render_cmpl([item])[0]["prompt_token_ids"]
    return ids


@pytest.mark.parametrize(
    ("frames", "fps", "width", "height"), [(64, 8, 128, 128), (90, 30, 96, 64), (250, 25, 64, 48), (33, 10, 128, 96)]
)
def test_prompt_ids_equal_those_of_vllms_own_loader(
    engine: VllmEngine, tmp_path: Path, frames: int, fps: int, width: int, height: int
) -> None:
    path = write_clip(tmp_path / "clip.mp4", frames, fps, width, height)
    clip, prepared = read_clip(path)
    submit(engine, request("r", clip, prepared))
    reply = drain(engine)["r"]
    expected = np.asarray(upstream_prompt_ids(engine, path), "<i4")
    assert reply.prompt_sha == hashlib.sha256(expected.tobytes()).hexdigest()
    assert reply.tokens_in == len(expected)
    assert reply.vision_tokens_kept == prepared.seen.vision_tokens


def test_pixels_equal_those_of_vllms_own_loader() -> None:
    from vllm.multimodal.media import ImageMediaIO
    from vllm.multimodal.media.video import VideoMediaIO

    path = ROOT / "data" / "demo" / "clip_00.mp4"
    loader = VideoMediaIO(ImageMediaIO(), num_frames=-1, fps=2, video_backend="qwen3_vl")
    frames, metadata = loader.load_bytes(path.read_bytes())
    _, prepared = read_clip(path)
    assert prepared.seen.videos[0].indices == list(metadata["frames_indices"])
    difference = np.abs(frames.astype(int) - video_of(prepared).pixels.astype(int))
    assert difference.max() <= 2


def test_the_prompt_says_the_times_that_the_file_has(engine: VllmEngine, tmp_path: Path) -> None:
    path = write_clip(tmp_path / "clip.mp4", 32, 8)
    clip, prepared = read_clip(path, start_s=1.0, end_s=3.0)
    assert prepared.seen.videos[0].times_s[0] == 1.0 and prepared.seen.videos[0].times_s[-1] < 3.0
    times_s = [t - 1.0 for t in prepared.seen.videos[0].times_s]
    texts = get_family("qwen3_vl").time_texts(times_s, clip.first.settings.sampling)
    ids = _renderers[engine.preparer._key]._prompts.token_ids(clip.first.messages, "literal")
    item = {
        "prompt_token_ids": ids,
        "multi_modal_data": {"video": [(video_of(prepared).pixels, dict(video_of(prepared).metadata))]},
    }
    rendered = engine._engine.renderer.render_cmpl([item])[0]["prompt_token_ids"]
    told = engine._engine.get_tokenizer().decode(rendered)
    assert [told.count(text) for text in texts] == [1] * len(texts), told


@pytest.mark.parametrize(("frames", "fps"), [(24, 8), (33, 10), (250, 25)])
def test_the_family_says_the_prompt_token_by_token(engine: VllmEngine, tmp_path: Path, frames: int, fps: int) -> None:
    clip, prepared = read_clip(write_clip(tmp_path / "clip.mp4", frames, fps))
    family, sampling = get_family("qwen3_vl"), clip.first.settings.sampling
    metadata, (height, width) = video_of(prepared).metadata, video_of(prepared).pixels.shape[1:3]
    layout = family.layout(len(video_of(prepared).pixels), width, height, sampling, PROCESSOR)
    told_s = [index / metadata["fps"] for index in metadata["frames_indices"]]
    tokenizer = engine._engine.get_tokenizer()
    video = token_ids(
        family.prompt(told_s, layout, sampling),
        lambda text: tokenizer.encode(text, add_special_tokens=False),
        tokenizer.convert_tokens_to_ids,
    )
    ids = _renderers[engine.preparer._key]._prompts.token_ids(clip.first.messages, "literal")
    place = ids.index(tokenizer.convert_tokens_to_ids(family.slot_word))
    submit(engine, request("r", clip, prepared, max_tokens=1))
    expected = np.asarray([*ids[: place - 1], *video, *ids[place + 2 :]], "<i4")
    assert drain(engine)["r"].prompt_sha == hashlib.sha256(expected.tobytes()).hexdigest()


def test_a_bad_request_fails_alone(engine: VllmEngine, tmp_path: Path) -> None:
    clip, prepared = read_clip(write_clip(tmp_path / "clip.mp4"))
    submit(engine, request("good", clip, prepared))
    long = Request("long", ({"role": "user", "content": "red " * 5000},), Generation())
    with pytest.raises(RowError) as caught:
        submit(engine, long)
    assert caught.value.kind == "prompt_too_long" and "4096" in str(caught.value)
    two_videos = {"role": "user", "content": [{"type": "video"}, {"type": "video"}]}
    with pytest.raises(RowError):
        submit(engine, Request("two", (two_videos,), Generation(), prepared.media))
    replies = drain(engine)
    assert list(replies) == ["good"] and replies["good"].text is not None


def test_length_and_times(engine: VllmEngine, tmp_path: Path) -> None:
    clip, prepared = read_clip(write_clip(tmp_path / "clip.mp4"))
    submit(engine, request("r", clip, prepared, max_tokens=1))
    reply = drain(engine)["r"]
    assert reply.finish_reason == "length" and reply.tokens_out == 1
    assert reply.queue_s is not None and reply.engine_s is not None and 0 <= reply.engine_s < 60


def test_answers_are_held_to_the_form_that_is_asked_for(engine: VllmEngine, tmp_path: Path) -> None:
    clip, prepared = read_clip(write_clip(tmp_path / "clip.mp4"))
    choice, digits = ["zebra crossing", "quagmire"], {"type": "string", "pattern": "^[0-9]{3}$"}
    lookahead = {"type": "string", "pattern": "(?=a)b"}
    submit(
        engine,
        request("choice", clip, prepared, choice=choice, max_tokens=32),
        request("regex", clip, prepared, regex="[x-z]{2}", max_tokens=32),
        request("json", clip, prepared, json_schema=digits, max_tokens=32),
        request("odd", clip, prepared, json_schema=lookahead),
    )
    replies = drain(engine)
    assert replies["choice"].text in choice
    assert re.fullmatch("[x-z]{2}", replies["regex"].text or "")
    assert re.fullmatch('"[0-9]{3}"', replies["json"].text or "")
    odd = Generation(json_schema=lookahead)
    assert judge(replies["odd"].text or "", odd).parse == "mismatch", "what the grammar leaves out is found afterwards"


def test_owned_arguments_are_refused() -> None:
    with pytest.raises(CapabilityError, match=r"video_pruning_rate.*pruning\.rate"):
        VllmEngine(Model(path="m"), EngineSection(args={"video_pruning_rate": 0.5}), "m")


def test_a_checkpoint_that_cannot_load_is_an_engine_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl"}')
    with pytest.raises(EngineError) as caught:
        VllmEngine(Model(path="m"), EngineSection(), str(tmp_path)).start()
    assert caught.value.kind == "engine_start"
