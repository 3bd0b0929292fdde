from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with Browser() as found:
        yield found
