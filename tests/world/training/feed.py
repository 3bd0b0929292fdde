"""Batches made by worker processes while the device trains, and what becomes of them on the device.

Workers send plain arrays through pipes: shared memory is small in many containers. Pictures are drawn on the device.
"""

from __future__ import annotations

import multiprocessing as mp
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from tests.world.pictures import Strokes, strokes
from tests.world.questions import RULES
from tests.world.training.batch import Batch, draw_shape, make_batch, without_views
from tests.world.training.pruned import Pruning, draw_pruning
from tests.world.training.vocabulary import Vocabulary
from tests.world.view import EYES

WAITING = 3
"""Batches a worker keeps ready, and the device's thread too."""
ARRAYS = ("ids", "positions", "part", "vision", "steps", "places", "targets", "owner", "kinds")
ENCODER_UNTIL, HARD_AT = 0.05, 0.2
"""Shares of the training: up to the first the encoder learns alone, what its heads say; from then to the second fewer
and fewer batches are simple, which means very short clips, up to three things, plain questions for what a thing is."""
SIMPLE = tuple(float(kind in ("colour", "shape", "object_counting", "exists", "size")) for kind in RULES)
"""How often each kind is thought of in simple batches. To find a thing by its shape is learnt in a few dozen steps from
these, and hardly while all kinds are asked."""
PRUNED_FROM, PRUNED_ALL, MOST_PRUNED = 0.3, 0.5, 0.4
"""Shares of the training between which the share of pruned clips grows from nothing to the last number."""
KNOWN = 0.25
"""How often a kind that is always right is thought of, over one that is always wrong; roughly."""


@dataclass
class Given:
    """A batch ready for the device."""

    arrays: dict[str, Tensor]
    what: Strokes
    width: int
    height: int
    step: Tensor
    """[B]: of `pictures.compress`; 0 leaves a clip alone."""
    compressed: bool
    """Whether any of it is not 0."""
    pruning: Pruning


def tensors(batch: Batch) -> dict[str, Tensor]:
    """The arrays of a batch as the network takes them."""
    found = {name: torch.from_numpy(getattr(batch, name)) for name in ARRAYS}
    found["size"] = torch.tensor(batch.shape.grid)
    return found


def make_given(
    tokens: int,
    easy: float,
    pruned: float,
    words: Vocabulary,
    rng: random.Random,
    *,
    test: bool,
    family: str,
    weights: Sequence[float] | None = None,
) -> Given:
    """A batch of about `tokens` tokens.

    Args:
        tokens: In the text model's, the encoder's work included.
        easy: Share of simple batches (`SIMPLE`), which are not compressed either.
        pruned: Share of the clips that lose vision tokens.
        words: The tokenizer.
        rng: Decides everything.
        test: Of the test world.
        family: For whose model.
        weights: How often each kind of question is thought of; all alike if None.
    """
    simple = rng.random() < easy
    shape = draw_shape(rng, tokens, simple, EYES[family])
    asked = SIMPLE if simple else weights
    batch = make_batch(shape, test, 3 if simple else 4, words, rng, asked, plain=simple)
    what = strokes(batch.views, shape.steps * shape.eye.frames_a_step)
    compressed = not simple and rng.random() < 0.6
    steps = [rng.choice((0.0, 1.0, 1.0)) * 20.0 ** rng.uniform(0, 1) if compressed else 0.0 for _ in batch.views]
    pruning = draw_pruning(shape.clips, pruned, rng)
    return Given(
        tensors(without_views(batch)), what, shape.width, shape.height, torch.tensor(steps), compressed, pruning
    )


def _work(seed: str, tokens: int, family: str, progress: Any, weights: Any, out: Any) -> None:
    torch.set_num_threads(1)
    words, rng = Vocabulary(), random.Random(seed)
    while True:
        over = progress.value
        easy = max(0.0, (HARD_AT - over) / (HARD_AT - ENCODER_UNTIL)) if over >= ENCODER_UNTIL else 0.0
        grown = (over - PRUNED_FROM) / (PRUNED_ALL - PRUNED_FROM)
        pruned = MOST_PRUNED * min(max(grown, 0.0), 1.0) if EYES[family].family.abilities.pruning else 0.0
        given = make_given(tokens, easy, pruned, words, rng, test=False, family=family, weights=list(weights))
        out.put(_plain(given))


def _plain(given: Given) -> Any:
    """As numpy arrays, which a pipe carries without shared memory."""
    return _mapped(given, lambda value: value.numpy())


def _from_plain(given: Any) -> Given:
    found: Given = _mapped(given, torch.from_numpy)
    return found


def to_device(given: Given, device: torch.device) -> Given:
    """The same on the device, without waiting for the copy."""
    if device.type != "cuda":
        return given
    found: Given = _mapped(given, lambda value: value.pin_memory().to(device, non_blocking=True))
    found.arrays["size"] = given.arrays["size"]
    return found


def _mapped(given: Given, change: Callable[[Any], Any]) -> Any:
    """The same with every array or tensor changed."""
    return Given(
        {name: change(value) for name, value in given.arrays.items()},
        Strokes(*(change(getattr(given.what, field.name)) for field in fields(Strokes))),
        given.width,
        given.height,
        change(given.step),
        given.compressed,
        Pruning(change(given.pruning.method), change(given.pruning.rate)),
    )


def _test_given(job: tuple[int, int, str]) -> Any:
    seed, tokens, family = job
    torch.set_num_threads(1)
    rng = random.Random(f"test {seed}")
    return _plain(make_given(tokens, 0.0, 0.0, Vocabulary(), rng, test=True, family=family))


def test_batches(count: int, tokens: int, workers: int, family: str) -> list[Given]:
    """Batches of the test world, the same each time."""
    with mp.get_context("fork").Pool(workers) as pool:
        return list(map(_from_plain, pool.imap(_test_given, [(seed, tokens, family) for seed in range(count)])))


class Feed:
    """An endless source of train batches on the device."""

    def __init__(
        self,
        seed: str,
        workers: int,
        tokens: int,
        progress: float,
        device: torch.device,
        family: str,
    ) -> None:
        context = mp.get_context("fork")
        self.progress = context.Value("d", progress)
        self._weights = context.Array("d", [1.0] * len(RULES))
        self.waited_s = 0.0
        self._made = context.Queue(WAITING * workers)
        self._ready: queue.Queue[Given] = queue.Queue(WAITING)
        told = (tokens, family, self.progress, self._weights, self._made)
        self._workers = [
            context.Process(target=_work, args=(f"{seed} {place}", *told), daemon=True) for place in range(workers)
        ]
        for worker in self._workers:
            worker.start()
        self._device = device
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        while True:
            self._ready.put(to_device(_from_plain(self._made.get()), self._device))

    def __iter__(self) -> Iterator[Given]:
        while True:
            if not any(worker.is_alive() for worker in self._workers):
                raise RuntimeError("every worker that makes batches has ended; see its traceback above")
            began = time.monotonic()
            given = self._ready.get(timeout=120)
            self.waited_s += time.monotonic() - began
            yield given

    def weigh(self, shares: Mapping[str, float]) -> None:
        """Think more often of the kinds of questions that are wrong; `shares` right by kind."""
        for place, kind in enumerate(RULES):
            self._weights[place] = KNOWN + 1 - shares.get(kind, 0.0)

    def stop(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.terminate()
