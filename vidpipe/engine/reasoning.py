"""Does a checkpoint think aloud before it answers? Its chat template tells, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

from vidpipe.engine.checkpoint import file_of_hub

TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
LEAST_TOKENS = 256
"""Budget below which reasoning is not expected to reach its end; published settings of benchmarks have 16."""


def thinks_aloud(location: str) -> bool:
    """Whether the template's part that opens the model's turn speaks of `<think>`, as those of reasoning models do.

    Args:
        location: Folder of the checkpoint, or its name on the hub. What cannot be read thinks not.
    """
    for name in TEMPLATE_FILES:
        text = _read(location, name)
        if text and name.endswith(".json"):
            template = json.loads(text).get("chat_template")
            text = template if isinstance(template, str) else None
        if text:
            return "<think>" in text.rpartition("add_generation_prompt")[2]
    return False


def _read(location: str, name: str) -> str | None:
    path = Path(location) / name
    if not Path(location).is_dir():
        try:
            path = file_of_hub(location, name)
        except Exception:  # network, authorisation, no such file: this is a warning's evidence, not the run's
            return None
    return path.read_text(encoding="utf-8") if path.exists() else None


def budget_warning(location: str, max_tokens: int) -> str | None:
    """A sentence for a reasoning model that has too few tokens to come to its answer; None if it has enough."""
    if max_tokens >= LEAST_TOKENS or not thinks_aloud(location):
        return None
    return (
        f"warning: {location} thinks aloud, and generation.max_tokens is {max_tokens}: most replies will end before "
        "their answer. Give it some thousand tokens, and score with strip_reasoning: true."
    )
