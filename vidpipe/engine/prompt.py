"""From chat messages to prompt token ids, so that user text never becomes a control token.

A question with `<|im_end|>` or `<|video_pad|>` in it, tokenised the usual way, closes
the turn or asks for a second video. Here such a word is either refused or tokenised as
the plain characters that it is; the template's own control words stay what they are.
Prompts without such words get exactly the ids that `apply_chat_template` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from vidpipe.engine.interface import Message
from vidpipe.errors import RowError
from vidpipe.models import moss_vl

STAND_INS = {moss_vl.SLOT: moss_vl.SLOT_TOKEN}
"""Words of chat templates that need be no tokens, and those that processors put in their place before tokenising."""
GUARDS = "\ufdd0\ufdd1\ufdd2\ufdd3"  # Unicode noncharacters: never part of a real text


class PromptBuilder:
    """Renders one checkpoint's chat template.

    Args:
        tokenizer: A Hugging Face tokenizer.
        chat_template: The Jinja source that the engine itself would use.
    """

    def __init__(self, tokenizer: Any, chat_template: str) -> None:
        self._tokenizer = tokenizer
        self._other_words = {
            word: other for word, other in STAND_INS.items() if tokenizer.convert_tokens_to_ids(word) is None
        }
        for word, other in self._other_words.items():
            chat_template = chat_template.replace(word, other)
        self._template = chat_template
        special = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
        self._special = sorted({*special, *tokenizer.all_special_tokens}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._special)) or r"(?!)")

    def token_ids(self, messages: Sequence[Message], special_tokens: Literal["literal", "refuse"]) -> list[int]:
        """Ids of the whole prompt, one media token a media part, ready to be answered.

        Behind a last turn of the assistant, which begins the answer, the prompt stands open.

        Raises:
            RowError: `special_token`, when a text holds a control word and that is refused.
        """
        if not self._has_control_words(_texts(messages), special_tokens):
            return self._encode(self._render(messages), literal=False)
        everything = "".join(_texts(messages))
        guard = next(character for character in GUARDS if character not in everything)
        rendered = self._render([self._guarded(message, guard) for message in messages])
        ids: list[int] = []
        end = 0
        for control in self._pattern.finditer(rendered):
            ids += self._encode(rendered[end : control.start()].replace(guard, ""), literal=True)
            ids.append(self._tokenizer.convert_tokens_to_ids(control.group()))
            end = control.end()
        return ids + self._encode(rendered[end:].replace(guard, ""), literal=True)

    def slot_word(self, word: str) -> str:
        """The token that stands in prompts where the chat template writes `word`, a family's `slot_word`."""
        return self._other_words.get(word, word)

    def plain_ids(self, text: str, special_tokens: Literal["literal", "refuse"]) -> list[int]:
        """Ids of a text by itself, control words in it taken as plain characters.

        Raises:
            RowError: see `token_ids`.
        """
        return self._encode(text, literal=self._has_control_words([text], special_tokens))

    def _has_control_words(self, texts: Iterable[str], special_tokens: Literal["literal", "refuse"]) -> bool:
        """Whether there are control words in texts, if those are not refused."""
        found = [word for text in texts for word in self._pattern.findall(text)]
        if found and special_tokens == "refuse":
            raise RowError(
                "special_token",
                f"the text holds the control word {found[0]}. Reword it, or set special_tokens: literal.",
            )
        return bool(found)

    def _guarded(self, message: Message, guard: str) -> Message:
        """A copy whose texts hold no control word: each is split by a guard character."""

        def split(word: re.Match[str]) -> str:
            return word.group()[0] + guard + word.group()[1:]

        if isinstance(message["content"], str):
            return {**message, "content": self._pattern.sub(split, message["content"])}
        parts = [
            {**part, "text": self._pattern.sub(split, part["text"])} if part["type"] == "text" else part
            for part in message["content"]
        ]
        return {**message, "content": parts}

    def _render(self, messages: Sequence[Message]) -> str:
        turns = list(messages)
        # Not `continue_final_message`: it fails where a template strips texts, and drops what the template opens an
        # answer with.
        prefill = turns.pop()["content"] if turns[-1]["role"] == "assistant" else ""
        rendered: str = self._tokenizer.apply_chat_template(
            turns, chat_template=self._template, tokenize=False, add_generation_prompt=True
        )
        return rendered + prefill

    def _encode(self, text: str, *, literal: bool) -> list[int]:
        if not text:
            return []
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, split_special_tokens=literal)["input_ids"]
        return ids


def _texts(messages: Iterable[Message]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        if isinstance(message["content"], str):
            texts.append(message["content"])
        else:
            texts += [part["text"] for part in message["content"] if part["type"] == "text"]
    return texts
