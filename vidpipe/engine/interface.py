"""What a run needs of an engine: requests in, replies out one at a time, matched by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from vidpipe.errors import RowError
from vidpipe.plan.graph_packing import Graphs
from vidpipe.recipe.schema import EngineSection, Generation, Model, Pruning

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
    texts_behind: tuple[str, ...] = ()
    """Plain text behind each of the places that hold vision tokens, in order; empty: nothing is put in between."""

    @property
    def modality(self) -> Literal["video"]:
        """As what the engine takes it, and the type of its mark in the messages."""
        return "video"


@dataclass(frozen=True)
class Image:
    """A still image for the engine."""

    pixels: npt.NDArray[np.uint8]
    """[height, width, 3], RGB."""
    slot_word: str
    """Control word that the chat template writes where the image belongs."""
    vision_word: str
    """Control word that each vision token is in the finished prompt."""

    @property
    def modality(self) -> Literal["image"]:
        """As what the engine takes it, and the type of its mark in the messages."""
        return "image"


@dataclass(frozen=True)
class CodecVideo:
    """A video file of whose codec stream the checkpoint's own code makes canvases."""

    path: str
    """Absolute, without links."""
    times_s: npt.NDArray[np.float64]
    """What the model is told as the time of each frame of the file, [frames], in seconds."""
    merge: int
    """Patches along each side that become one vision token."""
    processor_kwargs: Mapping[str, Any]
    slot_word: str
    """The family's `slot_word`."""
    vision_word: str
    """The family's `vision_word`."""

    @property
    def modality(self) -> Literal["video"]:
        """As what the engine takes it, and the type of its mark in the messages."""
        return "video"


Medium = Video | Image | CodecVideo


@dataclass(frozen=True)
class Request:
    """One row as it is asked."""

    id: str
    messages: tuple[Message, ...]
    generation: Generation
    media: tuple[Medium, ...] = ()
    """Those of each modality in the order of their marks in the messages."""
    special_tokens: Literal["literal", "refuse"] = "literal"
    """What becomes of control words in the messages' texts."""


@dataclass(frozen=True)
class EngineInput:
    """One row as the engine takes it. Crosses processes; rows of one clip share their media items."""

    id: str
    generation: Generation
    tokens: int
    """Prompt tokens, media expanded."""
    payload: Any
    """The engine's own form."""
    vision_token_ids: tuple[int, ...] = ()
    """The tokens that stand for vision in the expanded prompt; none without media."""
    clip: str = ""
    """Equal for rows that share media, the row's id without media; of several engines one is to get them all."""


@dataclass(frozen=True)
class Canvases:
    """What the checkpoint's code made of a `CodecVideo`."""

    count: int
    size_wh: tuple[int, int]
    """Width and height of a canvas, in pixels."""
    source_frames: tuple[int, ...]
    """The file's frame behind each run of patches, in the order of the prompt."""
    vision_tokens: int
    sha: str
    """SHA-256 over the canvases' patches as the encoder gets them."""


@dataclass(frozen=True)
class Prepared:
    """The rows of one clip, prepared together."""

    inputs: tuple[EngineInput | RowError, ...]
    """For each request in order: what `Engine.submit` takes, or why it cannot run."""
    media_bytes: int
    """Bytes of the media items that they share."""
    canvases: Canvases | None = None
    """Of their `CodecVideo`, if they have one."""


class Preparer(Protocol):
    """Turns requests into engine inputs, in whichever process that suits. Picklable."""

    def warm_up(self) -> None:
        """Load what `prepare` needs; a worker process calls it once, before its first clip.

        Raises:
            EngineError: `engine_start`.
        """

    def prepare(self, requests: Sequence[Request], identities: Sequence[str]) -> Prepared:
        """Prepare the rows of one clip; the media only once.

        Args:
            requests: Rows that share all their `media` (or have none).
            identities: A name for each of them, equal only for equal pixels, metadata and processor arguments, in
                all processes.

        Raises:
            MediaError: the codec cannot take their `CodecVideo`.
        """


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
class Refusal:
    """Why the engine would not run one request; others are not touched."""

    id: str
    error: RowError


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do on this machine."""

    prepare_in_workers: bool = True
    """Whether preparing in worker processes pays here; the default of `feed.prepare`."""


@dataclass(frozen=True)
class WantedGraphs:
    """CUDA graphs for the vision encoder."""

    graphs: Graphs
    always: bool
    """Whether they are wanted wherever they fit; else where a measurement at the start finds them faster."""


@dataclass(frozen=True)
class Demands:
    """What a run asks of its engine beside the recipe's `model` and `engine`."""

    pruning: Pruning | None = None
    architectures: tuple[str, ...] = ()
    """The words in the checkpoint's `architectures`."""
    most_videos: int = 1
    """The most videos that a request will have."""
    most_images: int = 0
    """The most still images that a request will have."""
    graphs: WantedGraphs | None = None
    """Graphs for the vision encoder; None without any."""


NO_DEMANDS = Demands()


class Engine(Protocol):
    """One engine. Not thread-safe; `poll` may block for one step."""

    version: str
    """Name and version, as output rows record it; known before `start`."""
    capabilities: Capabilities
    """Known before `start`."""
    batch_rows: int
    """Requests that it runs at a time; known after `start`."""
    kv_tokens: int | None
    """Tokens that its KV cache holds; known after `start`, None if it does not say."""
    steps: int
    """Grows whenever it has computed something; a watchdog looks at it."""

    @property
    def preparer(self) -> Preparer:
        """Makes its inputs. Known before `start`; in this process it works only after it."""

    def __init__(self, model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> None:
        """Start nothing yet.

        Args:
            model: The recipe's.
            settings: The recipe's.
            checkpoint: Folder, or name on the hub.
            demands: What else the run asks for.
        """

    def start(self, graphs: WantedGraphs | None = None) -> None:
        """Load the model.

        Args:
            graphs: Of the vision encoder; planned later than the engine is made.

        Raises:
            EngineError: `engine_start`.
        """

    def submit(self, engine_input: EngineInput) -> None:
        """Queue what `preparer` made of a request.

        Raises:
            EngineError: `engine_dead`.
        """

    def poll(self) -> list[Reply | Refusal]:
        """What has become of requests since the last call; empty when nothing has.

        Raises:
            EngineError: `engine_dead`.
        """

    def encoder_report(self) -> dict[str, Any] | None:
        """What the vision encoder did since `start`, by the engine's own counters; None where nothing counts.

        Raises:
            EngineError: `engine_dead`.
        """

    def stop(self) -> None:
        """Free what the engine holds. Idempotent."""
