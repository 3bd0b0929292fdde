"""One cluster for all tests of this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import ThrowAwaySlurm, why_not_here


@pytest.fixture(scope="session")
def slurm() -> Iterator[ThrowAwaySlurm]:
    """A running cluster, whose commands are on the PATH."""
    if reason := why_not_here():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="vidpipe-slurm-"))
    cluster = ThrowAwaySlurm(folder)
    try:
        cluster.start()
        with pytest.MonkeyPatch.context() as patch:
            for name in ("SLURM_CONF", "PATH"):
                patch.setenv(name, cluster.environment[name])
            yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
