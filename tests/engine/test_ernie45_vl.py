"""ERNIE-4.5-VL in the real vLLM, CPU build, with a tiny random checkpoint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.checkpoints.ernie45_vl import make
from tests.conftest import vidpipe, write_clip
from tests.engine.predicted import QUESTION, predicted_ids, read_clip, rendered, videos_of
from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.engine.ernie45_vl_frames import hand_over_frames_alone
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.models.ernie45_vl import Ernie45VL
from vidpipe.video.decode import decode_frames
from vidpipe.video.draw import draw_corner_texts
from vidpipe.video.timeline import read_timeline

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

from tests.checkpoints.ernie45_vl_code.processing_ernie4_5_vl import Ernie4_5_VLImageProcessor, drawn

pytestmark = pytest.mark.engine

SMALL = {"min_pixels": 56 * 56, "max_pixels": 112 * 112}
FAMILY = Ernie45VL()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ernie")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def preparer(checkpoint: Path) -> VllmPreparer:
    arguments = {
        "model": str(checkpoint),
        "trust_remote_code": True,
        "max_model_len": 8192,
        "limit_mm_per_prompt": {"video": 2, "image": 1},
        "mm_processor_cache_gb": 0,
        "enforce_eager": True,
    }
    return VllmPreparer(str(checkpoint), arguments)


def test_it_answers_a_real_file(checkpoint: Path, tmp_path: Path) -> None:
    """From the command line to the result; without the repair of the rotary embedding vLLM dies at the first row."""
    clips = {"long": write_clip(tmp_path / "long.mp4", 90, 10, 160, 120), "odd": write_clip(tmp_path / "odd.mp4", 5, 5)}
    rows = [{"id": name, "video": path.name, "question": QUESTION} for name, path in clips.items()]
    rows.append({"id": "long+odd", "video": ["long.mp4", "odd.mp4"], "question": QUESTION})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "manifest": "rows.jsonl",
        "model": {"path": str(checkpoint), "trust_remote_code": True},
        "sampling": SMALL,
        "generation": {"max_tokens": 4},
        "engine": {"args": {"max_model_len": 4096, "max_num_seqs": 4}},
    }
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    result = vidpipe("run", tmp_path / "recipe.yaml", "-o", tmp_path / "run", timeout_s=600)
    assert result.returncode == 0, result.stdout + result.stderr
    answered = pq.read_table(tmp_path / "run" / "results.parquet").to_pylist()
    for row in answered:
        clip, prepared = read_clip(checkpoint, FAMILY, *(clips[name] for name in row["id"].split("+")), **SMALL)
        assert row["status"] in ("ok", "length") and row["tokens_out"] > 0
        ids = np.asarray(predicted_ids(checkpoint, FAMILY, clip, prepared, around=1), "<i4")
        assert row["tokens_in"] == len(ids)
        assert row["prompt_sha"] == hashlib.sha256(ids.tobytes()).hexdigest()
        assert row["vision_tokens"]["kept"] == row["vision_tokens"]["asked"] > 0
        assert row["frames"]["count"] % 2 == 0
    long, odd, both = answered
    assert long["frames"]["indices"] == list(range(0, 90, 5)) and odd["frames"]["indices"] == [0, 1, 2, 3, 4, 4]
    assert long["frames"]["times_s"] == [index / 10 for index in long["frames"]["indices"]]
    assert both["frames"] == long["frames"] and both["more_frames"] == [odd["frames"]]
    pixels = decode_frames(str(clips["long"]), long["frames"]["indices"]).pixels
    assert long["frames"]["sha"] == hashlib.sha256(pixels.tobytes()).hexdigest(), "of the frames before the times"


@pytest.mark.parametrize(
    "sampling",
    [{}, {"fps": 1.0, "min_frames": 4}, {"num_frames": 17}, {"rule": "vllm"}, {"rule": "hf", "fps": 3.0}],
    ids=str,
)
def test_the_family_says_the_prompt_token_by_token(
    checkpoint: Path, preparer: VllmPreparer, tmp_path: Path, sampling: dict[str, Any]
) -> None:
    clip, prepared = read_clip(
        checkpoint, FAMILY, write_clip(tmp_path / "clip.mp4", 75, 25, 96, 128), **SMALL, **sampling
    )
    payload = rendered(preparer, clip, prepared)
    assert payload["prompt_token_ids"] == predicted_ids(checkpoint, FAMILY, clip, prepared, around=1)
    (item,) = payload["mm_kwargs"]["video"]
    frames = item["video_grid_thw"].data.tolist()[0]
    assert frames == prepared.seen.videos[0].count and frames % 2 == 0


@pytest.mark.parametrize("beside", [[], ["clip.mp4"]], ids=len)
def test_an_image_alone_and_before_a_video(
    checkpoint: Path, preparer: VllmPreparer, tmp_path: Path, beside: list[str]
) -> None:
    write_clip(tmp_path / "clip.mp4", 75, 25, 96, 128)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (400, 300, 3), np.uint8)).save(tmp_path / "a.png")
    paths = [tmp_path / "a.png", *(tmp_path / name for name in beside)]
    clip, prepared = read_clip(checkpoint, FAMILY, *paths, **SMALL)
    payload = rendered(preparer, clip, prepared)
    assert payload["prompt_token_ids"] == predicted_ids(checkpoint, FAMILY, clip, prepared, around=1)
    (item,) = payload["mm_kwargs"]["image"]
    _, height, width = item["image_grid_thw"].data.tolist()
    assert [width * 14, height * 14] == prepared.seen.images[0].size_wh


def test_the_model_sees_each_time_drawn_once(checkpoint: Path, preparer: VllmPreparer, tmp_path: Path) -> None:
    """The stand-in draws if it is handed metadata, as the newer checkpoints' processors do; ours comes first."""
    path = write_clip(tmp_path / "clip.mp4", 64, 8, 112, 112)
    clip, prepared = read_clip(checkpoint, FAMILY, path, **SMALL)
    (item,) = rendered(preparer, clip, prepared)["mm_kwargs"]["video"]
    seen = item["pixel_values_videos"].data.float().numpy()

    frames, metadata = decode_frames(str(path), prepared.seen.videos[0].indices).pixels, videos_of(prepared)[0].metadata
    once = frames.copy()
    times_s = [read_timeline(str(path)).times_s[index] for index in prepared.seen.videos[0].indices]
    assert times_s == prepared.seen.videos[0].times_s
    draw_corner_texts(once, [f"time: 00:00:{time_s:05.2f}" for time_s in times_s])
    assert np.allclose(seen, normalised(once), atol=0.02)
    assert not np.allclose(seen, normalised(frames), atol=0.02), "without times"
    assert not np.allclose(seen, normalised(drawn(once, metadata)), atol=0.02), "with times over times"


def normalised(frames: np.ndarray) -> np.ndarray:
    """What vLLM makes of the patches of these frames."""
    processor = Ernie4_5_VLImageProcessor()
    patches, _ = processor.patches(frames, SMALL["min_pixels"], SMALL["max_pixels"])
    mean, deviation = (np.repeat(values, 14 * 14) for values in (processor.image_mean, processor.image_std))
    return np.asarray((patches.numpy() / 255 - mean) / deviation)


class Drawing:
    """A processor that draws although nobody told it a time."""

    supports_video_metadata = True

    def __call__(self, videos: list[np.ndarray], **_: Any) -> dict[str, Any]:
        videos[0][:, :10, :10] = 0
        return {"images": videos[0].reshape(-1, 3 * 14 * 14)}


class Demanding:
    """A processor that takes frames with metadata only."""

    def __call__(self, videos: list[np.ndarray], **_: Any) -> dict[str, Any]:
        frames, metadata = videos[0]
        raise AssertionError(f"{frames}, {metadata}")


@pytest.mark.parametrize(("processor", "reason"), [(Drawing, "draws on frames"), (Demanding, "does not take frames")])
def test_processors_that_would_draw_a_second_time_are_refused(processor: type, reason: str) -> None:
    info = SimpleNamespace(get_hf_processor=processor)
    text = SimpleNamespace(get_dummy_text=lambda counts: "")
    with pytest.raises(CapabilityError, match=reason):
        hand_over_frames_alone(SimpleNamespace(info=info, dummy_inputs=text))
