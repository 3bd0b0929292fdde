"""Engines of one host as one: each in a process of its own, with devices and ports of its own.

    feed ─ submit ─▶ EngineGroup ═ shared memory ═▶ member process ─ engine ─ core process ─ GPU 0
                                 ═ shared memory ═▶ member process ─ engine ─ core process ─ GPU 1

Rows of one clip go to one engine as long as that has room: it has encoded the clip and its
prefix cache holds it. When an engine dies, the others finish what they have before the group says so: only
what was in the dead one is suspected of having killed it.
"""

from __future__ import annotations

import queue
import time
from collections import OrderedDict
from typing import Any

from vidpipe.engine.devices import environments_of
from vidpipe.engine.encoder_reports import together
from vidpipe.engine.interface import (
    NO_DEMANDS,
    Capabilities,
    Demands,
    Engine,
    EngineInput,
    Preparer,
    Refusal,
    Reply,
    WantedGraphs,
)
from vidpipe.engine.member import Member, Message
from vidpipe.errors import EngineError
from vidpipe.recipe.schema import EngineSection, Model

POLL_S = 0.02
STOP_S = 20.0
CLIPS_REMEMBERED = 4096


class EngineGroup:
    """See the module; an `Engine`.

    Args:
        single: One of the engines, not started: what is known of all.
        model: The recipe's model.
        settings: The recipe's engine section.
        checkpoint: Path or hub name of the checkpoint, resolved.
        demands: What else the run asks for.

    Raises:
        CapabilityError: not enough devices.
    """

    version: str
    capabilities: Capabilities
    preparer: Preparer
    batch_rows = 0
    kv_tokens: int | None = None
    steps = 0

    def __init__(
        self, single: Engine, model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS
    ) -> None:
        self.version, self.capabilities, self.preparer = single.version, single.capabilities, single.preparer
        self._environments = environments_of(settings)
        self._spec = (model, settings.model_copy(update={"data_parallel": 1}), checkpoint, demands)
        self._members: list[Member] = []
        self._inbox: queue.SimpleQueue[tuple[Member, Message]] = queue.SimpleQueue()
        self._member_of_clip: OrderedDict[str, Member] = OrderedDict()
        self._death: EngineError | None = None

    def start(self, graphs: WantedGraphs | None = None) -> None:
        """See `Engine.start`. All at once; where kernels are compiled, one compiles for all."""
        self._members = [
            Member(number, environment, self._inbox) for number, environment in enumerate(self._environments)
        ]
        for member in self._members:
            member.send("start", self._spec, graphs)
        while not all(member.ready for member in self._members):
            member, (kind, *values) = self._inbox.get()
            if kind != "ready":
                raise EngineError("engine_start", self._of(member, values[0]))
            member.ready = True
            batch_rows, kv_tokens = values
            member.batch_rows = batch_rows
            self.batch_rows += batch_rows
            if kv_tokens is not None:
                self.kv_tokens = (self.kv_tokens or 0) + kv_tokens

    def submit(self, engine_input: EngineInput) -> None:
        """See `Engine.submit`."""
        if self._death is not None and not any(member.in_flight for member in self._alive()):
            raise self._death
        member = self._choose(engine_input.clip)
        member.in_flight.add(engine_input.id)
        try:
            member.send("submit", engine_input)
        except OSError:
            return  # its end is on the way through the inbox

    def poll(self) -> list[Reply | Refusal]:
        """See `Engine.poll`. Once an engine is dead: waits for the others, then raises."""
        found = self._receive()
        while self._death is not None and any(member.in_flight for member in self._alive()):
            found += self._receive()
        if self._death is not None and not found:
            raise self._death
        return found

    def encoder_report(self) -> dict[str, Any] | None:
        """See `Engine.encoder_report`: of all engines together."""
        for member in self._members:
            member.send("report")
        reports: list[dict[str, Any] | None] = []
        while len(reports) < len(self._members):
            member, (kind, *values) = self._inbox.get()
            if kind == "report":
                reports.append(values[0])
            elif kind == "dead":
                raise EngineError("engine_dead", self._of(member, values[0]))
        return together(reports)

    def stop(self) -> None:
        """See `Engine.stop`."""
        for member in self._members:
            member.ask_to_stop()
        deadline_s = time.monotonic() + STOP_S
        for member in self._members:
            member.close(deadline_s)
        self._members = []

    def _receive(self) -> list[Reply | Refusal]:
        found: list[Reply | Refusal] = []
        timeout_s = POLL_S if any(member.in_flight for member in self._members) else 0.0
        while True:
            try:
                member, (kind, *values) = self._inbox.get(timeout=timeout_s) if timeout_s else self._inbox.get_nowait()
            except queue.Empty:
                return found
            timeout_s = 0.0
            if kind == "replies":
                found += values[0]
                member.in_flight -= {reply.id for reply in values[0]}
                self._note_progress(member)
            else:
                member.alive = False
                if self._death is None:
                    self._death = EngineError("engine_dead", self._of(member, values[0]))

    def _of(self, member: Member, message: str) -> str:
        """A member's message, naming it where it is one of several."""
        return message if len(self._members) == 1 else f"engine {member.number} of {len(self._members)}: {message}"

    def _note_progress(self, member: Member) -> None:
        """A step of the group is a step of each that has work: one that hangs must not hide behind the others."""
        member.progressed = True
        if all(other.progressed or not other.in_flight for other in self._members):
            self.steps += 1
            for other in self._members:
                other.progressed = False

    def _choose(self, clip: str) -> Member:
        """The engine that has the clip, unless it is full; else the one with the fewest rows."""
        member = self._member_of_clip.get(clip)
        if member is None or not member.alive or len(member.in_flight) >= 2 * member.batch_rows:
            member = min(self._alive() or self._members, key=lambda other: len(other.in_flight))
            self._member_of_clip[clip] = member
        self._member_of_clip.move_to_end(clip)
        if len(self._member_of_clip) > CLIPS_REMEMBERED:
            self._member_of_clip.popitem(last=False)
        return member

    def _alive(self) -> list[Member]:
        return [member for member in self._members if member.alive]
