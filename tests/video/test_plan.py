from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.video.packets import NO_TICKS, PacketTable
from vidpipe.video.plan import can_seek, plan_runs, seek_pays
from vidpipe.video.walk import spoiled


def table(pts: list[int], keys: set[int], size: int = 1000) -> PacketTable:
    n = len(pts)
    zeros = np.zeros(n, np.int64)
    nothing = np.zeros(n, np.bool_)
    return PacketTable(
        pts=np.array(pts, np.int64),
        dts=np.arange(n, dtype=np.int64),
        duration=zeros,
        size=zeros + size,
        place=zeros - 1,
        key=np.isin(np.arange(n), list(keys)),
        hidden=nothing,
        damaged=nothing,
        read_error=False,
    )


def entry_packet(packets: PacketTable, number: int, keys_back: int = 0) -> int:
    (run,) = plan_runs(packets, [number], keys_back)
    assert run.last == number
    return run.first


@st.composite
def closed_groups(draw: st.DrawFn) -> PacketTable:
    """Groups of pictures of any length, shown in any order inside a group."""
    pts: list[int] = []
    keys: set[int] = set()
    for length in draw(st.lists(st.integers(1, 12), min_size=1, max_size=8)):
        keys.add(len(pts))
        start = len(pts)
        pts += [start, *draw(st.permutations(range(start + 1, start + length)))]
    return table(pts, keys)


@given(closed_groups(), st.data())
def test_runs_start_at_keys_cover_all_and_are_apart(packets: PacketTable, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.integers(0, len(packets) - 1), min_size=1))
    runs = plan_runs(packets, wanted)
    assert all(packets.key[run.first] for run in runs)
    assert all(any(run.first <= number <= run.last for run in runs) for number in wanted)
    assert all(run.last in wanted for run in runs)
    assert all(before.last + 1 < after.first for before, after in pairwise(runs))


@given(closed_groups(), st.data())
def test_no_packet_of_another_group_is_decoded(packets: PacketTable, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(packets) - 1))
    (run,) = plan_runs(packets, [number])
    assert not packets.key[run.first + 1 : number + 1].any()


def test_a_leading_picture_is_entered_one_key_earlier() -> None:
    open_group = table([0, 1, 2, 5, 3, 4, 6], {0, 3})
    assert entry_packet(open_group, 4) == 0
    assert entry_packet(open_group, 6) == 3


@given(closed_groups(), st.data())
def test_stepping_back_starts_at_an_earlier_key(packets: PacketTable, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(packets) - 1))
    keys = [int(key) for key in np.flatnonzero(packets.key) if key <= number]
    back = data.draw(st.integers(0, 10))
    assert entry_packet(packets, number, back) == (keys[-1 - back] if back < len(keys) else 0)


def test_without_times_the_walk_starts_at_the_start() -> None:
    assert entry_packet(table([NO_TICKS] * 5, {0, 3}), 4) == 0


@given(closed_groups(), st.integers(0, 60), st.integers(0, 60))
def test_a_longer_way_never_makes_seeking_worse(packets: PacketTable, a: int, b: int) -> None:
    near, far = sorted((min(a, len(packets)), min(b, len(packets))))
    assert seek_pays(packets, 0, far) or not seek_pays(packets, 0, near)


def test_repeated_times_forbid_seeking() -> None:
    assert can_seek(table([0, 2, 1], {0}))
    assert not can_seek(table([0, 1, 1], {0}))
    assert not can_seek(table([0, NO_TICKS, 1], {0}))


@given(closed_groups(), st.data())
def test_damage_spoils_up_to_the_next_key_and_no_further(packets: PacketTable, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(packets) - 1))
    later = [int(key) for key in np.flatnonzero(packets.key) if key > number]
    expected = np.zeros(len(packets), bool)
    expected[number : later[0] if later else len(packets)] = True
    assert np.array_equal(spoiled(packets, [number]), expected)


def test_damage_spoils_pictures_that_refer_back_across_the_next_key() -> None:
    open_group = table([0, 1, 2, 5, 3, 4, 6], {0, 3})
    assert np.flatnonzero(spoiled(open_group, [2])).tolist() == [2, 4, 5]


def test_a_failed_leading_picture_spoils_leading_ones_only() -> None:
    open_group = table([0, 1, 2, 5, 3, 4, 6], {0, 3})
    assert np.flatnonzero(spoiled(open_group, [4])).tolist() == [4, 5]
