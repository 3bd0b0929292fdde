"""What the training sees is what transformers and vidpipe make of the same clip."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.world.pictures import paint, strokes
from tests.world.questions import RULES
from tests.world.training import store
from tests.world.training.batch import Batch, Shape, make_batch
from tests.world.training.feed import tensors
from tests.world.training.network import Network, new_model, patches
from tests.world.training.pruned import kept, same_pruning
from tests.world.training.vocabulary import Vocabulary
from vidpipe.engine import torchvision_on_cpu
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.vidcom2 import vidcom2_mask


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    return Vocabulary()


@pytest.fixture(scope="module")
def model(words: Vocabulary) -> Any:
    torchvision_on_cpu.install()
    torch.manual_seed(3)
    return new_model(words).eval()


def batch_of(words: Vocabulary, width: int, height: int, pairs: tuple[int, int], clips: int = 2) -> Batch:
    return make_batch(Shape(width, height, pairs, clips), True, 4, words, random.Random(11))


@pytest.mark.parametrize(("width", "height", "pairs"), [(96, 128, (2, 3)), (192, 192, (1, 1))])
def test_a_packed_batch_gives_the_logits_of_single_prompts(
    words: Vocabulary, model: Any, width: int, height: int, pairs: tuple[int, int]
) -> None:
    batch = batch_of(words, width, height, pairs)
    pixels = patches(paint(strokes(batch.views, 2 * pairs[1]), width, height))
    with torch.no_grad():
        found = Network(model, torch.float32, compiled=False)(pixels, tensors(batch), None)
        expected = torch.cat([_single_logits(model, batch, pixels, owner) for owner in range(len(batch.kinds))])
    assert len(batch.kinds) > 6
    assert torch.allclose(found, expected, atol=2e-4), (found - expected).abs().max()


def _single_logits(model: Any, batch: Batch, pixels: torch.Tensor, question: int) -> torch.Tensor:
    """Transformers' own forward pass over one question alone, at its answer's places."""
    size = batch.ids.shape[1]
    places = batch.places[batch.owner == question]
    row = int(places[0]) // size
    number = batch.part[row, places[0] % size]
    mine = np.flatnonzero((batch.part[row] == 0) | (batch.part[row] == number))
    pairs = int(batch.pairs[row])
    grid = torch.tensor([[pairs, batch.shape.height // 16, batch.shape.width // 16]])
    logits = model(
        input_ids=torch.from_numpy(batch.ids[row, mine].astype(np.int64))[None],
        position_ids=torch.from_numpy(batch.positions[:, row, mine].astype(np.int64))[:, None],
        attention_mask=torch.ones(1, len(mine), dtype=torch.long),
        pixel_values_videos=pixels[row, :pairs].flatten(0, 1),
        video_grid_thw=grid,
    ).logits[0]
    return logits[np.searchsorted(mine, places % size)]


@pytest.mark.parametrize(("method", "rule"), [("evs", evs_mask), ("vidcom2", vidcom2_mask)])
@pytest.mark.parametrize("rate", [0.3, 0.5, 0.77])
def test_dropped_tokens_are_those_of_the_rule(method: str, rule: Any, rate: float) -> None:
    generator = torch.Generator().manual_seed(5)
    embeddings = torch.randn(3, 6, 9, 24, generator=generator) + 2 * torch.randn(3, 6, 1, 24, generator=generator)
    pairs = torch.tensor([6, 4, 1])
    stays = kept(embeddings, pairs, same_pruning(method, rate, 3, "cpu")).view(3, 6, 9)
    for clip, steps in enumerate(pairs.tolist()):
        expected = rule(embeddings[clip, :steps].reshape(-1, 24).numpy(), steps, rate)
        assert stays[clip, :steps].flatten().tolist() == expected.tolist()
        assert not stays[clip, steps:].any()


def test_every_kind_is_asked_and_no_answer_is_cut(words: Vocabulary) -> None:
    batch = batch_of(words, 128, 128, (5, 8), clips=60)
    assert set(batch.kinds) == set(range(len(RULES)))
    for question in range(0, len(batch.kinds), 7):
        places = batch.places[batch.owner == question]
        answer = batch.ids.reshape(-1)[places + 1].tolist()
        assert answer == batch.targets[batch.owner == question].tolist()
        assert words.decode(answer).endswith("<|im_end|>") and words.decode(answer).strip() != "<|im_end|>"


def test_a_training_goes_on_from_its_folder(tmp_path: Path) -> None:
    model, again = torch.nn.Linear(24, 16), torch.nn.Linear(24, 16)
    first, second = (torch.optim.AdamW(one.parameters(), lr=0.1) for one in (model, again))
    model(torch.ones(1, 24)).sum().backward()
    first.step()
    store.save([tmp_path], model, first, 12.5, 7)
    store.load(tmp_path, again, second)
    assert store.progress(tmp_path) == (12.5, 7)
    assert torch.equal(again.weight, model.weight.bfloat16().float())
    assert torch.equal(second.state[again.weight]["exp_avg"], first.state[model.weight]["exp_avg"].bfloat16().float())
    assert second.state[again.weight]["step"] == 7
