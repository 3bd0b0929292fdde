"""The `--json` documents, as models; their JSON schemas are committed under docs/schema and are a contract."""

from __future__ import annotations

from typing import Any, Literal

from vidpipe.cli.document import Document
from vidpipe.cli.documents_of_plans import PlanDocument
from vidpipe.cli.documents_of_progress import ProgressDocument, StatusDocument
from vidpipe.cli.documents_of_scores import CompareDocument, ImportDocument, ScoreDocument


class FaultDocument(Document):
    """One thing that is wrong with a manifest."""

    kind: str
    """Stable word for the kind of fault."""
    line: int | None
    """Line of the file, or row of a Parquet file, from 1."""
    id: str | None
    """Id of the row, where it has one."""
    message: str
    """What is wrong and what to do."""


class CheckDocument(Document):
    """`vidpipe check --json`."""

    rows: int
    """Rows of the manifest."""
    faults: list[FaultDocument]
    """In file order."""


class MergeDocument(Document):
    """`vidpipe merge --json`."""

    rows: int
    """Rows in the merged file."""
    expected: int
    """Rows that the manifests have."""
    partial: bool
    """Whether rows are missing."""
    missing: list[str]
    """Some of the ids that have no row yet."""
    path: str
    """The merged file."""


class ReportDocument(Document):
    """`vidpipe report --json`."""

    path: str
    """The page."""
    rows: int
    """Rows on it."""
    of_rows: int
    """Rows that the run has recorded."""
    clips_with_pictures: int
    """Clips whose frames are on it."""
    bytes: int
    """Size of the page."""
    notes: list[str]
    """What is not on it, and why."""


class ProbeError(Document):
    """Why a file cannot be shown to a model."""

    kind: str
    """Stable word, as in the output column `error_kind`."""
    message: str
    """What is wrong, where, what was found, and what to do."""


class ProbeDocument(Document):
    """`vidpipe probe --json` for one file; for several files it is a list of these."""

    file: str
    """The name as given; a `file://` URI, percent-encoded, when the name is not UTF-8."""
    outcome: Literal["ok", "ok_partial", "error"]
    """`ok_partial`: some frames are cut off or damaged."""
    error: ProbeError | None = None
    """Set when the outcome is `error`; the fields below are then null."""
    stream_index: int | None = None
    """Which stream of the file is the video."""
    codec: str | None = None
    """FFmpeg's name of the codec."""
    display_wh: tuple[int, int] | None = None
    """Width and height after rotation."""
    frames: int | None = None
    """Frames that the file shows."""
    times_s: list[float] | None = None
    """With --timeline: when each frame is shown, in seconds, as the file states it."""
    duration_s: float | None = None
    """From the start of the first frame to the end of the last one."""
    average_fps: float | None = None
    """Frames a second over the whole file."""
    variable_rate: bool | None = None
    """Whether frames come at varying distances."""
    rotation_deg: int | None = None
    """Clockwise turn that has been taken into account: 0, 90, 180 or 270."""
    mirrored: bool | None = None
    """Whether the picture is mirrored left-right, before the turn."""
    notes: list[str] = []  # noqa: RUF012 (pydantic gives each document its own)
    """What else is to know, each beginning with a word for its sort."""


class FamilyDocument(Document):
    """One model family."""

    family: str
    """Its name, as `model.family` takes it."""
    model_types: list[str]
    """`model_type` words in a checkpoint's config.json that mean it."""
    engine: str
    """The engine that runs it; `engine.name` where a recipe leaves it out."""
    other_engines: list[str]
    """Engines that run it too, without what is said of pruning and encoder graphs below."""
    engine_version: str | None
    """The installed engine that was asked for the abilities below; null where it is not installed: then as written."""
    sampling_rules: dict[str, list[str]]
    """Index rule -> the keys of `sampling` that it has; the first is the default."""
    times_in: str
    """Where the model reads times: `prompt`, or `pixels` for drawn ones."""
    frames_multiple: int
    """Frames come in whole multiples of this."""
    pruning: list[str]
    """Pruning methods of the model class."""
    encoder_graphs: list[str]
    """Modalities whose encoder can run as CUDA graphs."""
    encoder_data_parallel: bool
    """Whether the encoder can be shared out by items (`mm_encoder_tp_mode: data`)."""
    needs_remote_code: bool
    """Whether the checkpoint's own Python code must be allowed for videos."""
    rows: list[str]
    """What a row may show beside one video or text only: of `images`, `several videos`, `subtitles`, `codec video`."""
    notes: list[str]
    """What an ability is worth here: what vidpipe refuses, and where the engine differs from what is written."""


class TokensDocument(Document):
    """Vision tokens of one clip."""

    asked: int
    """By the family's rule, before pruning."""
    kept: int
    """What the language model gets."""


class PromptPiece(Document):
    """A piece of plain text in the prompt, or one control token some times over."""

    text: str
    """The text, or the control token's word."""
    times: int | None
    """How often the control token stands there; null for plain text."""


class PrunedDocument(Document):
    """What pruning would keep."""

    method: str
    """Pruning method."""
    rate: float
    """Share of tokens to drop."""
    kept_per_step: list[int]
    """Tokens kept of each temporal patch."""
    scores: str
    """Where the scores come from."""


class FramesDocument(Document):
    """`vidpipe frames --json`."""

    file: str
    """The video file."""
    family: str
    """Whose rules hold."""
    sampling: dict[str, Any]
    """The `sampling` section with every default filled in."""
    outcome: str
    """`ok`, or `ok_partial` where frames are missing."""
    frames_missing: int
    """Frames that the file lacks, and asked ones that do not decode."""
    notes: list[str]
    """What is odd about the file."""
    frames: int
    """Frames that the model sees."""
    file_frames: int
    """Frames that the file has, or pictures in the folder."""
    indices: list[int]
    """Their numbers in the file, from 0; a frame shown twice stands twice."""
    times_s: list[float]
    """Their presentation times in the file."""
    told_times_s: list[float]
    """Their times as the engine is told, from the clip's start."""
    times_in: str
    """Where the model reads times: `prompt`, or `pixels` for drawn ones."""
    time_texts: list[str]
    """What it reads, one for each frame or each pair of frames."""
    source_wh: tuple[int, int]
    """Width and height of the decoded frames, in pixels."""
    size_wh: tuple[int, int]
    """Width and height before the model, after its resize rule."""
    grid_thw: tuple[int, int, int]
    """Patches along time, height and width."""
    vision_tokens: TokensDocument
    """Tokens for the frames (Moss-VL: slots of the encoder's cache)."""
    prompt: list[PromptPiece]
    """What stands in the prompt for the video, before pruning."""
    pruning: PrunedDocument | None
    """Preview of pruning, where asked for."""
    sheet: str | None
    """The contact sheet, where asked for."""


class ModelsDocument(Document):
    """`vidpipe models --json`."""

    families: list[FamilyDocument]
    """In alphabetical order of their names."""


class FindingDocument(Document):
    """One thing that was looked at."""

    about: str
    """What it is."""
    level: Literal["ok", "warning", "error"]
    """`error`: a run cannot work; `warning`: it may, or will be slow."""
    found: str
    """What is there."""
    advice: str | None
    """What to type or change; null where all is well."""


class DoctorDocument(Document):
    """`vidpipe doctor --json`."""

    ready: bool
    """Whether nothing stands in a run's way."""
    findings: list[FindingDocument]
    """In the order in which they were looked at."""


DOCUMENTS: dict[str, type[Document]] = {
    "check": CheckDocument,
    "compare": CompareDocument,
    "doctor": DoctorDocument,
    "frames": FramesDocument,
    "import": ImportDocument,
    "merge": MergeDocument,
    "models": ModelsDocument,
    "plan": PlanDocument,
    "probe": ProbeDocument,
    "progress": ProgressDocument,
    "report": ReportDocument,
    "score": ScoreDocument,
    "status": StatusDocument,
}
"""Command -> its document; `progress` is a line of `run --progress jsonl`."""
