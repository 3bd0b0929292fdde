"""Why an engine was idle, from times alone."""

from __future__ import annotations

import pytest

from vidpipe.job.idle import IdleClock


def test_the_last_clip_explains_the_stretch_backwards() -> None:
    clock = IdleClock(0.0)
    clock.started(10.0)
    clock.filled(15.0, prepare_s=2.0, transfer_s=0.5)
    clock.filled(16.0, prepare_s=9.0, transfer_s=9.0)  # it has work already: nothing to explain
    clock.emptied(20.0)
    clock.emptied(21.0)
    clock.filled(22.0, prepare_s=9.0, transfer_s=0.0)
    clock.emptied(30.0)
    clock.nothing_to_take(33.0)
    clock.filled(34.0, prepare_s=0.0, transfer_s=0.25)
    clock.emptied(40.0)
    assert clock.ended(41.0) == 41.0
    assert clock.idle_s == pytest.approx({"start": 10, "decode": 2.5 + 0.75, "prepare": 4, "transfer": 0.75, "tail": 4})


def test_an_engine_that_never_starts_was_starting() -> None:
    clock = IdleClock(5.0)
    assert clock.ended(8.0) == 3.0 and clock.idle_s["start"] == 3.0
