from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def disk_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the disk, in order: "file" and "folder" for an fsync of one, "link" and "replace" for a name.

    No test can cut a machine's power; it can see that nothing gets its name before its content is safe.
    """
    calls: list[str] = []

    def noted(function: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name(*arguments))
            return function(*arguments, **options)

        return call

    def kind(descriptor: int) -> str:
        return "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"

    monkeypatch.setattr(os, "fsync", noted(os.fsync, kind))
    monkeypatch.setattr(os, "link", noted(os.link, lambda *_: "link"))
    monkeypatch.setattr(os, "replace", noted(os.replace, lambda *_: "replace"))
    return calls
