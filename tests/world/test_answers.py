"""Every answer again, worked out another way: from a list of what each sampled frame holds."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.world.questions import RULES, ask
from tests.world.scene import COLOURS, SHAPES, VELOCITY, World, draw_scene
from tests.world.view import View, look

NAME = rf"({'|'.join(COLOURS)}) ({'|'.join(SHAPES)})"


@dataclass(frozen=True)
class Seen:
    """A thing in a frame."""

    name: tuple[str, str]
    x: float
    y: float
    radius: float


def frames(view: View) -> list[list[Seen]]:
    """What each sampled frame holds."""
    return [
        [
            Seen((thing.colour, thing.shape), *thing.place(time_s), thing.radius)
            for thing in view.scene.things
            if thing.appears_s <= time_s < thing.leaves_s
        ]
        for time_s in view.times_s
    ]


def answer(view: View, kind: str, text: str) -> str:
    """What is right, from the words of a plainly worded question."""
    shown = frames(view)
    pairs = [{seen.name for frame in shown[at : at + 2] for seen in frame} for at in range(0, len(shown), 2)]
    asked = [(colour, shape) for colour, shape in re.findall(NAME, text)]
    everything = set().union(*pairs)
    at = {name: [pair for pair, there in enumerate(pairs) if name in there] for name in everything}
    found = re.search(r"at ([\d.]+) seconds", text)
    told = view.told.index(found[1]) if found else -1
    track = [seen for frame in shown for seen in frame if asked and seen.name == asked[0]]
    way = (0.0, 0.0) if len(track) < 2 else (track[-1].x - track[0].x, track[-1].y - track[0].y)
    word = next((word for word in re.findall(r"\w+", text) if word in (*COLOURS, *SHAPES)), "")
    match kind:
        case "colour" | "shape":
            (name,) = (name for name in everything if word in name)
            return name[kind == "shape"]
        case "count":
            return str(len(everything))
        case "object_counting":
            word = next(word for word in (*COLOURS, *SHAPES) if re.search(rf"\b{word}", text))
            return str(sum(word in name for name in everything))
        case "direction":
            return next(
                name for name, step in VELOCITY.items() if step == tuple((part > 1e-6) - (part < -1e-6) for part in way)
            )
        case "order":
            return " ".join(min(asked, key=lambda name: at[name][0]))
        case "time":
            return view.told[at[asked[0]][0]]
        case "last_time":
            return view.told[at[asked[0]][-1]]
        case "what_at":
            (name,) = (name for name, where in at.items() if where[0] == told)
            return " ".join(name)
        case "exists":
            return "yes" if asked[0] in everything else "no"
        case "present_at":
            return "yes" if told in at[asked[0]] else "no"
        case "size":
            sizes = {seen.name: seen.radius for frame in shown for seen in frame}
            return " ".join(max(asked, key=sizes.__getitem__))
        case _:
            border = view.scene.border_s
            assert border is not None
            lit = [place // 2 for place, time_s in enumerate(view.times_s) if border[0] <= time_s < border[1]]
            return view.told[lit[0]]


@given(st.integers(0, 10**9))
def test_another_reading_of_the_frames_gives_every_answer(seed: int) -> None:
    rng = random.Random(seed)
    view = look(draw_scene(World(rng.random() < 0.5), rng))
    for kind in RULES:
        question = ask(view, kind, rng, plain=True)
        if question is not None:
            assert question.answer == answer(view, kind, question.text), (kind, question)
