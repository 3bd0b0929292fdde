"""A row's whole prompt without its engine: what the template writes, with the family's words for the media in it.

Tokens are counted, and hashed as rows record them, so that a prompt told after a run can be
held against the one that the model got.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from vidpipe.engine.interface import Message
from vidpipe.engine.light_tokenizer import LightTokenizer
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.errors import CapabilityError, RowError
from vidpipe.models.prompt import Span, Told


@dataclass(frozen=True)
class Retold:
    """A prompt."""

    ids: tuple[int, ...]
    pieces: tuple[tuple[int, ...] | int, ...]
    """In order: ids of the texts between media, and places of media among those given."""

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.ids)

    @property
    def sha(self) -> str:
        """SHA-256 over the token ids as little-endian int32, as `prompt_sha` of rows."""
        return hashlib.sha256(array("i", self.ids).tobytes()).hexdigest()


class Teller:
    """Tells the prompts of one checkpoint.

    Args:
        location: Its folder, or name on the hub.

    Raises:
        CapabilityError: it has no tokenizer or template that can be read here.
    """

    def __init__(self, location: str) -> None:
        folder = Path(location) if Path(location).is_dir() else _on_this_machine(location)
        self._tokenizer = LightTokenizer(folder)
        self._prompts = PromptBuilder(self._tokenizer, self._tokenizer.chat_template)
        self._plain = lru_cache(maxsize=65536)(self._encode)  # the same times come again and again

    def tell(
        self, messages: Sequence[Message], media: Sequence[Told], special_tokens: Literal["literal", "refuse"]
    ) -> Retold:
        """The prompt of a row.

        Args:
            messages: As the row asks.
            media: Those of each modality in the order of their marks in the messages.
            special_tokens: The recipe's.

        Raises:
            RowError: a control word that is refused, or other slots in the prompt than media.
            CapabilityError: the template cannot be rendered.
        """
        try:
            ids = self._prompts.token_ids(messages, special_tokens)
        except RowError:
            raise
        except Exception as error:  # a template of somebody's
            raise CapabilityError(f"the chat template fails: {error}") from None
        waiting: dict[int, list[int]] = {}
        for place, medium in enumerate(media):
            waiting.setdefault(self._id(self._prompts.slot_word(medium.slot_word)), []).append(place)
        made: list[int] = []
        pieces: list[tuple[int, ...] | int] = []
        begin = 0
        for place, token in enumerate(ids):
            if not waiting.get(token):
                continue
            which = waiting[token].pop(0)
            spans = media[which].spans
            # Some families' words for a video include the ones that the template writes around its slot.
            around = int(self._is(ids, place - 1, spans[0]) and self._is(ids, place + 1, spans[-1]))
            head = ids[begin : place - around]
            made += head
            pieces += [tuple(head), which]
            for span in spans:
                made += self._plain(span.text) if span.times is None else [self._id(span.text)] * span.times
            begin = place + 1 + around
        if any(waiting.values()):
            raise RowError("bad_value", "the prompt has fewer places for media than the row has media.")
        made += ids[begin:]
        pieces.append(tuple(ids[begin:]))
        return Retold(tuple(made), tuple(pieces))

    def texts(self, told: Retold) -> list[str | int]:
        """The pieces of a prompt with texts, control words included, in place of ids."""
        texts = (piece if isinstance(piece, int) else self._tokenizer.decode(piece) for piece in told.pieces)
        return [text for text in texts if text != ""]

    def _is(self, ids: Sequence[int], place: int, span: Span) -> bool:
        return 0 <= place < len(ids) and span.times == 1 and ids[place] == self._id(span.text)

    def _id(self, word: str) -> int:
        found = self._tokenizer.convert_tokens_to_ids(word)
        if found is None:
            raise CapabilityError(f"the checkpoint's tokenizer has no token {word}.")
        return found

    def _encode(self, text: str) -> list[int]:
        return self._prompts.plain_ids(text, "literal")


def _on_this_machine(name: str) -> Path:
    """Folder of a checkpoint of the hub that has been fetched before; nothing is fetched now."""
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, local_files_only=True))
    except Exception as error:
        raise CapabilityError(f"{name} is not on this machine: {error}") from None
