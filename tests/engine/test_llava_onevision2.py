"""LLaVA-OneVision-2 in the real vLLM, CPU build: a tiny random checkpoint reads real files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import llava_onevision2
from tests.conftest import ROOT, write_clip
from tests.job.test_run import go, rows_of
from vidpipe.engine import vllm_environment
from vidpipe.engine.interface import EngineInput, Reply, RowError
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.job.impossible import refuse_impossible
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.job.work import ClipInputs, prepare
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.prompt import Span, token_ids
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import EngineSection, Recipe, Sampling

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

FAMILY = get_family("llava_onevision2")
DEMO = ROOT / "data" / "demo"
SLOT = ("<|vision_start|>", "<|video_pad|>", "<|vision_end|>")
TIMES = re.compile(r"<(\d+\.\d) seconds>")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llava_onevision2")
    llava_onevision2.make(folder)
    return folder


@pytest.fixture(scope="module")
def processor(checkpoint: Path) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((checkpoint / "preprocessor_config.json").read_text())
    return settings


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> Iterator[VllmEngine]:
    settings = EngineSection(args={"max_model_len": 8192, "max_num_seqs": 8})
    engine = VllmEngine(recipe(checkpoint).model, settings, str(checkpoint))
    engine.start()
    yield engine
    engine.stop()


def recipe(checkpoint: Path, **keys: Any) -> Recipe:
    model = {"path": str(checkpoint), "trust_remote_code": True}
    return Recipe.model_validate({"manifest": "m", "model": model, "generation": {"max_tokens": 8}, **keys})


def read(asked: Recipe, processor: dict[str, Any], path: Path, **window: float) -> tuple[Clip, PreparedClip]:
    media = (Medium("video", str(path), **window),)
    rows = [Row(index=n, line=n, id=f"r{n}", media=media, question=q) for n, q in enumerate(QUESTIONS)]
    clip = make_plan(rows, asked, FAMILY, processor).clips[0]
    return clip, ClipReader(asked, FAMILY, processor, path.parent, allow_outside_root=True).read(clip)


QUESTIONS = ("What is shown at 5.5 seconds?", "What is <|video_pad|>?")


def answers(engine: VllmEngine, inputs: ClipInputs) -> dict[str, Reply]:
    replies: dict[str, Reply] = {}
    for made in inputs.inputs:
        if isinstance(made, RowError):
            raise made
        engine.submit(made)
    while engine._engine.has_unfinished_requests():
        replies |= {reply.id: reply for reply in engine.poll()}
    return replies


def said_ids(engine: VllmEngine, clip: Clip, number: int, times_s: list[float], layout: Any) -> list[int]:
    """Prompt ids of a row of a clip as the family's rules say them."""
    tokenizer = engine._engine.renderer.get_tokenizer()

    def tokenise(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return ids

    spans = FAMILY.prompt(times_s, layout, clip.first.settings.sampling)
    video = token_ids(spans, tokenise, tokenizer.convert_tokens_to_ids)
    start, end = (tokenizer.convert_tokens_to_ids(word) for word in ("<|im_start|>", "<|im_end|>"))
    head, tail = tokenise("user\n"), tokenise("assistant\n")
    return [start, *head, *video, *tokenise(QUESTIONS[number]), end, *tokenise("\n"), start, *tail]


def sha(ids: list[int]) -> str:
    return hashlib.sha256(np.asarray(ids, "<i4").tobytes()).hexdigest()


@pytest.mark.parametrize("rule", ["vllm", "native", "ov2_eval"])
@pytest.mark.parametrize(
    ("frames", "fps", "width", "height"), [(60, 8, 128, 96), (400, 60, 64, 48), (33, 20, 96, 128), (1, 10, 64, 64)]
)
def test_generates_with_the_prompt_that_the_rules_say(
    engine: VllmEngine,
    checkpoint: Path,
    processor: dict[str, Any],
    tmp_path: Path,
    rule: str,
    frames: int,
    fps: int,
    width: int,
    height: int,
) -> None:
    path = write_clip(tmp_path / "clip.mp4", frames, fps, width, height)
    asked = recipe(checkpoint, sampling={"rule": rule, "max_pixels": 20_000})
    clip, decoded = read(asked, processor, path)
    inputs = prepare(asked, engine.preparer, clip, decoded)
    replies = answers(engine, inputs)
    sampling = clip.first.settings.sampling
    times_s = [index / fps for index in decoded.seen.videos[0].indices]  # as Hugging Face computes them, in float64
    assert decoded.seen.videos[0].times_s == pytest.approx(times_s, abs=1e-6)
    layout = FAMILY.layout(len(times_s), width, height, sampling, processor)
    for number in range(len(QUESTIONS)):
        made, reply = inputs.inputs[number], replies[f"r{number}"]
        assert isinstance(made, EngineInput)
        assert made.payload["prompt_token_ids"] == said_ids(engine, clip, number, times_s, layout)
        assert reply.prompt_sha == sha(made.payload["prompt_token_ids"])
        assert reply.tokens_out == 8 and reply.text
        assert reply.vision_tokens_kept == decoded.seen.vision_tokens == layout.vision_tokens
    grid = inputs.inputs[0].payload["mm_kwargs"]["video"][0]["video_grid_thw"].data  # type: ignore[union-attr]
    assert grid.tolist() == [[1, *layout.grid_thw[1:]]] * layout.grid_thw[0], "the resize rule is the processor's"
    assert inputs.inputs[1].payload["mm_kwargs"] is inputs.inputs[0].payload["mm_kwargs"], "rows share their media"  # type: ignore[union-attr]


def test_times_of_a_variable_rate_file(engine: VllmEngine, checkpoint: Path, processor: dict[str, Any]) -> None:
    path = ROOT / "tests" / "hard_inputs" / "video" / "vfr.mp4"
    asked = recipe(checkpoint, sampling={"max_pixels": 20_000})
    clip, decoded = read(asked, processor, path)
    (made, _) = prepare(asked, engine.preparer, clip, decoded).inputs
    assert isinstance(made, EngineInput)
    prompt = engine._engine.renderer.get_tokenizer().decode(made.payload["prompt_token_ids"])
    recorded = [time_s - decoded.seen.videos[0].times_s[0] for time_s in decoded.seen.videos[0].times_s]
    assert [f"{time_s:.1f}" for time_s in recorded] == TIMES.findall(prompt)
    nominal = [index / 30 for index in decoded.seen.videos[0].indices]
    assert max(abs(a - b) for a, b in zip(recorded, nominal, strict=True)) > 1


def test_what_cannot_work_is_refused(checkpoint: Path) -> None:
    for keys, reason in (
        ({"pruning": {"method": "evs", "rate": 0.5}}, "llava_onevision2 has no evs"),
        ({"model": {"path": str(checkpoint)}}, "trust_remote_code"),
    ):
        with pytest.raises(CapabilityError, match=reason):
            refuse_impossible(recipe(checkpoint, **keys), FAMILY, [FAMILY.abilities.architecture])


def test_rows_of_every_kind_in_one_run(checkpoint: Path, processor: dict[str, Any], tmp_path: Path) -> None:
    from PIL import Image

    pictures = {"small.png": (60, 90), "large.png": (300, 200)}
    for name, (width, height) in pictures.items():
        Image.fromarray(np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)).save(tmp_path / name)
    write_clip(tmp_path / "a.mp4", 60, 8, 128, 96)
    write_clip(tmp_path / "b.mp4", 24, 8, 96, 64)
    rows = [
        {"id": "text", "video": []},
        {"id": "images", "images": ["large.png", "small.png"]},
        {"id": "two", "video": ["a.mp4", "b.mp4"]},
        {"id": "same", "video": ["b.mp4", "b.mp4"]},
        {"id": "mixed", "video": "a.mp4", "images": ["small.png"]},
    ]
    lines = (json.dumps({"question": QUESTIONS[0], **row}) for row in rows)
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    values = recipe(checkpoint, sampling={"max_pixels": 20_000}).model_dump(exclude_unset=True)
    values |= {"manifest": "rows.jsonl", "engine": {"args": {"max_model_len": 8192, "max_num_seqs": 4}}}
    (tmp_path / "job.yaml").write_text(json.dumps(values))
    results = rows_of(go(tmp_path / "job.yaml"))
    mixed = results.pop("mixed")
    assert mixed["error_kind"] == "bad_value" and "rows of their own" in mixed["error"]
    assert {row["error"] for row in results.values()} == {None}

    from transformers import PreTrainedTokenizerFast  # only now: the engine must have prepared for it

    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    sampling = FAMILY.complete(Sampling(max_pixels=20_000), processor)
    rules = FAMILY.abilities.images
    assert rules is not None

    def ids_of(spans: list[Span]) -> list[int]:
        return token_ids(
            spans, lambda text: tokenizer.encode(text, add_special_tokens=False), tokenizer.convert_tokens_to_ids
        )

    def video(frames: dict[str, Any]) -> list[Span]:
        layout = FAMILY.layout(frames["count"], *frames["size_wh"], sampling, processor)
        return FAMILY.prompt(frames["times_s"], layout, sampling)

    start, end = "<|vision_start|>", "<|vision_end|>"
    for name, spans in (
        ("text", []),
        *((name, [s for f in (results[name]["frames"], *results[name]["more_frames"]) for s in video(f)])
          for name in ("two", "same")),
        ("images", [s for size in ("large.png", "small.png") for s in (
            Span(start, 1), Span(rules.vision_word, rules.layout(*pictures[size], processor).vision_tokens),
            Span(end, 1))]),
    ):  # fmt: skip
        head, tail = "<|im_start|>user\n", f"{QUESTIONS[0]}<|im_end|>\n<|im_start|>assistant\n"
        said = [*tokenizer.encode(head), *ids_of(spans), *tokenizer.encode(tail)]
        row = results[name]
        assert (row["prompt_sha"], row["tokens_in"]) == (sha(said), len(said)), name
        asked = row["vision_tokens"]["asked"] if row["vision_tokens"] else 0
        assert asked == sum(span.times or 0 for span in spans if span.text == "<|image_pad|>")
