"""Preparing once for all rows of a clip, and in another process, changes no token and no answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, TINY_MODEL
from vidpipe.engine.interface import EngineInput, Refusal, Reply, Request, Video
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.errors import EngineError, RowError
from vidpipe.job.prepare import ClipReader
from vidpipe.job.work import prepare, read_and_prepare
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import EngineSection, Generation, Recipe
from vidpipe.video.pool import ClipPool

pytestmark = pytest.mark.engine

RECIPE = Recipe.model_validate(
    {"manifest": "m", "model": {"path": str(TINY_MODEL)}, "generation": {"max_tokens": 8}, "sampling": {"fps": 2}}
)
PROCESSOR = json.loads((TINY_MODEL / "video_preprocessor_config.json").read_text())
DEMO = ROOT / "data" / "demo"


@pytest.fixture(scope="module")
def engine() -> Iterator[VllmEngine]:
    settings = EngineSection(args={"max_model_len": 4096, "max_num_seqs": 8})
    engine = VllmEngine(RECIPE.model, settings, str(TINY_MODEL))
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def clips() -> tuple[Clip, ...]:
    """Two clips of the demo, six rows each; one row has a system text of its own, one a control word."""
    lines = map(json.loads, (DEMO / "rows.jsonl").read_text().splitlines())
    rows = [
        Row(index=i, line=i, id=line["id"], media=(Medium("video", line["video"]),), question=line["question"])
        for i, line in enumerate(lines)
        if line["video"] in ("clip_00.mp4", "clip_01.mp4")
    ]
    first = (Medium("video", "clip_00.mp4"),)
    special = [
        Row(index=90, line=90, id="system", media=first, question="Is it so?", system="You see shapes."),
        Row(index=91, line=91, id="control", media=first, question="What is <|video_pad|>?"),
    ]
    return make_plan([*rows, *special], RECIPE, get_family("qwen3_vl"), PROCESSOR).clips


@pytest.fixture(scope="module")
def reader() -> ClipReader:
    return ClipReader(RECIPE, get_family("qwen3_vl"), PROCESSOR, DEMO, allow_outside_root=True)


def one_by_one(engine: VllmEngine, clip: Clip, reader: ClipReader) -> list[EngineInput]:
    """Each row rendered whole by itself, as `LLM.chat` would."""
    media = reader.read(clip).media
    inputs = []
    for planned in clip.rows:
        asked = Request(planned.row.id, planned.messages, planned.settings.generation, media)
        (made,) = engine.preparer.prepare([asked], [f"alone {planned.row.id}"]).inputs
        assert isinstance(made, EngineInput)
        inputs.append(made)
    return inputs


def answers(engine: VllmEngine, inputs: list[EngineInput]) -> dict[str, Reply]:
    replies: dict[str, Reply] = {}
    for made in inputs:
        engine.submit(made)
    while engine._engine.has_unfinished_requests():
        replies |= {reply.id: reply for reply in engine.poll()}
    return replies


def ids(made: Any) -> list[int]:
    found: list[int] = made.payload["prompt_token_ids"]
    return found


def test_rows_beside_the_first_equal_rows_alone(
    engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[int] = []
    renderer = engine._engine.renderer
    original = renderer.render_cmpl
    alone = [one_by_one(engine, clip, reader) for clip in clips]
    monkeypatch.setattr(renderer, "render_cmpl", lambda prompts: rendered.append(1) or original(prompts))
    together = [list(prepare(RECIPE, engine.preparer, clip, reader.read(clip)).inputs) for clip in clips]
    assert len(rendered) == 2 + 1, "once a clip, and once for the row whose system text stands before the video"
    for ours, theirs in zip(together, alone, strict=True):
        assert [ids(made) for made in ours] == [ids(made) for made in theirs]
        items = {id(made.payload["mm_kwargs"]) for made in ours if made.id != "system"}  # type: ignore[union-attr]
        assert len(items) == 1, "rows share their media"
    first = answers(engine, [made for inputs in alone for made in inputs])
    second = answers(engine, [made for inputs in together for made in inputs])  # type: ignore[misc]
    assert {key: (r.text, r.prompt_sha) for key, r in first.items()} == {
        key: (r.text, r.prompt_sha) for key, r in second.items()
    }
    assert len({reply.text for reply in first.values()}) > 3, "the model does answer"


def test_workers_prepare_the_same(engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader) -> None:
    preparer = VllmPreparer(engine.preparer.checkpoint, engine.preparer.arguments)
    here = [prepare(RECIPE, engine.preparer, clip, reader.read(clip)) for clip in clips]
    with ClipPool(2) as pool:
        futures = [
            pool.submit(read_and_prepare, reader, preparer, clip, name="clip", time_limit_s=60, first=preparer.warm_up)
            for clip in clips
        ]
        there = [future.result(120) for future in futures]
    hashes = []
    for ours, theirs in zip(here, there, strict=True):
        assert [ids(made) for made in theirs.inputs] == [ids(made) for made in ours.inputs]
        assert theirs.media_bytes == ours.media_bytes > 10_000
        a, b = ours.inputs[0].payload, theirs.inputs[0].payload  # type: ignore[union-attr]
        assert a["mm_hashes"] == b["mm_hashes"] and a["mm_placeholders"]["video"][0].offset > 0
        hashes += b["mm_hashes"]["video"]
        for name, field in a["mm_kwargs"]["video"][0].items():
            other = b["mm_kwargs"]["video"][0][name].data
            assert type(other) is type(field.data) and np.array_equal(np.asarray(other), np.asarray(field.data)), name
        beside = [made.payload["mm_kwargs"] for made in theirs.inputs if made.id != "system"]  # type: ignore[union-attr]
        assert all(item is beside[0] for item in beside), "one item for all rows, also behind a process border"
    assert len(set(hashes)) == len(hashes), "items of two workers are never taken for each other"
    made_here, made_there = ([made for clip in side for made in clip.inputs] for side in (here, there))
    a_replies, b_replies = answers(engine, made_there), answers(engine, made_here)  # type: ignore[arg-type]
    assert {k: r.text for k, r in a_replies.items()} == {k: r.text for k, r in b_replies.items()}


def test_too_long_is_known_before_the_engine(engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader) -> None:
    media = reader.read(clips[0]).media
    content = [{"type": "video"}, {"type": "text", "text": "red"}]
    long = [{"type": "video"}, {"type": "text", "text": "red " * 5000}]
    asked = [
        Request(name, ({"role": "user", "content": parts},), Generation(), media)
        for name, parts in (("short", content), ("long", long))
    ]
    short, refused = engine.preparer.prepare(asked, ["x"]).inputs
    assert isinstance(short, EngineInput) and short.tokens == len(ids(short))
    assert isinstance(refused, RowError) and refused.kind == "prompt_too_long" and "4096" in str(refused)


def test_a_preparer_that_cannot_start_is_an_engine_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no such model"}')
    with pytest.raises(EngineError) as caught:
        VllmPreparer(str(tmp_path), {"model": str(tmp_path)}).warm_up()
    assert caught.value.kind == "engine_start"


def test_a_row_without_a_video_is_text(engine: VllmEngine) -> None:
    asked = Request("text", ({"role": "user", "content": "red"},), Generation(max_tokens=2))
    prepared = engine.preparer.prepare([asked], [])
    assert prepared.media_bytes == 0 and answers(engine, list(prepared.inputs))["text"].tokens_out > 0  # type: ignore[arg-type]


def test_text_between_frames_takes_no_embedding(
    engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader
) -> None:
    (video,) = reader.read(clips[0]).media
    assert isinstance(video, Video)
    steps = -(-len(video.pixels) // 2)
    told = dataclasses.replace(video, texts_behind=("", "one two") + ("",) * (steps - 2))
    content = [{"type": "video"}, {"type": "text", "text": "red"}]
    plain, with_text = (
        engine.preparer.prepare([Request("r", ({"role": "user", "content": content},), Generation(), (item,))], ["x"])
        for item in (video, told)
    )
    before, after = plain.inputs[0], with_text.inputs[0]
    assert isinstance(before, EngineInput) and isinstance(after, EngineInput) and after.tokens > before.tokens
    for made in (before, after):
        (place,) = made.payload["mm_placeholders"]["video"]
        span = np.asarray(ids(made)[place.offset : place.offset + place.length])
        assert (place.is_embed.numpy() == (span == made.vision_token_ids[0])).all()
        assert place.get_num_embeds() == int((np.asarray(ids(made)) == made.vision_token_ids[0]).sum())
    wrong = dataclasses.replace(video, texts_behind=("one",))
    (refused,) = engine.preparer.prepare(
        [Request("r", ({"role": "user", "content": content},), Generation(), (wrong,))], ["x"]
    ).inputs
    assert isinstance(refused, RowError)


def test_frames_reach_the_processor_without_a_copy(
    engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    decoded, renderer = reader.read(clips[0]), engine.preparer._renderer()
    given: list[Any] = []
    original = renderer._renderer.render_cmpl

    def render(prompts: list[dict[str, Any]]) -> Any:
        given.extend(video for prompt in prompts for video in prompt["multi_modal_data"]["video"])
        return original(prompts)

    monkeypatch.setattr(renderer._renderer, "render_cmpl", render)
    prepare(RECIPE, engine.preparer, clips[0], decoded)
    (video,) = decoded.media
    assert given and isinstance(video, Video)
    for pixels, _ in given:
        assert isinstance(pixels, torch.Tensor) and pixels.shape[1] == 3
        assert pixels.data_ptr() == video.pixels.ctypes.data


def test_media_travel_to_the_core_once(
    engine: VllmEngine, clips: tuple[Clip, ...], reader: ClipReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Last in this file: when one of two engines in a process stops, vLLM takes the other one's state along.
    expected = {key: reply.text for key, reply in answers(engine, one_by_one(engine, clips[0], reader)).items()}
    keeping = VllmEngine(
        RECIPE.model,
        EngineSection(args={"max_model_len": 4096, "max_num_seqs": 8, "mm_processor_cache_gb": 0.1}),
        str(TINY_MODEL),
    )
    keeping.start()
    try:
        made = list(prepare(RECIPE, keeping.preparer, clips[0], reader.read(clips[0])).inputs)
        sent: list[bool] = []
        original = keeping._engine.engine_core.add_request

        def watched(request: Any) -> None:
            sent.append(request.mm_features[0].data is not None)
            original(request)

        monkeypatch.setattr(keeping._engine.engine_core, "add_request", watched)
        # Refused at the last moment: the core has not got it.
        wrong = made[0].generation.model_copy(update={"stop": [""]})  # type: ignore[union-attr]
        keeping.submit(dataclasses.replace(made[0], generation=wrong))  # type: ignore[type-var]
        assert [type(item) for item in keeping.poll()] == [Refusal]
        assert {key: reply.text for key, reply in answers(keeping, made).items()} == expected  # type: ignore[arg-type]
        assert sent == [True] + [False] * (len(made) - 1)
    finally:
        keeping.stop()
