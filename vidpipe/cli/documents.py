"""The `--json` documents, as models; their JSON schemas are committed under docs/schema and are a contract."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """Base of all documents."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


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
    path: str
    """The merged file."""


class FamilyDocument(Document):
    """One model family."""

    family: str
    """Its name, as `model.family` takes it."""
    model_types: list[str]
    """`model_type` words in a checkpoint's config.json that mean it."""
    engine: str
    """The engine that runs it."""
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
    notes: list[str]
    """What an ability is worth here: what vidpipe refuses, and where the engine differs from what is written."""


class ModelsDocument(Document):
    """`vidpipe models --json`."""

    families: list[FamilyDocument]
    """In alphabetical order of their names."""


DOCUMENTS: dict[str, type[Document]] = {"check": CheckDocument, "merge": MergeDocument, "models": ModelsDocument}
"""Command -> its document."""
