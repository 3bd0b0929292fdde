"""What a process at work says of itself, for `vidpipe status` on any host to read: one small file a process.

It is replaced about as often as a heartbeat, and removed when the process ends in order; the file of one that was
killed stays, and its age tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vidpipe.record.disk import replace_json
from vidpipe.record.holder import this_process
from vidpipe.record.run_dir import PROGRESS_FILES, RunDir


@dataclass(frozen=True)
class Bulletin:
    """One process's last word."""

    holder: Mapping[str, Any]
    """Who it is, as in a lease."""
    values: Mapping[str, Any]
    """What it said."""
    age_s: float
    """Since it said so."""


def write_bulletin(run_dir: RunDir, values: Mapping[str, Any]) -> None:
    """Say what this process is at."""
    replace_json(run_dir.progress_file, {"holder": this_process(), "values": dict(values)}, durable=False)


def remove_bulletin(run_dir: RunDir) -> None:
    """This process ends."""
    run_dir.progress_file.unlink(missing_ok=True)


def read_bulletins(run_dir: RunDir, now_s: float) -> list[Bulletin]:
    """The last word of each process that has not ended in order; torn files are passed over.

    Args:
        run_dir: The run.
        now_s: `server_now_s` of its claims' folder.
    """
    found = []
    for path in sorted(run_dir.path.glob(PROGRESS_FILES)):
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            stored = json.loads(path.read_bytes())
            found.append(Bulletin(dict(stored["holder"]), dict(stored["values"]), now_s - path.stat().st_mtime))
    return found
