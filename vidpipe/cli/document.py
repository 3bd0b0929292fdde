"""What all `--json` documents have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """Base of all documents."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
