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


DOCUMENTS: dict[str, type[Document]] = {"check": CheckDocument, "merge": MergeDocument}
"""Command -> its document."""
