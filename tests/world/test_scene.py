"""The world's rules, and that pictures and answers agree."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.world.clips import FPS, rows_file, scenes, write_rows
from tests.world.pictures import compress, paint, strokes
from tests.world.questions import LETTERS, RULES, Question, ask
from tests.world.scene import COLOURS, HELD_OUT, LONGEST_S, MOST_PAIRS, NAMES, VELOCITY, Scene, World, draw_scene
from tests.world.view import EYES, Eye, look
from tests.world.wordings import WORDINGS

seeds = st.integers(0, 10**9)


def quiet(scene: Scene) -> Scene:
    """The same scene before a black, noiseless background."""
    return replace(scene, backdrop=replace(scene.backdrop, rgb=(0, 0, 0), slope=(0, 0), wave=(0, 0, 0), noise=0))


@given(seeds)
def test_a_seed_gives_one_scene(seed: int) -> None:
    assert draw_scene(World(True), random.Random(seed)) == draw_scene(World(True), random.Random(seed))


@given(seeds)
def test_in_test_scenes_two_meet_that_never_do_in_train_scenes(seed: int) -> None:
    train, test = (draw_scene(World(test), random.Random(seed)) for test in (False, True))
    for scene in (train, test):
        there = {(thing.colour, thing.shape) for thing in scene.things}
        new = [pair for pair in HELD_OUT if there.issuperset(pair)]
        assert bool(new) == (scene is test and len(there) > 1)


def test_train_scenes_show_each_thing_in_each_direction_and_each_colour_beside_each_shape() -> None:
    rng, shown, beside = random.Random(2), set[tuple[str, str, str]](), set[tuple[str, str]]()
    for _ in range(4000):
        things = draw_scene(World(False), rng).things
        shown |= {(thing.colour, thing.shape, thing.direction) for thing in things}
        beside |= {(one.colour, other.shape) for one in things for other in things if one is not other}
    assert shown == {(*name, direction) for name in NAMES for direction in VELOCITY}
    assert beside == set(NAMES)


@given(seeds)
def test_no_thing_covers_another(seed: int) -> None:
    scene = draw_scene(World(False), random.Random(seed))
    for time_s in look(scene).times_s:
        places = [(*thing.place(time_s), thing.radius) for thing in scene.things]
        for one, (x, y, radius) in enumerate(places):
            for other_x, other_y, other in places[:one]:
                assert max(abs(x - other_x), abs(y - other_y)) >= radius + other - 1e-6


@given(seeds)
def test_things_stay_in_the_picture_and_are_seen(seed: int) -> None:
    scene = draw_scene(World(False), random.Random(seed))
    view = look(scene)
    assert 1 <= len(view.told) <= MOST_PAIRS and scene.duration_s <= 1.05 * LONGEST_S
    assert len({thing.name for thing in scene.things}) == len(scene.things)
    for thing in scene.things:
        for time_s in filter(thing.there, view.times_s):
            x, y = thing.place(time_s)
            assert x - thing.radius >= -1 and x + thing.radius <= scene.width + 1
            assert y - thing.radius >= -1 and y + thing.radius <= scene.height + 1


@settings(max_examples=40)
@given(seeds)
def test_a_lone_thing_is_in_the_very_frames_of_which_the_answers_speak(seed: int) -> None:
    rng = random.Random(seed)
    scene = quiet(replace(draw_scene(World(False, ((96, 96), (160, 96)), (1, 4), most_things=1), rng), border_s=None))
    view = look(scene)
    clip = paint(strokes([view], 2 * len(view.told)), scene.width, scene.height)[0]
    lit = [bool(pair.amax() > 100) for pair in clip.split(2)]
    thing = scene.things[0]
    assert lit == [pair in view.steps_with(thing) for pair in range(len(view.told))]
    for kind, expected in (("time", lit.index(True)), ("last_time", len(lit) - 1 - lit[::-1].index(True))) * any(lit):
        question = ask(view, kind, rng, plain=True)
        assert question is None or question.answer == view.told[expected]
    colour = ask(view, "colour", rng, plain=True)
    if colour is not None:
        shown = clip.flatten(2).permute(0, 2, 1).reshape(-1, 3)
        mean = shown[shown.amax(1) > 0.8 * shown.max()].mean(0)
        distance = {name: (mean - torch.tensor(rgb)).abs().sum().item() for name, rgb in COLOURS.items()}
        assert colour.answer == min(distance, key=distance.__getitem__)


def check(question: Question) -> None:
    """What must hold of every question."""
    assert question.answer and question.text and "{" not in question.text
    if question.form == "choice":
        listed = [line for line in question.text.splitlines() if line[1:3] == ". "]
        assert question.answer in LETTERS[: len(listed)] and len(set(listed)) == len(listed)


@given(seeds)
def test_questions_are_whole(seed: int) -> None:
    rng = random.Random(seed)
    view = look(draw_scene(World(True), rng))
    for kind in RULES:
        question = ask(view, kind, rng)
        if question is not None:
            check(question)


def test_every_kind_has_wordings_and_is_asked() -> None:
    assert list(WORDINGS) == list(RULES) and all(len(wordings) > 1 for wordings in WORDINGS.values())
    rng, found = random.Random(1), set[tuple[str, str]]()
    for _ in range(150):
        view = look(draw_scene(World(True), rng))
        found |= {(q.kind, q.form) for kind in RULES if (q := ask(view, kind, rng)) is not None}
    assert {kind for kind, _ in found} == set(RULES)
    assert {form for _, form in found} == {"plain", "vsi", "choice"}


@pytest.mark.parametrize("step", [4.0, 20.0])
def test_compression_leaves_the_picture_and_costs_more_the_wider_its_steps(step: float) -> None:
    scene = draw_scene(World(False, pairs=(4, 4)), random.Random(4))
    clip = paint(strokes([look(scene)], 8), scene.width, scene.height)
    off = [(compress(clip, torch.tensor([size])) - clip).abs().mean().item() for size in (0.0, step, 2 * step)]
    assert off[0] < off[1] < off[2] < 12


@pytest.mark.parametrize("eye", EYES.values(), ids=EYES)
def test_the_demo_asks_what_the_seed_gives(tmp_path: Path, eye: Eye) -> None:
    write_rows(tmp_path, list(scenes(12, (FPS,), 16, seed=1)), eye, rows=7, own_rates=False, seed=1)
    name = rows_file(eye)
    assert (tmp_path / name).read_text() == (ROOT / "data" / "demo" / name).read_text()
