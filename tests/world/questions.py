"""Questions about what a view shows, each with the one right answer.

A kind is a rule: it looks at the view and gives the words of a question and its answer, or nothing where the view
leaves room for doubt (something that changes inside a step, two places too much alike).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from tests.world.scene import COLOURS, SHAPES, VELOCITY, Thing
from tests.world.view import View
from tests.world.wordings import PLURAL, WORDINGS
from vidpipe.benchmarks.prompts import FRAMES, LETTER, WORD

LETTERS = "ABCD"
FAR = 14.0
"""Pixels of way from which a thing is said to move."""
LARGER = 1.25
"""How many times as large a thing is that is called larger."""


@dataclass(frozen=True)
class Question:
    """A question as a manifest's row has it."""

    kind: str
    text: str
    answer: str
    form: str
    """`plain`, `vsi` (VSI-Bench's words around it) or `choice` (a letter is asked for)."""


@dataclass(frozen=True)
class Found:
    """What a rule found."""

    words: Mapping[str, str]
    """For the blanks of the kind's wordings."""
    answer: str
    others: Sequence[str] = ()
    """Wrong answers that may stand beside the right one as options; none for a kind that is not asked so."""


Rule = Callable[[View, random.Random], Found | None]


def _one(things: Sequence[Thing], rng: random.Random) -> Thing | None:
    return rng.choice(things) if things else None


def _alone(view: View, quality: str) -> list[Thing]:
    """Things whose colour or shape no other has."""
    values = [getattr(thing, quality) for thing in view.seen]
    return [thing for thing, value in zip(view.seen, values, strict=True) if values.count(value) == 1]


def _without(values: Sequence[str], answer: str) -> list[str]:
    return [value for value in values if value != answer]


def colour(view: View, rng: random.Random) -> Found | None:
    """Colour of the only thing of its shape."""
    thing = _one(_alone(view, "shape"), rng)
    return thing and Found({"shape": thing.shape}, thing.colour, _without(list(COLOURS), thing.colour))


def shape(view: View, rng: random.Random) -> Found | None:
    """Shape of the only thing of its colour."""
    thing = _one(_alone(view, "colour"), rng)
    return thing and Found({"colour": thing.colour}, thing.shape, _without(SHAPES, thing.shape))


def count(view: View, rng: random.Random) -> Found:
    """Things in the whole clip."""
    return Found({}, str(len(view.seen)))


def object_counting(view: View, rng: random.Random) -> Found:
    """Things of one colour or one shape; as often as not of one that is there."""
    quality, values = rng.choice((("colour", tuple(COLOURS)), ("shape", SHAPES)))
    there = [getattr(thing, quality) for thing in view.seen]
    value = rng.choice(there) if there and rng.random() < 0.75 else rng.choice(values)
    asked = f"{value} object" if quality == "colour" else value
    return Found({"one": asked, "many": PLURAL.get(asked, asked + "s")}, str(there.count(value)))


def direction(view: View, rng: random.Random) -> Found | None:
    """Which way a thing goes that is seen to go, or to stay, for three frames."""
    shown = [thing for thing in view.seen if sum(map(thing.there, view.times_s)) >= 3]
    thing = _one([thing for thing in shown if thing.direction == "nowhere" or _way(view, thing) >= FAR], rng)
    return thing and Found({"thing": thing.name}, thing.direction, _without(list(VELOCITY), thing.direction))


def _way(view: View, thing: Thing) -> float:
    """Pixels from its first to its last place in sampled frames."""
    times_s = [time_s for time_s in view.times_s if thing.there(time_s)]
    return thing.speed * (times_s[-1] - times_s[0])


def _first(view: View) -> dict[str, int]:
    return {thing.name: view.steps_with(thing)[0] for thing in view.seen}


def order(view: View, rng: random.Random) -> Found | None:
    """Which of two things is seen first."""
    first = _first(view)
    apart = [(a, b) for a, b in permutations(first, 2) if first[a] != first[b]]
    if not apart:
        return None
    one, other = rng.choice(apart)
    early, late = sorted((one, other), key=first.__getitem__)
    return Found({"thing": one, "other": other}, early, [late])


def time(view: View, rng: random.Random) -> Found | None:
    """Time text of the first step with a thing that was not there from the start."""
    thing = _one([thing for thing in view.seen if view.steps_with(thing)[0] > 0], rng)
    return thing and Found({"thing": thing.name}, view.told[view.steps_with(thing)[0]])


def last_time(view: View, rng: random.Random) -> Found | None:
    """Time text of the last step with a thing that is gone at the end."""
    thing = _one([thing for thing in view.seen if view.steps_with(thing)[-1] < len(view.told) - 1], rng)
    return thing and Found({"thing": thing.name}, view.told[view.steps_with(thing)[-1]])


def what_at(view: View, rng: random.Random) -> Found | None:
    """The only thing that is first seen in a given later step."""
    first = _first(view)
    alone = [name for name, step in first.items() if step > 0 and list(first.values()).count(step) == 1]
    if not alone:
        return None
    name = rng.choice(alone)
    return Found({"time": view.told[first[name]]}, name, _without(list(first), name))


def exists(view: View, rng: random.Random) -> Found:
    """Whether a thing is seen at all; if not, often one with a colour or a shape that is there."""
    names = [thing.name for thing in view.seen]
    if names and rng.random() < 0.5:
        return Found({"thing": rng.choice(names)}, "yes")
    colours, shapes = list(COLOURS), list(SHAPES)
    if names and rng.random() < 0.6:
        near = rng.choice(view.seen)
        colours, shapes = ([near.colour], shapes) if rng.random() < 0.5 else (colours, [near.shape])
    name = f"{rng.choice(colours)} {rng.choice(shapes)}"
    return Found({"thing": name}, "yes" if name in names else "no")


def present_at(view: View, rng: random.Random) -> Found | None:
    """Whether a thing that comes or goes is there in a step, in all of its frames or in none."""
    things = [thing for thing in view.seen if len(view.steps_with(thing)) < len(view.told)]
    thing = _one(things, rng)
    if thing is None:
        return None
    some = set(view.steps_with(thing))
    whole = [step for step in some if view.whole_in(step, thing)]
    none = [step for step in range(len(view.told)) if step not in some]
    steps = whole if whole and rng.random() < 0.5 else none
    step = rng.choice(steps)
    return Found({"thing": thing.name, "time": view.told[step]}, "yes" if steps is whole else "no")


def size(view: View, rng: random.Random) -> Found | None:
    """Which of two things is clearly the larger."""
    if len(view.seen) < 2:
        return None
    one, other = rng.sample(view.seen, 2)
    small, large = sorted((one, other), key=lambda thing: thing.radius)
    if large.radius < LARGER * small.radius:
        return None
    return Found({"thing": one.name, "other": other.name}, large.name, [small.name])


def event_time(view: View, rng: random.Random) -> Found | None:
    """Time text of the first step with the border lit."""
    return Found({}, view.told[view.lit_steps[0]]) if view.lit_steps else None


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        *(colour, shape, count, object_counting, direction, order, time, last_time),
        *(what_at, exists, present_at, size, event_time),
    )
}
TIMES = ("time", "last_time", "event_time")
"""Kinds whose answer is a time."""


def ask(view: View, kind: str, rng: random.Random, plain: bool = False) -> Question | None:
    """A question of `kind`, or None where the view has none.

    Args:
        view: What is seen.
        kind: Of `RULES`.
        rng: Chooses what is asked about, the wording and the form.
        plain: The first wording and no words around it.
    """
    found = RULES[kind](view, rng)
    if found is None:
        return None
    wordings = WORDINGS[kind]
    text = (wordings[0] if plain else rng.choice(wordings)).format(**found.words)
    if found.others and not plain and rng.random() < 0.25:
        return _choice(kind, text, found, rng)
    if not plain and rng.random() < 0.25:
        return Question(kind, f"{FRAMES}\n{text}\n{WORD}", found.answer, "vsi")
    return Question(kind, text, found.answer, "plain")


def _choice(kind: str, text: str, found: Found, rng: random.Random) -> Question:
    options = [found.answer, *rng.sample(list(found.others), min(len(LETTERS) - 1, len(found.others)))]
    rng.shuffle(options)
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    asked = f"{text}\nOptions:\n{listed}\n{LETTER}"
    if rng.random() < 0.5:
        asked = f"{FRAMES}\n{asked}"
    return Question(kind, asked, LETTERS[options.index(found.answer)], "choice")
