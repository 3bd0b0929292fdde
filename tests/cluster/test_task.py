"""Asking Slurm for another go: only for the process that Slurm means by this task."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidpipe.cluster.task import requeued_when_stopped


@pytest.mark.parametrize(
    ("known", "own_restarts", "asked"),
    [
        ("RUNNING 0", None, True),
        ("RUNNING 2", "2", True),
        ("RUNNING 1", None, False),  # it runs elsewhere by now; this process is a left-over
        ("COMPLETING 0", None, False),  # cancelled, or queued again by somebody else
        ("", None, False),
    ],
)
def test_only_this_go_is_queued_again(
    known: str, own_restarts: str | None, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in (("squeue", f"echo '{known}'"), ("scontrol", f'echo "$@" > {tmp_path}/said')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "20")  # the 21st begins with the first
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
    if own_restarts is not None:
        monkeypatch.setenv("SLURM_RESTART_COUNT", own_restarts)
    with pytest.raises(SystemExit), requeued_when_stopped(75):
        raise SystemExit(75)
    said = tmp_path / "said"
    assert (said.read_text() if said.exists() else "") == ("requeue 7_20\n" if asked else "")
