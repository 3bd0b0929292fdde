"""One cluster for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ray.cluster import head


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """Address of a running cluster with 8 cores, at least in name."""
    pytest.importorskip("ray", reason="Ray is not installed; type: pip install -e '.[dev]'")
    with head(8) as address:
        yield address
