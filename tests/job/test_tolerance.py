from hypothesis import given
from hypothesis import strategies as st

from vidpipe.job.tolerance import tolerated
from vidpipe.recipe.schema import ToleranceByCause

COUNTS = {"ok": 90, "length": 3, "media_error": 4, "row_error": 2, "engine_error": 1}


def test_counts_and_shares() -> None:
    assert tolerated(COUNTS, 7) and not tolerated(COUNTS, 6)
    assert tolerated(COUNTS, 0.07) and not tolerated(COUNTS, 0.069)


def test_media_and_engine_apart() -> None:
    assert tolerated(COUNTS, ToleranceByCause(media=0.06, engine=1))
    assert not tolerated(COUNTS, ToleranceByCause(media=6, engine=0))
    assert not tolerated(COUNTS, ToleranceByCause(media=5, engine=1))


@given(st.integers(0, 100), st.integers(0, 100))
def test_no_failure_is_always_within(ok: int, length: int) -> None:
    assert tolerated({"ok": ok, "length": length}, 0) and tolerated({"ok": ok}, 0.0)
