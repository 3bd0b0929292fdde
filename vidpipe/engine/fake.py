"""A scripted engine: no model, no GPU, replies and failures as a script says. For tests.

`engine.args` is the script: `{"text": "yes", "seconds_per_reply": 0.01, ...}`; see `Script`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

from pydantic import Field, ValidationError

from vidpipe.engine.interface import (
    NO_DEMANDS,
    Capabilities,
    CodecVideo,
    Demands,
    EngineInput,
    Prepared,
    Refusal,
    Reply,
    Request,
    WantedGraphs,
)
from vidpipe.errors import CapabilityError, EngineError, RowError
from vidpipe.recipe.schema import EngineSection, Model, Section


class Script(Section):
    """What the fake engine does; request ids are row ids."""

    text: str = "fake"
    """Reply to every request that `texts` does not name."""
    texts: dict[str, str | None] = Field(default_factory=dict)
    """Replies by id; null is a request that ends without any completion."""
    sampled: dict[str, str] = Field(default_factory=dict)
    """Replies by id above temperature 0; `{seed}` stands for the seed."""
    lengths: list[str] = Field(default_factory=list)
    """Ids whose reply was cut by the token limit. Others are cut where they have more words than `max_tokens`."""
    most_frames: int | None = None
    """Frames beyond which `submit` refuses a request (`prompt_too_long`)."""
    refuse: dict[str, str] = Field(default_factory=dict)
    """Ids that `submit` refuses, with the error kind."""
    order: list[str] = Field(default_factory=list)
    """Ids in the order in which replies come, an id twice for a reply given twice; others follow as submitted."""
    die_after: int | None = None
    """Replies after which every call raises."""
    die_on: list[str] = Field(default_factory=list)
    """Ids at which the engine dies."""
    crash_on: list[str] = Field(default_factory=list)
    """Ids at which this process kills itself, as a crash in native code would."""
    hang_after: int | None = None
    """Replies after which `poll` never returns."""
    deaf: bool = False
    """Whether that hang is like one in compiled code, which no signal handler interrupts."""
    refuse_same_media: bool = False
    """Whether a second request on one clip is refused, as a broken media cache does."""
    fail_start: bool = False
    """Whether `start` raises."""
    seconds_per_reply: float = 0.0
    """Time that one reply takes."""
    seconds_to_start: float = 0.0
    """Time that `start` takes."""
    batch_rows: int = 32
    """See `Engine.batch_rows`."""
    kv_tokens: int | None = None
    """See `Engine.kv_tokens`."""


class FakePreparer:
    """The payload of an input is its prompt, and the pixels of its media as they are."""

    def warm_up(self) -> None:
        """See `Preparer.warm_up`."""

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """See `Preparer.prepare`."""
        media = requests[0].media
        pixels = tuple(medium.pixels for medium in media if not isinstance(medium, CodecVideo))
        assert len(pixels) == len(media), "the codec is refused with this engine"
        prompts = [json.dumps(request.messages).encode() for request in requests]
        clip = " ".join(identities)
        inputs = (
            EngineInput(request.id, request.generation, len(prompt), (prompt, pixels), clip=clip or request.id)
            for request, prompt in zip(requests, prompts, strict=True)
        )
        return Prepared(tuple(inputs), sum(medium.nbytes for medium in pixels))


class FakeEngine:
    """See the module."""

    version = "fake 1"
    capabilities = Capabilities()
    preparer = FakePreparer()

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> None:
        try:
            self._script = Script.model_validate(settings.args)
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, one["loc"])) for one in error.errors())
            raise CapabilityError(
                f"engine.args: the scripted engine of the tests knows its own arguments only, found {wrong}. Type "
                "--set engine.args={} to leave out those of the recipe."
            ) from None
        self._waiting: dict[str, EngineInput] = {}
        self._order = list(self._script.order)
        self._last: dict[str, Reply] = {}
        self.batch_rows, self.kv_tokens = self._script.batch_rows, self._script.kv_tokens
        self._refusals: list[Reply | Refusal] = []
        self.steps = 0
        self._media: set[str] = set()

    def start(self, graphs: WantedGraphs | None = None) -> None:
        """See `Engine.start`."""
        time.sleep(self._script.seconds_to_start)
        if self._script.fail_start:
            raise EngineError("engine_start", "the script says so")

    def submit(self, engine_input: EngineInput) -> None:
        """See `Engine.submit`."""
        self._raise_if_dead()
        if engine_input.id in self._script.refuse:
            kind: Any = self._script.refuse[engine_input.id]
            self._refusals.append(Refusal(engine_input.id, RowError(kind, f"the script refuses {engine_input.id}")))
            return
        frames = sum(len(pixels) for pixels in engine_input.payload[1])
        if self._script.most_frames is not None and frames > self._script.most_frames:
            error = RowError("prompt_too_long", f"{frames} frames are more than {self._script.most_frames}")
            self._refusals.append(Refusal(engine_input.id, error))
            return
        if self._script.refuse_same_media:
            media = hashlib.sha256(b"".join(engine_input.payload[1])).hexdigest()
            if media in self._media:
                error = RowError("bad_value", "AssertionError: a cached item is missing")
                self._refusals.append(Refusal(engine_input.id, error))
                return
            self._media.add(media)
        self._waiting[engine_input.id] = engine_input

    def poll(self) -> list[Reply | Refusal]:
        """See `Engine.poll`: one reply a call."""
        self._raise_if_dead()
        if self._refusals:
            refusals, self._refusals = self._refusals, []
            return refusals
        if self._script.hang_after is not None and self.steps >= self._script.hang_after:
            self._hang()
        while self._order and self._order[0] in self._last:
            return [self._last[self._order.pop(0)]]
        if self._order and self._order[0] in self._waiting:
            request = self._waiting.pop(self._order.pop(0))
        elif self._waiting:
            request = self._waiting.pop(next(iter(self._waiting)))
        else:
            return []
        if request.id in self._script.die_on:
            raise EngineError("engine_dead", f"the script says so, at {request.id}")
        if request.id in self._script.crash_on:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self._script.seconds_per_reply)
        self.steps += 1
        reply = self._last[request.id] = self._reply(request)
        return [reply]

    def encoder_report(self) -> None:
        """See `Engine.encoder_report`: there is no encoder."""

    def stop(self) -> None:
        """See `Engine.stop`."""

    def _hang(self) -> None:
        if self._script.deaf:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        while True:
            time.sleep(60)

    def _raise_if_dead(self) -> None:
        if self._script.die_after is not None and self.steps >= self._script.die_after:
            raise EngineError("engine_dead", "the script says so")

    def _reply(self, request: EngineInput) -> Reply:
        text = self._script.texts.get(request.id, self._script.text)
        prompt, _ = request.payload
        if request.generation.temperature > 0 and request.id in self._script.sampled:
            text = self._script.sampled[request.id].replace("{seed}", str(request.generation.seed))
        words = [] if text is None else text.split()
        cut = request.id in self._script.lengths
        if len(words) > request.generation.max_tokens:
            words, cut = words[: request.generation.max_tokens], True
            text = " ".join(words)
        reason = None if text is None else "length" if cut else "stop"
        tokens_out = len(words)
        return Reply(
            request.id, text, reason, hashlib.sha256(prompt).hexdigest(), request.tokens, tokens_out, None, 0.0, 0.0
        )
