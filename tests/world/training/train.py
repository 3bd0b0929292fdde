"""Train a tiny model of the drawn world: `python -m tests.world.training.train --help`, and docs/world.md.

The schedule follows the clock, so a run ends on time whatever the machine; it goes on from what it finds in its first
output folder. The loss counts answer tokens and, in the first part, what heads say about every vision token.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.world import pictures
from tests.world.questions import RULES
from tests.world.training import store
from tests.world.training.families import TAUGHT
from tests.world.training.feed import ENCODER_UNTIL, Feed, Given, make_given, test_batches, to_device
from tests.world.training.labels import Heads, labels
from tests.world.training.optimise import Optimiser
from tests.world.training.pruned import same_pruning
from tests.world.training.vocabulary import Vocabulary

WARM_STEPS = 200
REHEARSED = 6
"""Batches, of as many shapes, that are compiled for before the clock starts."""
LOG_S, SAVE_S, JUDGE_S = 10.0, 60.0, 60.0
HEADS_UNTIL = 0.6
"""Share of the training at which the weight of the heads' loss, falling evenly, is 0."""
ARMS = {"unpruned": ("none", 0.0), "evs 0.5": ("evs", 0.5), "vidcom2 0.5": ("vidcom2", 0.5)}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("-o", "--out", type=Path, action="append", required=True, help="folder for weights and log; may be repeated")
    add("--family", choices=TAUGHT, default="qwen3_vl")
    add("--seconds", type=float, default=420, help="training time of this call; setting up and judging come on top")
    add("--total", type=float, help="training time over all calls, to which the schedule is tied (default: --seconds)")
    add("--steps", type=int, help="end after so many steps of this call, and tie the schedule to them")
    add("--wall", type=float, help="end training this many seconds after the start, setting up included, if not before")
    add("--workers", type=int, default=14, help="processes that make batches")
    add("--tokens", type=int, default=65_536, help="size of a batch in tokens, roughly")
    add("--rate", type=float, default=1e-3, help="AdamW's learning rate at its highest")
    add("--matrix-rate", type=float, default=8e-3, help="Muon's, likewise")
    add("--heads", type=float, default=1.0, help="weight of the heads' loss at the start")
    add("--seed", type=int, default=12)
    add("--eager", action="store_true", help="no torch.compile")
    add("--judged", type=int, default=40, help="batches of the test world that judge the end")
    add("--fixed", action="store_true", help="one batch over and over: the model must learn it by heart")
    return parser.parse_args()


class Log:
    """JSON lines to the terminal and to every output folder."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._files = [(folder / "log.jsonl").open("a") for folder in folders]

    def __call__(self, **values: Any) -> None:
        line = json.dumps(values)
        print(line, flush=True)
        for file in self._files:
            file.write(line + "\n")
            file.flush()


class Tally:
    """Right answers by kind, kept on the device until somebody asks."""

    def __init__(self, device: torch.device) -> None:
        self._counts = torch.zeros(3, len(RULES), device=device)

    def add(self, logits: Tensor, arrays: dict[str, Tensor]) -> None:
        """Count the questions of a batch; an answer is right when all its tokens are."""
        wrong = (logits.argmax(-1) != arrays["targets"]).float()
        kinds = arrays["kinds"]
        missed = torch.zeros(len(kinds), device=wrong.device).index_add_(0, arrays["owner"], wrong)
        self._counts[0].index_add_(0, kinds, (missed == 0).float())
        self._counts[1].index_add_(0, kinds, torch.ones_like(missed))

    def shares(self) -> dict[str, float]:
        """Share right by kind and of all (`all`), and the number of questions (`asked`)."""
        right, asked = self._counts[0].tolist(), self._counts[1].tolist()
        shares = {kind: round(r / a, 4) for kind, r, a in zip(RULES, right, asked, strict=True) if a}
        return {**shares, "all": round(sum(right) / max(sum(asked), 1), 4), "asked": int(sum(asked))}


class Trainer:
    """Model, optimiser and the step."""

    def __init__(self, model: Any, device: torch.device, asked: argparse.Namespace) -> None:
        self.model, self.device, self.heads_weight = model, device, asked.heads
        self.taught = TAUGHT[asked.family]
        methods = ("none", *self.taught.eye.family.abilities.pruning)
        self.arms = {arm: pruning for arm, pruning in ARMS.items() if pruning[0] in methods}
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.network = self.taught.network(model, dtype, compiled=not asked.eager)
        if not asked.eager:
            torch._dynamo.config.recompile_limit = 64  # sizes that happen to be equal are compiled apart
            pictures.fill = torch.compile(pictures.fill, dynamic=True)
        text = model.config.text_config
        self.layers = (1, text.num_hidden_layers // 2)
        levels = 1 + len(getattr(model.config.vision_config, "deepstack_visual_indexes", ()))
        qualities, later = self.taught.qualities, self.taught.later
        self.heads = Heads(levels, len(self.layers), text.hidden_size, qualities, later).to(device)
        named = [
            *model.named_parameters(),
            *((f"{store.HEADS}{name}", one) for name, one in self.heads.named_parameters()),
        ]
        self.optimiser = Optimiser(named, asked.rate, asked.matrix_rate)
        self.steps = self.cold = 0
        self.forget()

    def forget(self) -> None:
        """Begin new sums for the log."""
        self.tally, self.losses = Tally(self.device), torch.zeros(2, device=self.device)
        self.heard = torch.zeros(len(self.heads.linears), len(self.taught.qualities), device=self.device)
        self.since = self.steps

    def pixels(self, given: Given) -> Tensor:
        """What the encoder sees of a batch."""
        with torch.no_grad():
            clip = pictures.paint(given.what, given.width, given.height)
            clip = pictures.compress(clip, given.step) if given.compressed else clip
            return self.taught.patches(clip, *given.arrays["size"].tolist())

    def rehearse(self, given: Given) -> None:
        """Compile what a step needs, and learn nothing."""
        for progress in (0.0, ENCODER_UNTIL):
            self._gradients(given, progress)
            for parameter in (*self.model.parameters(), *self.heads.parameters()):
                parameter.grad = None
        self.forget()

    def step(self, given: Given, progress: float) -> None:
        """Learn from one batch, `progress` (0 to 1) being the share of the training that is over."""
        self._gradients(given, progress)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if progress < ENCODER_UNTIL:
            self.cold = self.steps  # the text model warms up once it is its turn
        self.optimiser.step(rate_at(progress, self.steps if progress < ENCODER_UNTIL else self.steps - self.cold))
        self.network.refresh()
        self.steps += 1

    def _gradients(self, given: Given, progress: float) -> None:
        weight = self.heads_weight * max(0.0, 1 - progress / HEADS_UNTIL)
        said = torch.zeros((), device=self.device)
        if weight:
            rows, columns = given.arrays["size"].tolist()
            target = labels(
                given.what,
                given.width,
                given.height,
                (rows, columns),
                given.arrays["steps"],
                self.taught.qualities,
                self.taught.eye.frames_a_step,
            )
        if progress < ENCODER_UNTIL and weight:
            states = self.network.tokens(self.pixels(given), given.arrays)
            loss = torch.zeros_like(said)
        else:
            layers = self.layers if weight else ()
            logits, states = self.network.listen(self.pixels(given), given.arrays, given.pruning, layers)
            loss = torch.nn.functional.cross_entropy(logits.float(), given.arrays["targets"])
            self.tally.add(logits.detach(), given.arrays)
        if weight:
            said, right = self.heads.loss(states, target, given.arrays["vision"])
            self.heard[: len(right)] += right
        (loss + weight * said).backward()
        self.network.hand_over()
        self.losses += torch.stack([loss.detach(), said.detach()])

    def told(self) -> dict[str, Any]:
        """Means since `forget`, for the log."""
        taken = max(1, self.steps - self.since)
        loss, said = (self.losses / taken).tolist()
        found = {"loss": round(loss, 4), "heads_loss": round(said, 4), "train": self.tally.shares()}
        if said:
            levels = ("encoder", *(f"level {level}" for level in range(1, self.heads.levels)))
            names = (*levels, *(f"layer {layer}" for layer in self.layers))
            rows = [[round(share, 3) for share in row] for row in (self.heard / taken).tolist()]
            found["heads"] = {
                name: dict(zip(self.heads.qualities, row, strict=True)) for name, row in zip(names, rows, strict=True)
            }
        return found

    def judge(self, batches: Iterable[Given]) -> dict[str, dict[str, float]]:
        """Shares right on batches, arm by arm."""
        tallies = {arm: Tally(self.device) for arm in self.arms}
        with torch.no_grad():
            for batch in batches:
                given = to_device(batch, self.device)
                for arm, tally in tallies.items():
                    pruning = same_pruning(*self.arms[arm], len(given.step), self.device)
                    tally.add(self.network(self.pixels(given), given.arrays, pruning), given.arrays)
        return {arm: tally.shares() for arm, tally in tallies.items()}


def rate_at(progress: float, step: int) -> float:
    """Share of the highest rate: warm-up over the first steps, then half a cosine down to a hundredth."""
    warm = min(1.0, (step + 1) / WARM_STEPS)
    return warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


def source(
    given: argparse.Namespace, done: int, progress: float, device: torch.device
) -> tuple[Iterator[Given], Feed | None]:
    """Train batches, others after each number of steps `done`, and the feed behind them if there is one."""
    if given.fixed:
        rng = random.Random(given.seed)
        batch = make_given(given.tokens, 0.0, 0.0, Vocabulary(), rng, test=False, family=given.family)
        return cycle([to_device(batch, device)]), None
    feed = Feed(f"{given.seed} {done}", given.workers, given.tokens, progress, device, given.family)
    return iter(feed), feed


def main() -> None:
    asked = options()
    began = time.monotonic()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # no thread survives a fork
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for folder in asked.out:
        folder.mkdir(parents=True, exist_ok=True)
    log = Log(asked.out)
    # Processes are forked before the device is touched.
    tests = [] if asked.fixed else test_batches(asked.judged, asked.tokens // 2, asked.workers, asked.family)
    trained_s, done = store.progress(asked.out[0])
    total_s = asked.total or asked.seconds
    batches, feed = source(asked, done, trained_s / total_s, device)
    torch.manual_seed(asked.seed)
    torch.set_float32_matmul_precision("high")
    if device.type == "cpu":
        from vidpipe.engine import torchvision_on_cpu

        torchvision_on_cpu.install()
    model = TAUGHT[asked.family].new_model(Vocabulary())
    trainer = Trainer(model.to(device), device, asked)
    parts = (model, trainer.heads, trainer.optimiser)
    store.load(asked.out[0], *parts)
    trainer.network.refresh()
    trainer.steps = trainer.since = done
    log(
        setup_s=round(time.monotonic() - began, 1),
        parameters=sum(p.numel() for p in model.parameters()),
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        torch=torch.__version__,
        steps_before=done,
        trained_s=round(trained_s, 1),
        **{name: value for name, value in vars(asked).items() if name != "out"},
    )
    if not asked.eager:
        for batch in islice(batches, REHEARSED):
            trainer.rehearse(batch)
        trainer.judge(tests[:2])
        log(compiled_s=round(time.monotonic() - began, 1))
    start = logged = saved = judged = time.monotonic()
    for batch in batches:
        now = time.monotonic()
        ended = trainer.steps - done >= asked.steps if asked.steps else now - start >= asked.seconds
        progress = (trainer.steps - done) / asked.steps if asked.steps else (trained_s + now - start) / total_s
        if ended or (asked.wall and now - began >= asked.wall):
            break
        if feed is not None:
            feed.progress.value = progress
        trainer.step(batch, progress)
        if now - logged >= LOG_S:
            told = trainer.told()
            log(
                step=trainer.steps,
                trained_s=round(trained_s + now - start, 1),
                progress=round(progress, 3),
                steps_per_s=round((trainer.steps - trainer.since) / (now - logged), 2),
                waited_s=round(feed.waited_s, 1) if feed is not None else 0,
                memory_gib=round(torch.cuda.max_memory_allocated() / 2**30, 1) if device.type == "cuda" else 0,
                **told,
            )
            if not math.isfinite(told["loss"]):
                sys.exit("the loss is no number any more; go on from the last files with a smaller --rate")
            if feed is not None:
                feed.weigh(told["train"])
            trainer.forget()
            logged = now
        if now - judged >= JUDGE_S and tests:
            log(step=trainer.steps, test=trainer.judge(tests[:6]))
            judged = now
        if now - saved >= SAVE_S:
            store.save(asked.out, *parts, trained_s + now - start, trainer.steps, asked.family)
            saved = now
    store.save(asked.out, *parts, trained_s + time.monotonic() - start, trainer.steps, asked.family)
    if feed is not None:
        feed.stop()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16().float())
    trainer.network.refresh()
    final = trainer.judge(tests or [next(batches)])
    log(step=trainer.steps, final_bfloat16=final, all_s=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()
