"""Training batches: clips of one size with as many questions as fit, in the very prompts that vidpipe makes.

The questions of a clip share its video: each sees the video and itself, never another question, and its positions go
on from the video's end. So one pass over a clip teaches what as many single prompts would.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tests.world.questions import RULES, Question, ask
from tests.world.scene import SIZES_WH, World, draw_scene
from tests.world.training.vocabulary import CLOSE, OPEN, Vocabulary
from tests.world.view import QWEN3_VL, Eye, View, look
from vidpipe.models.family import VideoLayout
from vidpipe.models.prompt import token_ids
from vidpipe.models.qwen3_vl_prompt import Media, mrope_positions

PAIR_RANGES = ((1, 4), (5, 8), (9, 16))
"""Clips of a batch have so many pairs of frames; they are padded to the most."""
SIMPLE_PAIRS = ((1, 2), (1, 4))
ROOM = 352
"""Tokens of questions and answers a clip."""
ALIGN = 16
TRIES = 22
"""Questions that are thought of for a clip; some cannot be asked of it, and not all fit."""


@dataclass(frozen=True)
class Shape:
    """What all clips of a batch have in common."""

    width: int
    height: int
    pairs: tuple[int, int]
    """Fewest and most pairs of frames; a family that asks for more frames gets them."""
    clips: int
    eye: Eye = QWEN3_VL

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of a step's vision tokens."""
        layout = self._layout
        return layout.grid_thw[1] // layout.merge, layout.grid_thw[2] // layout.merge

    @property
    def shown_wh(self) -> tuple[int, int]:
        """Width and height in pixels at which the model sees the pictures."""
        return self._layout.size_wh

    @property
    def _layout(self) -> VideoLayout:
        eye = self.eye
        return eye.family.layout(2, self.width, self.height, eye.sampling(1.0), eye.processor)

    @property
    def steps(self) -> int:
        """Steps that the longest clip has."""
        return max(2 * self.pairs[1], self.eye.least_frames) // self.eye.frames_a_step


@dataclass
class Batch:
    """Arrays of B clips with S tokens each: the video's prompt, then the questions one behind the other."""

    shape: Shape
    views: list[View]
    ids: npt.NDArray[np.int16]
    """[B, S]"""
    positions: npt.NDArray[np.int16]
    """[3, B, S]"""
    part: npt.NDArray[np.int8]
    """[B, S]: 0 the video's prompt, 1 and up the questions, -1 padding."""
    vision: npt.NDArray[np.int16]
    """[B, S]: which of the clip's vision tokens stands here, -1 for text."""
    steps: npt.NDArray[np.int16]
    """[B]: steps that the clip has."""
    places: npt.NDArray[np.int64]
    """[answer tokens]: places in the flattened [B, S] that say the next answer token."""
    targets: npt.NDArray[np.int64]
    """[answer tokens]: what is right there."""
    owner: npt.NDArray[np.int64]
    """[answer tokens]: question each belongs to."""
    kinds: npt.NDArray[np.int64]
    """[questions]: place in `RULES`."""


def draw_shape(rng: random.Random, tokens: int, simple: bool, eye: Eye) -> Shape:
    """A size, a range of lengths (if `simple`, very short) and as many clips as about `tokens` tokens hold."""
    width, height = rng.choice(SIZES_WH)
    pairs = rng.choice(SIMPLE_PAIRS) if simple else rng.choices(PAIR_RANGES, (1.0, 1.0, 1.3))[0]
    one = Shape(width, height, pairs, 1, eye)
    rows, columns = one.grid
    # A clip's cost in the text model's tokens; a patch costs the encoder about a third of that.
    cost = ROOM + one.steps * (rows * columns + 10) + 0.3 * one.steps * 4 * rows * columns
    return replace(one, clips=max(2, int(tokens / cost) // 2 * 2))


def video_prompt(view: View, words: Vocabulary, eye: Eye) -> tuple[list[int], npt.NDArray[np.int64]]:
    """Ids and positions [3, tokens] of a prompt up to the video's end; the family with one axis has three alike."""
    scene = view.scene
    ids, positions = _video_prompt(view.told, scene.width, scene.height, scene.sampling_fps, words, eye)
    return list(ids), positions


@lru_cache(20_000)
def _video_prompt(
    told: tuple[str, ...], width: int, height: int, fps: float, words: Vocabulary, eye: Eye
) -> tuple[tuple[int, ...], npt.NDArray[np.int64]]:
    # The family takes times of frames; a step's all at the told moment give the same text.
    times_s, sampling = [float(text) for text in told for _ in range(eye.frames_a_step)], eye.sampling(fps)
    layout = eye.family.layout(len(times_s), width, height, sampling, eye.processor)
    head = words.words(f"{OPEN}user\n")
    video = token_ids(eye.family.prompt(times_s, layout, sampling), words.words, words.special.__getitem__)
    ids = [*head, *video]
    if eye.mrope:
        positions = mrope_positions(ids, [Media(layout.grid_thw, len(head))], words.control, layout.merge)
    else:
        positions = np.broadcast_to(np.arange(len(ids)), (3, len(ids)))
    return tuple(ids), positions


def question_ids(question: Question, words: Vocabulary) -> tuple[list[int], list[int]]:
    """Ids behind the video's prompt up to the answer, and of the answer with its end."""
    prompt = words.encode(f"{question.text}{CLOSE}\n{OPEN}assistant\n")
    return prompt, words.encode(f"{question.answer}{CLOSE}")


def draw_questions(
    view: View, words: Vocabulary, rng: random.Random, weights: Sequence[float] | None = None, plain: bool = False
) -> list[tuple[int, list[int], list[int]]]:
    """Questions that fit into `ROOM`: kind's place in `RULES`, prompt and answer ids.

    Args:
        view: What is seen.
        words: The tokenizer.
        rng: Chooses.
        weights: How often each kind of `RULES` is thought of; all alike if None.
        plain: In the plainest wording only.
    """
    names, found, room = list(RULES), [], ROOM
    for kind in rng.choices(names, weights, k=TRIES):
        question = ask(view, kind, rng, plain)
        if question is None:
            continue
        prompt, answer = question_ids(question, words)
        if len(prompt) + len(answer) <= room:
            room -= len(prompt) + len(answer)
            found.append((names.index(kind), prompt, answer))
        if room < 16:
            break
    return found


def make_batch(
    shape: Shape,
    test: bool,
    most_things: int,
    words: Vocabulary,
    rng: random.Random,
    weights: Sequence[float] | None = None,
    plain: bool = False,
) -> Batch:
    """Clips of one shape and their questions; `weights` and `plain` as `draw_questions` takes them."""
    world = World(test, ((shape.width, shape.height),), shape.pairs, most_things)
    views = [look(draw_scene(world, rng), shape.eye) for _ in range(shape.clips)]
    prompts = [video_prompt(view, words, shape.eye) for view in views]
    asked = [draw_questions(view, words, rng, weights, plain) for view in views]
    return pack(shape, views, prompts, asked, words)


def pack(
    shape: Shape,
    views: list[View],
    prompts: list[tuple[list[int], npt.NDArray[np.int64]]],
    asked: list[list[tuple[int, list[int], list[int]]]],
    words: Vocabulary,
) -> Batch:
    """Prompts and questions side by side in arrays."""
    longest = max(
        len(ids) + sum(len(prompt) + len(answer) for _, prompt, answer in questions)
        for (ids, _), questions in zip(prompts, asked, strict=True)
    )
    size = -(-longest // ALIGN) * ALIGN
    rows = len(views)
    ids = np.full((rows, size), words.special["<|endoftext|>"], np.int16)
    positions, part = np.zeros((3, rows, size), np.int16), np.full((rows, size), -1, np.int8)
    places: list[int] = []
    targets: list[int] = []
    owner: list[int] = []
    kinds: list[int] = []
    for row, ((video, where), questions) in enumerate(zip(prompts, asked, strict=True)):
        end, after = len(video), int(where.max()) + 1
        ids[row, :end], part[row, :end] = video, 0
        positions[:, row, :end] = where
        for number, (kind, prompt, answer) in enumerate(questions, 1):
            tokens = [*prompt, *answer]
            ids[row, end : end + len(tokens)] = tokens
            part[row, end : end + len(tokens)] = number
            positions[:, row, end : end + len(tokens)] = np.arange(after, after + len(tokens))
            first = row * size + end + len(prompt) - 1
            places += range(first, first + len(answer))
            targets += answer
            owner += [len(kinds)] * len(answer)
            kinds.append(kind)
            end += len(tokens)
    is_vision = ids == words.special[shape.eye.family.vision_word]
    vision = np.where(is_vision, is_vision.cumsum(axis=1) - 1, -1).astype(np.int16)
    flat = (np.array(values, np.int64) for values in (places, targets, owner, kinds))
    counted = np.array([len(view.told) for view in views], np.int16)
    return Batch(shape, views, ids, positions, part, vision, counted, *flat)


def without_views(batch: Batch) -> Batch:
    """The arrays alone, to send to another process."""
    return replace(batch, views=[])
