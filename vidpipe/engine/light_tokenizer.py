"""A checkpoint's tokenizer and chat template without an engine: a tenth of a second instead of several.

Stands in for a Hugging Face tokenizer where prompts are told before or after a run
(`vidpipe plan`, `vidpipe report`). Source of the template's surroundings: transformers
`utils/chat_template_utils.py` (`_cached_compile_jinja_template`); a run's recorded hash of a prompt says
whether the two agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vidpipe.errors import CapabilityError
from vidpipe.extras import install


class LightTokenizer:
    """What `PromptBuilder` needs of a tokenizer.

    Args:
        folder: Of the checkpoint.

    Raises:
        CapabilityError: the folder lacks a file for it, or the `tokenizers` package (every engine brings it) is not
            installed.
    """

    def __init__(self, folder: Path) -> None:
        file = folder / "tokenizer.json"
        try:
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(file))
        except ImportError:
            raise CapabilityError(f"the package tokenizers is missing; install an engine: {install('cpu')}") from None
        except Exception as error:  # its errors are bare `Exception`s
            raise CapabilityError(f"{file} cannot be read: {error}") from None
        settings = _json(folder / "tokenizer_config.json")
        self.chat_template = _template(folder, settings)
        self.added_tokens_decoder: Mapping[int, Any] = {
            place: _Word(token) for place, token in self._tokenizer.get_added_tokens_decoder().items()
        }
        self._words = {name: _text(settings[name]) for name in _WORDS if settings.get(name)}
        self.all_special_tokens = list(self._words.values())

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, Any]], *, chat_template: str, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        """The chat as one text; `tokenize` must be False.

        Raises:
            TemplateError: the template refuses the chat.
        """
        assert not tokenize
        return _compiled(chat_template).render(
            messages=messages, tools=None, documents=None, add_generation_prompt=add_generation_prompt, **self._words
        )

    def convert_tokens_to_ids(self, word: str) -> int | None:
        """Id of a token; None if there is none of that word."""
        found: int | None = self._tokenizer.token_to_id(word)
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, control words included."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def __call__(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> dict[str, list[int]]:
        """Ids of a text; `split_special_tokens` takes control words in it for plain characters."""
        self._tokenizer.encode_special_tokens = split_special_tokens
        return {"input_ids": self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}


class _Word:
    """An added token whose text is `str` of it."""

    def __init__(self, token: Any) -> None:
        self.special: bool = token.special
        self._text: str = token.content

    def __str__(self) -> str:
        return self._text


_WORDS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def _text(word: Any) -> str:
    return str(word["content"] if isinstance(word, dict) else word)


def _template(folder: Path, settings: Mapping[str, Any]) -> str:
    """The chat template, from where transformers looks for it first."""
    file = folder / "chat_template.jinja"
    if file.exists():
        return file.read_text(encoding="utf-8")
    found = _json(folder / "chat_template.json").get("chat_template") or settings.get("chat_template")
    if isinstance(found, list):  # several by name
        found = next((entry["template"] for entry in found if entry.get("name") == "default"), None)
    if not isinstance(found, str):
        raise CapabilityError(f"{folder} has no chat template; use an instruction-tuned checkpoint.")
    return found


def _json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CapabilityError(f"{file} is not JSON: {error}") from None
    return values if isinstance(values, dict) else {}


@lru_cache(maxsize=4)
def _compiled(source: str) -> Template:
    return _environment().from_string(source)


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = datetime.now().strftime
    return environment
