"""Secrets taken out of what is recorded or printed. Pure, but for the environment that it looks at once.

Clips come from URLs that carry credentials (`https://user:password@host/`, presigned queries of
S3, GCS, Azure and CDNs), and tokens stand in the environment. Whatever leaves a run for a file or a
terminal goes through `redact`; what goes to a server or to the model does not.

As a program this file is the filter in front of the file that an engine prints to. It imports the
standard library only, and starts in 20 ms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache

HIDDEN = "***"
SHORTEST = 8
"""Characters of a value in the environment from which on it is looked for; shorter ones are words like `true`."""
LONGEST_LINE = 1 << 20
"""Bytes that the filter waits for the end of a line."""

_SECRET_PARTS = frozenset({"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS", "PAT"})
_USER = re.compile(r"""(\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>\\]+@""")
_QUERY = re.compile(
    r"""([?&;#](?:amp;)?(?:[\w.%-]*(?:token|secret|passw(?:or)?d|pwd|signature|credentials?|api[_-]?key|access[_-]?key(?:id)?|"""
    r"""key-pair-id|jwt|hmac|session)|sig|key|auth|policy|hdnea|hdnts|hdntl)=)[^&;#\s"'<>\\)]+""",
    re.IGNORECASE,
)
_FORMS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16})\b|(?<=Bearer )[\w.~+/=-]{8,}"
)


def redact(text: str) -> str:
    """`text` with `***` in place of secrets.

    These are user names and passwords in URLs, values of query parameters that sign or
    authorise, tokens of well-known forms, and the values of environment variables whose names say that they are secret.
    """
    if "://" in text:
        text = _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))
    if "_" in text or "AKIA" in text or "Bearer" in text:
        text = _FORMS.sub(HIDDEN, text)
    known = _known_values()
    return text if known is None else known.sub(HIDDEN, text)


def is_secret_name(name: str) -> bool:
    """Whether a variable or setting of this name holds a secret: `HF_TOKEN`, `api_key`; not `max_tokens`."""
    return not _SECRET_PARTS.isdisjoint(re.split(r"[_.\-]", name.upper()))


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Values of secret variables; those that are paths only say where a secret lies."""
    return [
        value
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= SHORTEST and not value.startswith(("/", "~"))
    ]


@cache
def _known_values() -> re.Pattern[str] | None:
    values = sorted(secret_values(os.environ), key=len, reverse=True)  # of two, one may begin with the other
    return re.compile("|".join(map(re.escape, values))) if values else None


def _filter(source: int, target: int) -> None:
    """Copy from one file descriptor to another, whole lines at a time, to the end of the source."""
    held = b""
    while piece := os.read(source, 1 << 16):
        held += piece
        end = 1 + max(held.rfind(b"\n"), held.rfind(b"\r"))
        if end == 0 and len(held) > LONGEST_LINE:
            end = len(held)
        _write(target, held[:end])
        held = held[end:]
    _write(target, held)


def _write(target: int, content: bytes) -> None:
    view = memoryview(redact(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
    while view:
        view = view[os.write(target, view) :]


if __name__ == "__main__":
    _filter(0, 1)
