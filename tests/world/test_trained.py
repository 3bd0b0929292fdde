"""What only a trained model can show: right answers on unseen worlds, and wrong ones when the pipeline is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.conftest import ROOT, TINY_LLAVA_ONEVISION2, TINY_MODEL
from tests.world.faults import FAULTS
from tests.world.questions import TIMES
from tests.world.rows import Answered, Fault, answers, engine, read_rows, share
from vidpipe.engine.interface import Video
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.recipe.schema import Pruning

pytestmark = pytest.mark.engine

DEMO = ROOT / "data" / "demo"
CHECKPOINTS = (TINY_MODEL, TINY_LLAVA_ONEVISION2)


class Trained:
    """A checkpoint in a running engine, with the rows that are for it."""

    def __init__(self, checkpoint: Path, running: VllmEngine) -> None:
        self.checkpoint, self.running = checkpoint, running
        self.lines = read_rows(DEMO, checkpoint)
        self.right = answers(running, checkpoint, DEMO, self.lines)
        """Answers without a fault."""

    def ask(self, fault: Fault, *kinds: str) -> float:
        """Share right with a fault, of the rows of some kinds or of all."""
        lines = [line for line in self.lines if not kinds or line["question_type"] in kinds]
        return share(answers(self.running, self.checkpoint, DEMO, lines, fault))


@pytest.fixture(scope="module", params=CHECKPOINTS, ids=lambda folder: folder.name)
def trained(request: pytest.FixtureRequest) -> Iterator[Trained]:
    with engine(request.param) as started:
        yield Trained(request.param, started)


def test_the_demo_is_answered(trained: Trained) -> None:
    assert len(trained.lines) >= 60 and len({line["question_type"] for line in trained.lines}) >= 8
    assert share(trained.right) >= 0.95, [one for one in trained.right if not one.right]
    assert share(trained.right, *TIMES) >= 0.9


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("times shuffled", TIMES),
        ("times a second late", TIMES),
        ("rate doubled", TIMES),
        ("frames backward", ("direction", "order")),
        ("red and blue swapped", ("colour", "what_at", "order")),
        ("upside down", ("direction",)),
        ("last frames dropped", ("last_time", "count", "exists")),
    ],
)
def test_a_fault_costs_answers(trained: Trained, name: str, kinds: tuple[str, ...]) -> None:
    assert trained.ask(FAULTS[name], *kinds) <= share(trained.right, *kinds) - 0.15


def test_blank_frames_are_answered_by_chance(trained: Trained) -> None:
    assert trained.ask(FAULTS["blank"]) <= 0.45, "yes or no, one of a few letters, and zeros can be guessed"


def test_another_forward_pass_gives_the_same_answers(trained: Trained) -> None:
    """One question on each clip, from the frames that vidpipe chose."""
    first = {line["video"]: place for place, line in reversed(list(enumerate(trained.lines)))}
    shown: list[Video] = []

    def look(video: Video) -> Video:
        shown.append(video)
        return replace(video)

    asked = [trained.lines[place] for place in first.values()]
    answers(trained.running, trained.checkpoint, DEMO, asked, look)
    theirs: Other = Transformers(TINY_MODEL) if trained.checkpoint == TINY_MODEL else Training(trained.checkpoint)
    said = [theirs.say(video, line["question"]) for video, line in zip(shown, asked, strict=True)]
    assert said == [trained.right[place].text for place in first.values()]


class Other(Protocol):
    """A forward pass that is not vLLM's."""

    def say(self, video: Video, question: str) -> str:
        """The answer to a question about frames with times."""


class Training:
    """The training's own, of LLaVA-OneVision-2: transformers has no class for it."""

    def __init__(self, checkpoint: Path) -> None:
        from safetensors.torch import load_file

        from tests.world.training.llava_onevision2 import LlavaOnevision2Network, new_model
        from tests.world.training.vocabulary import Vocabulary

        self.words = Vocabulary()
        model = new_model(self.words)
        model.load_state_dict(load_file(checkpoint / "model.safetensors"))
        self.network = LlavaOnevision2Network(model, next(model.parameters()).dtype, compiled=False)

    def say(self, video: Video, question: str) -> str:
        """See `Other.say`."""
        import torch

        from tests.world.training.llava_onevision2 import patches
        from tests.world.training.vocabulary import CLOSE, OPEN
        from tests.world.view import LLAVA_ONEVISION2 as EYE
        from vidpipe.models.prompt import token_ids

        words, (frames, height, width) = self.words, video.pixels.shape[:3]
        sampling = EYE.sampling(2.0)
        layout = EYE.family.layout(frames, width, height, sampling, EYE.processor)
        times_s = [tick / video.metadata["fps"] for tick in video.metadata["frames_indices"]]
        shown = token_ids(EYE.family.prompt(times_s, layout, sampling), words.words, words.special.__getitem__)
        ids = [*words.encode(f"{OPEN}user\n"), *shown, *words.encode(f"{question}{CLOSE}\n{OPEN}assistant\n")]
        grid = layout.grid_thw[1] // layout.merge, layout.grid_thw[2] // layout.merge
        clip = torch.from_numpy(video.pixels).permute(0, 3, 1, 2)[None].float()
        said: list[int] = []
        with torch.no_grad():
            tokens = self.network.tokens(patches(clip, *grid), {"size": torch.tensor(grid)})
            while not said or (said[-1] != words.special[CLOSE] and len(said) < 16):
                whole = torch.tensor([[*ids, *said]])
                is_vision = whole == words.special[EYE.family.vision_word]
                given = {
                    "ids": whole,
                    "positions": torch.arange(whole.shape[1]).expand(3, 1, -1),
                    "part": torch.zeros_like(whole),
                    "vision": torch.where(is_vision, is_vision.cumsum(1) - 1, -1),
                    "places": torch.tensor([whole.shape[1] - 1]),
                }
                said.append(int(self.network.answer(self.network.weights, tokens, given, None)[0].argmax()))
        return words.decode([token for token in said if token != words.special[CLOSE]])


class Transformers:
    """Its own processor and `generate`."""

    def __init__(self, checkpoint: Path) -> None:
        import torch
        from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

        self.processor: Any = AutoProcessor.from_pretrained(checkpoint)
        self.model: Any = Qwen3VLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.bfloat16).eval()

    def say(self, video: Video, question: str) -> str:
        """See `Other.say`."""
        import torch
        from transformers.video_utils import VideoMetadata

        turn = {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": question}]}
        told = {key: video.metadata[key] for key in ("fps", "duration", "total_num_frames", "frames_indices")}
        height, width = video.pixels.shape[1:3]
        given = self.processor(
            text=[self.processor.apply_chat_template([turn], add_generation_prompt=True, tokenize=False)],
            videos=[torch.from_numpy(video.pixels).permute(0, 3, 1, 2)],
            video_metadata=[VideoMetadata(**told, height=height, width=width)],
            do_sample_frames=False,
            return_tensors="pt",
        )
        with torch.no_grad():
            ids = self.model.generate(**given, max_new_tokens=16, do_sample=False)
        said: str = self.processor.tokenizer.decode(ids[0, given["input_ids"].shape[1] :], skip_special_tokens=True)
        return said


@pytest.mark.parametrize("method", ["evs", "vidcom2"])
def test_half_the_tokens_answer_nearly_as_well(method: str) -> None:
    with engine(TINY_MODEL, Pruning.model_validate({"method": method, "rate": 0.5})) as pruned:
        answered: list[Answered] = answers(pruned, TINY_MODEL, DEMO, read_rows(DEMO, TINY_MODEL))
    assert share(answered) >= 0.85, [one for one in answered if not one.right]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda folder: folder.name)
def test_the_training_is_told(checkpoint: Path) -> None:
    lines = [json.loads(line) for line in (checkpoint / "training.jsonl").read_text().splitlines()]
    last = next(line["test"] for line in reversed(lines) if "test" in line)
    assert last["unpruned"]["all"] >= 0.95 and min(last["unpruned"].values()) >= 0.9
    assert all(one["all"] >= 0.85 for one in last.values())
