"""A few random inputs; `python -m tests.fuzz 100000` tries many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.inputs import TARGETS


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_random_inputs_break_nothing(target: str, data: st.DataObject, tmp_path: Path) -> None:
    strategy, check = TARGETS[target]
    check(data.draw(strategy), tmp_path)
