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

from tests.checkpoints.llava_onevision2 import Sizes
from tests.conftest import TINY_LLAVA_ONEVISION2
from tests.world.pictures import paint, strokes
from tests.world.questions import RULES
from tests.world.scene import COLOURS, SHAPES, VELOCITY, World, draw_scene
from tests.world.training import llava_onevision2, qwen3_vl, store, train
from tests.world.training.batch import Batch, Shape, make_batch
from tests.world.training.families import SEEN, TAUGHT
from tests.world.training.feed import Given, tensors
from tests.world.training.labels import IGNORED, RADII, Heads, labels
from tests.world.training.optimise import Optimiser, orthogonal
from tests.world.training.pruned import kept, same_pruning
from tests.world.training.qwen3_vl import Qwen3VLNetwork, config, patches
from tests.world.training.train import Trainer
from tests.world.training.vocabulary import Vocabulary
from tests.world.view import LLAVA_ONEVISION2, look
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
    return qwen3_vl.new_model(words).eval()


def batch_of(words: Vocabulary, width: int, height: int, pairs: tuple[int, int], clips: int = 2) -> Batch:
    return make_batch(Shape(width, height, pairs, clips), True, 4, words, random.Random(11))


@pytest.mark.parametrize(("width", "height", "pairs"), [(96, 128, (2, 3)), (192, 192, (1, 1))])
def test_a_packed_batch_gives_the_logits_of_single_prompts(
    words: Vocabulary, model: Any, width: int, height: int, pairs: tuple[int, int]
) -> None:
    batch = batch_of(words, width, height, pairs)
    pixels = patches(paint(strokes(batch.views, 2 * pairs[1]), width, height), *batch.shape.grid)
    with torch.no_grad():
        found = Qwen3VLNetwork(model, torch.float32, compiled=False)(pixels, tensors(batch), None)
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
    pairs = int(batch.steps[row])
    grid = torch.tensor([[pairs, batch.shape.height // 16, batch.shape.width // 16]])
    logits = model(
        input_ids=torch.from_numpy(batch.ids[row, mine].astype(np.int64))[None],
        position_ids=torch.from_numpy(batch.positions[:, row, mine].astype(np.int64))[:, None],
        attention_mask=torch.ones(1, len(mine), dtype=torch.long),
        pixel_values_videos=pixels[row, :pairs].flatten(0, 1),
        video_grid_thw=grid,
    ).logits[0]
    return logits[np.searchsorted(mine, places % size)]


@pytest.mark.parametrize(("width", "height"), [(96, 96), (128, 128), (160, 96), (128, 192)])
def test_pictures_are_resized_and_cut_as_the_image_processor_does_it(width: int, height: int) -> None:
    from transformers import Qwen2VLImageProcessor

    torchvision_on_cpu.install()
    processor = Qwen2VLImageProcessor.from_pretrained(TINY_LLAVA_ONEVISION2)
    shape = Shape(width, height, (1, 1), 1, LLAVA_ONEVISION2)
    view = look(draw_scene(World(True, ((width, height),), (1, 1)), random.Random(2)), LLAVA_ONEVISION2)
    torch.manual_seed(2)  # the noise
    frames = paint(strokes([view], 4), width, height)
    found = llava_onevision2.patches(frames, *shape.grid)[0].flatten(0, 1)
    theirs = processor(images=list(frames[0].byte()), return_tensors="pt")
    rows, columns = shape.grid
    assert theirs["image_grid_thw"].tolist() == [[1, 2 * rows, 2 * columns]] * 4
    levels = (found - theirs["pixel_values"]).abs() * 255 * min(llava_onevision2.IMAGE_STD)
    assert levels.max() < 6 and levels.mean() < 0.3, (
        "rounded between the sides there; another rule is off by 0.6 or more"
    )


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
    heads, others = (Heads(1, 0, 8, SEEN) for _ in range(2))
    first, second = (Optimiser(one.named_parameters(), 0.1, 0.1) for one in (model, again))
    model(torch.ones(1, 24)).sum().backward()
    first.step(1.0)
    store.save([tmp_path], model, heads, first, 12.5, 7, "qwen3_vl")
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


@pytest.mark.parametrize("family", TAUGHT)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**9))
def test_labels_say_what_is_under_each_token(family: str, seed: int) -> None:
    taught = TAUGHT[family]
    each = taught.eye.frames_a_step
    scene = draw_scene(World(False, pairs=(1, 4)), random.Random(seed))
    scene = replace(
        scene, border_s=None, backdrop=replace(scene.backdrop, rgb=(0,) * 3, slope=(0,) * 2, wave=(0,) * 3, noise=0)
    )
    view = look(scene, taught.eye)
    steps = len(view.told)
    what = strokes([view], each * (steps + 1))
    grid = Shape(scene.width, scene.height, (1, 4), 1, taught.eye).grid
    found = labels(what, scene.width, scene.height, grid, torch.tensor([steps]), taught.qualities, each)
    found = found[:, 0].unflatten(1, (steps + 1, -1))
    assert (found[:, steps] == IGNORED).all()
    lit = (paint(what, scene.width, scene.height)[0].amax(1) > 110).float()
    cell_wh = scene.width / grid[1], scene.height / grid[0]
    shares = torch.nn.functional.adaptive_avg_pool2d(lit, grid).unflatten(0, (-1, each)).mean(1).flatten(1)
    for step, cell in ((step, cell) for step in range(steps) for cell in range(shares.shape[1])):
        said = dict(zip(taught.qualities, found[:, step, cell].tolist(), strict=True))
        share = shares[step, cell].item()
        assert share < 0.1 if said["colour"] == IGNORED else share > 0.005 if said["colour"] else share < 0.07
        if said["colour"] > 0:
            name = f"{list(COLOURS)[said['colour'] - 1]} {SHAPES[said['shape'] - 1]}"
            (thing,) = (thing for thing in scene.things if thing.name == name)
            new = view.steps_with(thing)[0] == step
            unknown = new and "motion" in taught.later
            assert said["motion"] == (IGNORED if unknown else list(VELOCITY).index(thing.direction) + 1)
            assert said["size"] - 1 == sum(thing.radius > edge for edge in RADII)
            assert said["news"] == (1 if new else 2)
            row, column = divmod(cell, grid[1])
            assert said.get("row", row + 1) == row + 1 and said.get("column", column + 1) == column + 1
            x, y = (column + 0.5) * cell_wh[0], (row + 0.5) * cell_wh[1]
            times_s = view.times_s[each * step : each * (step + 1)]
            places = [thing.place(time_s) for time_s in times_s if thing.there(time_s)]
            assert any(
                abs(x - at_x) < cell_wh[0] / 2 + thing.radius and abs(y - at_y) < cell_wh[1] / 2 + thing.radius
                for at_x, at_y in places
            )


@pytest.mark.parametrize("family", TAUGHT)
def test_a_few_clips_are_learnt_by_heart_and_heads_are_not_exported(
    family: str, words: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qwen3_vl, "config", _little)
    monkeypatch.setattr(llava_onevision2, "SIZES", Sizes(64, 160, 4, 2, 1, 64, 64, 128, 2, 2))
    monkeypatch.setattr("tests.world.training.batch.ROOM", 80)
    taught = TAUGHT[family]
    shape = Shape(96, 96, (2, 2), 6, taught.eye)
    batch = make_batch(shape, False, 2, words, random.Random(1), plain=True)
    fixed = Given(
        tensors(batch), strokes(batch.views, 4), 96, 96, torch.zeros(6), False, same_pruning("none", 0, 6, "cpu")
    )
    torch.manual_seed(3)
    little = taught.new_model(words)
    asked = argparse.Namespace(rate=5e-3, matrix_rate=1e-2, heads=1.0, eager=True, family=family)
    trainer = Trainer(little, torch.device("cpu"), asked)
    trainer.network = taught.network(little, torch.bfloat16, compiled=False)  # as on a GPU
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
    store.save([tmp_path], little, trainer.heads, trainer.optimiser, 1.0, trainer.steps, family)
    assert set(store.read(tmp_path, "weights")[0]) == {name for name, _ in little.named_parameters()}


def _little(words: Vocabulary) -> Any:
    found = config(words)
    text, vision = found.text_config, found.vision_config
    text.hidden_size, text.intermediate_size, text.num_hidden_layers = 64, 160, 4
    text.num_attention_heads, text.num_key_value_heads = 2, 1
    vision.hidden_size, vision.intermediate_size, vision.num_heads, vision.out_hidden_size = 64, 128, 2, 64
    vision.depth, vision.deepstack_visual_indexes = 2, [0, 1]
    return found
