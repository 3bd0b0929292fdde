"""How many tokens texts have, without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vidpipe.engine.interface import Message


class TextTokens:
    """Counts by the checkpoint's own tokenizer.

    Args:
        location: Folder of the checkpoint. One that has no `tokenizer.json`, a name on the hub, and a machine
            without the `tokenizers` package (every engine brings it) count nothing.
    """

    def __init__(self, location: str) -> None:
        self._file = Path(location) / "tokenizer.json"
        self._tokenizer: Any = None

    def at_least(self, messages: Sequence[Message], room: int) -> int:
        """Tokens of the texts of a prompt, the chat template's own left out; 0 if they are at most `room` bytes.

        No token is shorter than a byte, so nearly every prompt needs no counting.
        """
        texts = list(_texts(messages))
        if sum(len(text.encode(errors="replace")) for text in texts) <= room or not self._load():
            return 0
        return sum(len(self._tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)

    def _load(self) -> bool:
        if self._tokenizer is None and self._file.exists():
            try:
                from tokenizers import Tokenizer
            except ImportError:
                return False
            self._tokenizer = Tokenizer.from_file(str(self._file))
        return self._tokenizer is not None


def _texts(messages: Sequence[Message]) -> Iterable[str]:
    for message in messages:
        if isinstance(message["content"], str):
            yield message["content"]
            continue
        yield from (part["text"] for part in message["content"] if part["type"] == "text")
