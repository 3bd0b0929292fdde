"""What happens in a clip: a few shapes that appear, move and leave, and perhaps a border that lights up.

A scene lives in continuous time; frames, pairs and pixels are made from it elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

COLOURS = {
    "red": (225, 45, 40),
    "green": (45, 175, 60),
    "blue": (55, 85, 230),
    "yellow": (235, 215, 50),
    "purple": (180, 60, 200),
    "white": (242, 242, 242),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring")
VELOCITY = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1), "nowhere": (0, 0)}
"""Direction -> unit step along x (to the right) and y (downward)."""
WAYS = {True: ("left", "right", "nowhere"), False: ("up", "down", "nowhere")}
"""Whether a scene's things move along x -> how each may."""
SIZES_WH = tuple(
    (32 * columns, 32 * rows)
    for columns, rows in ((3, 3), (4, 4), (5, 5), (6, 6), (4, 3), (3, 4), (5, 3), (3, 5), (6, 4), (4, 6))
)
FILE_RATES = (8.0, 10.0, 12.5, 15.0, 24.0, 25.0, 30.0)
SAMPLING_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
LONGEST_S = 120.0
MOST_PAIRS = 16
LANE = 32
"""Pixels across that a shape has to itself, at least; its largest diameter."""


NAMES = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)
"""Every thing there can be: colour and shape."""
HELD_OUT = frozenset(random.Random("meetings").sample(list(combinations(NAMES, 2)), 43))
"""Two things that never meet in a train scene; a tenth of all pairs. Each thing alone, in every direction, is shown: a
model could else learn that there is no such thing, which is right in training and wrong in the test."""


def meets_new(names: Iterable[tuple[str, str]]) -> bool:
    """Whether two of these things never meet in a train scene."""
    there = set(names)
    return any(one in there and other in there for one, other in HELD_OUT)


@dataclass(frozen=True)
class Thing:
    """One shape."""

    colour: str
    shape: str
    direction: str
    radius: float
    """Pixels."""
    rgb: tuple[float, float, float]
    x: float
    """Pixels from the left edge to its middle when it appears."""
    y: float
    speed: float
    """Pixels per second."""
    appears_s: float
    """0 for one that is there from the start."""
    leaves_s: float
    """The clip's duration or more for one that stays."""

    @property
    def name(self) -> str:
        """Colour and shape; unique in a scene."""
        return f"{self.colour} {self.shape}"

    def there(self, time_s: float) -> bool:
        """Whether it is in the picture at that moment."""
        return self.appears_s <= time_s < self.leaves_s

    def place(self, time_s: float) -> tuple[float, float]:
        """Its middle (x, y) in pixels."""
        along_x, along_y = VELOCITY[self.direction]
        way = self.speed * (time_s - self.appears_s)
        return self.x + along_x * way, self.y + along_y * way


@dataclass(frozen=True)
class Backdrop:
    """What lies behind the shapes, and what the camera adds."""

    rgb: tuple[float, float, float]
    slope: tuple[float, float]
    """Change of brightness from edge to edge, along x and y."""
    wave: tuple[float, float, float]
    """A faint grating: its height in levels, its cycles along x and along y over the picture."""
    noise: float
    """Standard deviation of the noise in levels, roughly."""
    softness: float
    """Width of the shapes' edges in pixels."""


@dataclass(frozen=True)
class Scene:
    """A clip before it has frames."""

    width: int
    height: int
    fps: float
    """Frames per second of the file."""
    frames: int
    sampling_fps: float
    """Rate at which the scene is meant to be sampled."""
    things: tuple[Thing, ...]
    border_s: tuple[float, float] | None
    """From when till when a white border is lit; None for never."""
    backdrop: Backdrop = field(repr=False)

    @property
    def duration_s(self) -> float:
        """From the first frame to the end of the last."""
        return self.frames / self.fps

    def border_lit(self, time_s: float) -> bool:
        """Whether the border is lit at that moment."""
        return self.border_s is not None and self.border_s[0] <= time_s < self.border_s[1]


@dataclass(frozen=True)
class World:
    """A distribution of scenes."""

    test: bool
    """In a test scene of two things or more, two meet that never do in a train scene."""
    sizes_wh: tuple[tuple[int, int], ...] = SIZES_WH
    pairs: tuple[int, int] = (1, MOST_PAIRS)
    """Fewest and most pairs of frames."""
    most_things: int = 4
    sampling_rates: tuple[float, ...] = SAMPLING_RATES


def draw_scene(world: World, rng: random.Random) -> Scene:
    """One scene of `world`; the same state of `rng`, the same scene."""
    width, height = rng.choice(world.sizes_wh)
    pairs = rng.randint(*world.pairs)
    rates = [rate for rate in world.sampling_rates if 2 * pairs / rate <= LONGEST_S]
    sampling_fps = rng.choice(rates)
    fps = rng.choice(FILE_RATES)
    seconds = (2 * pairs + rng.choice((0, 0, 0, -1 if pairs > 1 else 0))) / sampling_fps
    frames = max(2, round((seconds + 0.2 / sampling_fps) * fps))
    duration_s, step_s = frames / fps, frames / fps / (2 * pairs)
    things = _draw_things(world, rng, width, height, duration_s, step_s)
    border = None
    if rng.random() < 0.25:
        border = _window(rng, duration_s, step_s, stays=0.4)
    return Scene(width, height, fps, frames, sampling_fps, things, border, _draw_backdrop(rng))


def _draw_things(
    world: World, rng: random.Random, width: int, height: int, duration_s: float, step_s: float
) -> tuple[Thing, ...]:
    # All things keep to lanes side by side, so none ever covers another.
    along_x = rng.random() < 0.5
    along, across = (width, height) if along_x else (height, width)
    count = min(rng.choices((1, 2, 3, 4), (2, 4, 6, 6))[0], across // LANE, world.most_things)
    lane = across / count
    things = []
    for place, (colour, shape) in enumerate(_draw_names(world, rng, count)):
        direction = rng.choice(WAYS[along_x])
        appears_s, leaves_s = 0.0, duration_s
        if rng.random() < 0.65:
            appears_s, leaves_s = _window(rng, duration_s, step_s, stays=0.6)
        elif rng.random() < 0.35:
            leaves_s = rng.uniform(min(2.2 * step_s, duration_s), duration_s)
        large = min(1.5, lane / LANE)
        radius = large * (rng.uniform(9.5, 11.0) if rng.random() < 0.5 else rng.uniform(14.3, 15.5))
        shown_s = max(min(leaves_s, duration_s) - appears_s, step_s)
        room = along - 2 * radius
        way = 0.0 if direction == "nowhere" else rng.uniform(0.5, 1.0) * room
        near = radius + rng.uniform(0, room - way)
        start = near if sum(VELOCITY[direction]) >= 0 else near + way
        middle = lane * (place + 0.5) + rng.uniform(-1, 1) * (lane / 2 - radius)
        x, y = (start, middle) if along_x else (middle, start)
        rgb = tuple(level + rng.uniform(-12, 12) for level in COLOURS[colour])
        assert len(rgb) == 3
        things.append(Thing(colour, shape, direction, radius, rgb, x, y, way / shown_s, appears_s, leaves_s))
    rng.shuffle(things)
    return tuple(things)


def _draw_names(world: World, rng: random.Random, count: int) -> list[tuple[str, str]]:
    """Colours and shapes of a scene's things; in a test scene two of them have never met."""
    while True:
        names = rng.sample(NAMES, count)
        if count == 1 or meets_new(names) == world.test:
            return names


def _window(rng: random.Random, duration_s: float, step_s: float, stays: float) -> tuple[float, float]:
    """From when till when something is there: later than the first frame, for two sampled frames at least."""
    last = max(duration_s - 2.2 * step_s, 0.55 * step_s)
    start = rng.uniform(0.5 * step_s, last)
    if rng.random() < stays:
        return start, duration_s
    return start, rng.uniform(min(start + 2.2 * step_s, duration_s), duration_s)


def _draw_backdrop(rng: random.Random) -> Backdrop:
    grey = rng.uniform(0, 110)
    red, green, blue = (min(max(grey + rng.uniform(-12, 12), 0), 255) for _ in range(3))
    return Backdrop(
        rgb=(red, green, blue),
        slope=(rng.uniform(-25, 25), rng.uniform(-25, 25)),
        wave=(rng.choice((0.0, rng.uniform(0, 10))), rng.uniform(-6, 6), rng.uniform(-6, 6)),
        noise=rng.uniform(0, 14),
        softness=rng.uniform(0.35, 1.0),
    )
