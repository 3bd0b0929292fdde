"""What the training sees is what transformers and vidpipe make of the same clip."""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world.pictures import paint, strokes
from tests.world.questions import RULES
from tests.world.scene import COLOURS, SHAPES, VELOCITY, World, draw_scene
from tests.world.training import network, store, train
from tests.world.training.batch import PIXELS, Batch, Shape, make_batch
from tests.world.training.feed import Given, tensors
from tests.world.training.labels import IGNORED, RADII, Heads, labels
from tests.world.training.network import Network, config, new_model, patches
from tests.world.training.optimise import Optimiser, orthogonal
from tests.world.training.pruned import kept, same_pruning
from tests.world.training.train import Trainer
from tests.world.training.vocabulary import Vocabulary
from tests.world.view import look
from vidpipe.engine import torchvision_on_cpu
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.vidcom2 import vidcom2_mask


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    torchvision_on_cpu.install()
    return Vocabulary()


@pytest.fixture(scope="module")
def model(words: Vocabulary) -> Any:
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
    model, again = (torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.Linear(16, 16, bias=False)) for _ in range(2))
    heads, others = Heads(1, 0, 8), Heads(1, 0, 8)
    first, second = (Optimiser(one.named_parameters(), 0.1, 0.1) for one in (model, again))
    model(torch.ones(1, 24)).sum().backward()
    first.step(1.0)
    store.save([tmp_path], model, heads, first, 12.5, 7)
    store.load(tmp_path, again, others, second)
    assert store.progress(tmp_path) == (12.5, 7)
    assert torch.equal(again[0].weight, model[0].weight.bfloat16().float())
    assert torch.equal(others.linears[0].weight, heads.linears[0].weight.bfloat16().float())
    kept, found = first.moments(), second.moments()
    assert set(found) == {"0.weight.exp_avg", "1.weight.exp_avg", "0.bias.exp_avg", "0.bias.exp_avg_sq"}
    assert all(torch.equal(found[name], kept[name].bfloat16().float()) for name in kept)


@given(st.integers(1, 5), st.integers(2, 40), st.integers(2, 40), st.integers(0, 99))
def test_updates_are_orthogonal(count: int, rows: int, columns: int, seed: int) -> None:
    stack = torch.randn(count, rows, columns, generator=torch.Generator().manual_seed(seed))
    values = torch.linalg.svdvals(orthogonal(stack).float())
    # A direction that the gradient hardly has needs more than five steps to come up.
    had = torch.linalg.svdvals(stack)
    assert values.max() < 1.3 and values[had > 0.15 * had[:, :1]].min() > 0.5


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_labels_say_what_is_under_each_token(seed: int) -> None:
    scene = draw_scene(World(False, pairs=(1, 4)), random.Random(seed))
    scene = replace(
        scene, border_s=None, backdrop=replace(scene.backdrop, rgb=(0,) * 3, slope=(0,) * 2, wave=(0,) * 3, noise=0)
    )
    view = look(scene)
    pairs = len(view.told)
    what = strokes([view], 2 * (pairs + 1))
    found = labels(what, scene.width, scene.height, torch.tensor([pairs]))[:, 0].unflatten(1, (pairs + 1, -1))
    assert (found[:, pairs] == IGNORED).all()
    lit = (paint(what, scene.width, scene.height)[0].amax(1) > 110).float()
    cells = torch.nn.functional.avg_pool2d(lit, PIXELS).unflatten(0, (-1, 2)).mean(1).flatten(1)
    for pair, cell in ((pair, cell) for pair in range(pairs) for cell in range(cells.shape[1])):
        colour, shape, size, motion, news = found[:, pair, cell].tolist()
        share = cells[pair, cell].item()
        assert share < 0.08 if colour == IGNORED else share > 0.005 if colour else share < 0.06
        if colour > 0:
            name = f"{list(COLOURS)[colour - 1]} {SHAPES[shape - 1]}"
            (thing,) = (thing for thing in scene.things if thing.name == name)
            assert list(VELOCITY)[motion - 1] == thing.direction
            assert size - 1 == sum(thing.radius > edge for edge in RADII)
            assert news == (1 if view.pairs_with(thing)[0] == pair else 2)
            x, y = (cell % (scene.width // PIXELS) + 0.5) * PIXELS, (cell // (scene.width // PIXELS) + 0.5) * PIXELS
            places = [thing.place(time_s) for time_s in view.times_s[2 * pair : 2 * pair + 2] if thing.there(time_s)]
            assert any(max(abs(x - at_x), abs(y - at_y)) < PIXELS / 2 + thing.radius for at_x, at_y in places)


def test_a_few_clips_are_learnt_by_heart_and_heads_are_not_exported(
    words: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "config", _little)
    monkeypatch.setattr("tests.world.training.batch.ROOM", 80)
    shape = Shape(96, 96, (2, 2), 6)
    batch = make_batch(shape, False, 2, words, random.Random(1), plain=True)
    fixed = Given(
        tensors(batch), strokes(batch.views, 4), 96, 96, torch.zeros(6), False, same_pruning("none", 0, 6, "cpu")
    )
    torch.manual_seed(3)
    little = new_model(words)
    asked = argparse.Namespace(rate=5e-3, matrix_rate=1e-2, heads=1.0, eager=True)
    trainer = Trainer(little, torch.device("cpu"), asked)
    trainer.network = Network(little, torch.bfloat16, compiled=False)  # as on a GPU
    monkeypatch.setattr(train, "WARM_STEPS", 10)
    before = {name: value.clone() for name, value in little.named_parameters()}
    for _ in range(15):
        trainer.step(fixed, 0.0)
    moved = {name for name, value in little.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {name for name in before if name.startswith("model.visual.")}
    for _ in range(40):
        trainer.step(fixed, 0.1)
    trainer.forget()
    for _ in range(5):
        trainer.step(fixed, 0.5)
    told = trainer.told()
    assert told["train"]["all"] >= 0.9 and told["heads"]["encoder"]["colour"] >= 0.9, told
    store.save([tmp_path], little, trainer.heads, trainer.optimiser, 1.0, trainer.steps)
    assert set(store.read(tmp_path, "weights")[0]) == {name for name, _ in little.named_parameters()}


def _little(words: Vocabulary) -> Any:
    found = config(words)
    text, vision = found.text_config, found.vision_config
    text.hidden_size, text.intermediate_size, text.num_hidden_layers = 64, 160, 4
    text.num_attention_heads, text.num_key_value_heads = 2, 1
    vision.hidden_size, vision.intermediate_size, vision.num_heads, vision.out_hidden_size = 64, 128, 2, 64
    vision.depth, vision.deepstack_visual_indexes = 2, [0, 1]
    return found
