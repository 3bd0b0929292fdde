"""What a run needs of an engine: requests in, replies out one at a time, matched by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from vidpipe.recipe.schema import EngineSection, Generation, Model

Message = dict[str, Any]
"""One turn in the form chat templates take: `{"role": ..., "content": [{"type": "text", "text": ...}, ...]}`."""


@dataclass(frozen=True)
class Video:
    """Frames for the engine, and what it must be told about them."""

    pixels: npt.NDArray[np.uint8]
    """[frames, height, width, 3], RGB."""
    metadata: Mapping[str, Any]
    """The family's `engine_metadata`."""
    processor_kwargs: Mapping[str, Any]
    """The family's `processor_kwargs`."""
    slot_word: str
    """The family's `slot_word`."""
    vision_word: str
    """The family's `vision_word`."""


@dataclass(frozen=True)
class Request:
    """One row, ready for the engine."""

    id: str
    messages: tuple[Message, ...]
    generation: Generation
    video: Video | None = None
    special_tokens: Literal["literal", "refuse"] = "literal"
    """What becomes of control words in the messages' texts."""


@dataclass(frozen=True)
class Reply:
    """The engine's answer to one request."""

    id: str
    text: str | None
    """None when the engine gave no completion at all."""
    finish_reason: str | None
    prompt_sha: str | None
    """SHA-256 over the prompt's token ids as little-endian int32, media tokens expanded."""
    tokens_in: int
    tokens_out: int
    vision_tokens_kept: int | None
    """Vision tokens that the language model really got; None if the engine cannot tell."""
    queue_s: float | None = None
    engine_s: float | None = None


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do on this machine."""

    pruning: frozenset[str] = field(default_factory=frozenset)
    """Pruning methods that give right results."""
    encoder_graphs: bool = False


class Engine(Protocol):
    """One engine. Not thread-safe; `poll` may block for one step."""

    version: str
    """Name and version, as output rows record it; known before `start`."""
    capabilities: Capabilities
    """Known before `start`."""

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str) -> None: ...

    def start(self) -> None:
        """Load the model.

        Raises:
            EngineError: `engine_start`.
        """

    def submit(self, request: Request) -> None:
        """Queue a request.

        Raises:
            RowError: this request cannot run; others are not touched.
            EngineError: `engine_dead`.
        """

    def poll(self) -> list[Reply]:
        """Replies that have become ready; empty when none has, without waiting for one.

        Raises:
            EngineError: `engine_dead`.
        """

    def stop(self) -> None:
        """Free what the engine holds. Idempotent."""
