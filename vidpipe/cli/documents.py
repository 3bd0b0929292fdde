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
    missing: list[str]
    """Some of the ids that have no row yet."""
    path: str
    """The merged file."""


class WorkerDocument(Document):
    """A process at work on a run."""

    host: str
    """Its host."""
    pid: int
    """Its process number there."""
    shards: list[int]
    """Shards that it holds."""
    heartbeat_age_s: float
    """Seconds since its last sign of life."""


class StatusDocument(Document):
    """`vidpipe status --json`."""

    rows: int
    """Rows of the plan."""
    recorded: int
    """Rows that are recorded."""
    statuses: dict[str, int]
    """Recorded rows by status."""
    shards: int
    """Shards of the plan."""
    shards_done: int
    """Shards that are whole and published."""
    workers: list[WorkerDocument]
    """Processes at work."""
    rows_per_s: float | None
    """Mean rate since the run began."""
    seconds_left: float | None
    """At that rate."""


DOCUMENTS: dict[str, type[Document]] = {"check": CheckDocument, "merge": MergeDocument, "status": StatusDocument}
"""Command -> its document."""
