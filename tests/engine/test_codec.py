"""LLaVA-OneVision-2's codec videos through vLLM's path, with a stand-in for the program that makes canvases."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.checkpoints import cv_preinfer, llava_onevision2
from tests.conftest import ROOT, vidpipe, write_clip
from vidpipe.engine import vllm_codec, vllm_environment
from vidpipe.engine.interface import EngineInput
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.errors import CapabilityError, EngineError, MediaError, RowError
from vidpipe.job.codec import for_codec, require_programs
from vidpipe.job.prepare import ClipReader
from vidpipe.job.work import ClipInputs, read_and_prepare
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.llava_onevision2_patches import frame_runs
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import make_plan
from vidpipe.recipe.schema import Recipe
from vidpipe.video.timeline import read_timeline

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

FAMILY = get_family("llava_onevision2")
VIDEOS = ROOT / "tests" / "hard_inputs" / "video"
DEMO = ROOT / "data" / "demo"
QUESTIONS = ("What is shown?", "When?")
REAL = shutil.which("cv-preinfer", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.fixture(scope="module", autouse=True)
def _program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("bin")
    cv_preinfer.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
        patch.delenv(vllm_codec.CACHE_VARIABLE, raising=False)
        yield


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llava_onevision2")
    llava_onevision2.make(folder)
    return folder


def recipe(checkpoint: Path, **sampling: Any) -> Recipe:
    model = {"path": str(checkpoint), "trust_remote_code": True}
    sampling = {"video_backend": "codec", **sampling}
    engine = {"args": {"max_model_len": 8192, "max_num_seqs": 8}}
    values = {"manifest": "m", "model": model, "generation": {"max_tokens": 8}, "sampling": sampling, "engine": engine}
    return for_codec(Recipe.model_validate(values))


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> Iterator[VllmEngine]:
    asked = recipe(checkpoint)
    engine = VllmEngine(asked.model, asked.engine, str(checkpoint))
    engine.start()
    yield engine
    engine.stop()


def prepared(engine: VllmEngine, checkpoint: Path, path: Path, *, window: Any = None, **sampling: Any) -> ClipInputs:
    asked = recipe(checkpoint, **sampling)
    processor = json.loads((checkpoint / "preprocessor_config.json").read_text())
    medium = Medium("video", str(path), **(window or {}))
    rows = [Row(index=n, line=n, id=f"r{n}", media=(medium,), question=q) for n, q in enumerate(QUESTIONS)]
    plan = make_plan(rows, asked, FAMILY, processor)
    assert not plan.bad_rows, plan.bad_rows
    reader = ClipReader(asked, FAMILY, processor, path.parent, allow_outside_root=True)
    return read_and_prepare(reader, engine.preparer, plan.clips[0])


def said(engine: VllmEngine, made: EngineInput, times_s: Any) -> str:
    """The prompt as the rules say it, from the source frames that the encoder is told."""
    positions = made.payload["mm_kwargs"]["video"][0]["patch_positions_videos"].data
    runs = frame_runs(positions[:, 0].tolist(), 2)
    assert len(runs) > 2
    video = "".join(
        f"<{times_s[frame]:.1f} seconds><|vision_start|>{'<|image_pad|>' * tokens}<|vision_end|>\n"
        for frame, tokens in runs
    )
    return f"<|im_start|>user\n{video}{QUESTIONS[int(made.id[1:])]}<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("name", ["cfr", "vfr"])
def test_answers_with_the_times_of_the_file(
    engine: VllmEngine, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = write_clip(tmp_path / "clip.mp4", 60, 8, 128, 96) if name == "cfr" else VIDEOS / "vfr.mp4"
    theirs: list[list[int]] = []
    original = vllm_codec.with_true_times

    def watched(video: Any, rendered: Any, tokenizer: Any) -> Any:
        theirs.append(rendered["prompt_token_ids"])
        return original(video, rendered, tokenizer)

    monkeypatch.setattr(vllm_codec, "with_true_times", watched)
    inputs = prepared(engine, checkpoint, path, max_pixels=20_000)
    timeline, tokenizer = read_timeline(path), engine._engine.renderer.get_tokenizer()
    replies = {}
    for made in inputs.inputs:
        assert isinstance(made, EngineInput)
        ids = made.payload["prompt_token_ids"]
        assert ids == tokenizer.encode(said(engine, made, timeline.elapsed_s), add_special_tokens=False)
        engine.submit(made)
    while engine._engine.has_unfinished_requests():
        replies |= {reply.id: reply for reply in engine.poll()}
    (frames,), media = inputs.seen.videos, inputs.seen.media
    assert frames.times_s == timeline.times_s[frames.indices].tolist() and frames.count == len(frames.indices) > 2
    assert frames.size_wh[0] * frames.size_wh[1] <= 20_000 and "canvases" in media.notes[-1]
    for reply in replies.values():
        assert reply.tokens_out == 8 and reply.vision_tokens_kept == inputs.seen.vision_tokens > 0
    made = inputs.inputs[0]
    assert len(theirs) == 1, "canvases are made once a clip"
    assert (theirs[0] == made.payload["prompt_token_ids"]) is (name == "cfr"), "vLLM: number / average rate"
    assert made.payload["mm_kwargs"] is inputs.inputs[1].payload["mm_kwargs"]  # type: ignore[union-attr]


def test_number_and_size_of_canvases(engine: VllmEngine, checkpoint: Path) -> None:
    path = DEMO / "clip_11.mp4"
    default, more, less = (
        prepared(engine, checkpoint, path, **options).seen
        for options in ({}, {"canvases": 8}, {"canvases": 2, "max_pixels": 10_000})
    )
    grids = [int(seen.media.notes[-1].split(" on ")[1].split()[0]) for seen in (default, more, less)]  # type: ignore[union-attr]
    assert grids == [4, 8, 2], "as the checkpoint's preprocessor_config.json says, and as asked"
    assert less.videos[0].size_wh < default.videos[0].size_wh
    assert len({seen.videos[0].sha for seen in (default, more, less)}) == 3


@pytest.mark.parametrize(
    ("name", "window", "kind", "reason"),
    [
        ("cfr_ok.mp4", {"start_s": 0.5}, "bad_window", "whole files"),
        ("av1.mp4", None, "unsupported_codec", "the codec is av1"),
        ("rot90.mp4", None, "unsupported_codec", "turned or mirrored"),
        ("edit_trim.mp4", None, "unsupported_codec", "hides 3 of its frames"),
        ("trunc_faststart.mp4", None, "truncated", "frames are missing"),
        ("three.mp4", None, "unsupported_codec", "no canvases produced"),
    ],
)
def test_what_the_codec_cannot_take(
    engine: VllmEngine, checkpoint: Path, name: str, window: Any, kind: str, reason: str
) -> None:
    with pytest.raises(MediaError, match=reason) as caught:
        prepared(engine, checkpoint, VIDEOS / name, window=window)
    assert caught.value.kind == kind and "sampling.codec_fallback: frames" in str(caught.value)
    inputs = prepared(engine, checkpoint, VIDEOS / name, window=window, codec_fallback="frames", max_frames=4)
    (frames,), media = inputs.seen.videos, inputs.seen.media
    assert media is not None and "not canvases" in media.notes[-1] and reason in media.notes[-1]
    assert 2 <= frames.count <= 4 and all(isinstance(made, EngineInput) for made in inputs.inputs)
    with pytest.raises(MediaError) as caught:  # what neither can take is told once, as frames tell it
        prepared(engine, checkpoint, VIDEOS / "zero_byte.mp4", codec_fallback="frames")
    assert caught.value.kind == "empty_file"


def test_a_whole_run(checkpoint: Path, tmp_path: Path) -> None:
    rows = [
        {"id": "a1", "video": str(DEMO / "clip_00.mp4"), "question": "What?"},
        {"id": "a2", "video": str(DEMO / "clip_00.mp4"), "question": "When?"},
        {"id": "part", "video": str(DEMO / "clip_00.mp4"), "question": "What?", "clip_start": 1, "clip_end": 3},
        {"id": "av1", "video": str(VIDEOS / "av1.mp4"), "question": "What?", "sampling.codec_fallback": "fail"},
        {"id": "frames", "video": str(DEMO / "clip_01.mp4"), "question": "What?", "sampling.video_backend": "frames"},
        {"id": "two", "video": [str(DEMO / "clip_01.mp4")] * 2, "question": "What?"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sampling = {"video_backend": "codec", "codec_fallback": "frames", "max_pixels": 20_000}
    (tmp_path / "job.yaml").write_text(
        json.dumps(
            {
                "manifest": "rows.jsonl",
                "model": {"path": str(checkpoint), "trust_remote_code": True},
                "sampling": sampling,
                "generation": {"max_tokens": 4},
                "engine": {"args": {"max_model_len": 8192}},
                "output": {"tolerance": 2},
            }
        )
    )
    done = vidpipe("run", tmp_path / "job.yaml", "-o", tmp_path / "run", timeout_s=600)
    assert done.returncode == 0, done.stdout + done.stderr
    table = {row["id"]: row for row in pq.read_table(tmp_path / "run" / "results.parquet").to_pylist()}
    assert {key: row["error_kind"] for key, row in table.items() if row["error_kind"]} == {
        "av1": "unsupported_codec",
        "two": "bad_value",
    }
    assert table["a1"]["frames"] == table["a2"]["frames"] and "canvases" in table["a1"]["media"]["notes"][-1]
    assert "not canvases" in table["part"]["media"]["notes"][-1] and table["part"]["frames"]["times_s"][0] == 1.0
    assert table["frames"]["media"]["notes"] == [] and table["frames"]["frames"]["count"] == 8
    assert "one video" in table["two"]["error"]


def test_what_cannot_work_is_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recipe(checkpoint)
    for key, section, reason in (
        ("engine", {"name": "fake"}, "fake has no codec"),
        ("engine", {"encoder_graphs": "on"}, "encoder_graphs"),
        ("feed", {"prepare": "engine"}, r"feed\.prepare"),
    ):
        with pytest.raises(CapabilityError, match=reason):
            for_codec(Recipe.model_validate({**asked.model_dump(exclude_unset=True), key: section}))
    require_programs(asked)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(vllm_codec.sys, "executable", "/nowhere/python")
    with pytest.raises(CapabilityError, match="pip install --no-deps codec-video-prep"):
        require_programs(asked)
    require_programs(
        asked.model_copy(update={"sampling": asked.sampling.model_copy(update={"video_backend": "frames"})})
    )


def test_canvases_do_not_stay_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for _ in range(2):
        with vllm_codec.scratch():
            folder = Path(os.environ[vllm_codec.CACHE_VARIABLE])
            (folder / "clip").mkdir()
        assert not folder.exists() and vllm_codec.CACHE_VARIABLE not in os.environ
    monkeypatch.setenv(vllm_codec.CACHE_VARIABLE, str(tmp_path))
    with vllm_codec.scratch():
        (tmp_path / "clip").mkdir()
    assert (tmp_path / "clip").exists(), "a folder of the user's own is left alone"


def test_one_video_a_row_and_only_where_the_engine_knows(checkpoint: Path) -> None:
    from vidpipe.plan.clips import refuse_impossible_media

    able = FAMILY.abilities
    asked = recipe(checkpoint)
    row = Row(index=0, line=1, id="r", media=(Medium("video", "a"), Medium("video", "b")), question="?")
    family = get_family("llava_onevision2")
    family.abilities = replace(able, several_videos=True)  # type: ignore[misc]
    with pytest.raises(RowError, match="miscounts"):
        refuse_impossible_media(row, family, asked, asked.sampling)
    frames = asked.model_copy(update={"sampling": asked.sampling.model_copy(update={"video_backend": "frames"})})
    one = Row(index=0, line=1, id="r", media=row.media[:1], question="?")
    with pytest.raises(RowError, match="started for frames"):
        refuse_impossible_media(one, family, frames, asked.sampling)


@pytest.mark.skipif(REAL is None, reason="cv-preinfer (codec-video-prep) is not installed here")
def test_the_real_program(engine: VllmEngine, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CV_PREINFER_BIN", str(REAL))
    for path in (DEMO / "clip_00.mp4", VIDEOS / "opengop_hevc.mp4", VIDEOS / "vfr.mp4"):
        inputs = prepared(engine, checkpoint, path)
        (made, _) = inputs.inputs
        assert isinstance(made, EngineInput)
        tokenizer = engine._engine.renderer.get_tokenizer()
        expected = said(engine, made, read_timeline(path).elapsed_s)
        assert made.payload["prompt_token_ids"] == tokenizer.encode(expected, add_special_tokens=False)
        engine.submit(made)
        while not (replies := engine.poll()):
            pass
        assert replies[0].vision_tokens_kept == inputs.seen.vision_tokens
