"""Placing buffers in an arena: what lives at once shares no byte, and what does not share little more than it must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irexec.compile.storage.planned import ALIGNMENT, Buffer, assign_offsets

intervals = st.tuples(st.integers(0, 10_000), st.integers(0, 30), st.integers(0, 30)).map(
    lambda t: Buffer(t[0], min(t[1:]), max(t[1:]))
)


@given(st.lists(intervals, max_size=40))
def test_buffers_that_live_at_once_share_no_byte(buffers: list[Buffer]) -> None:
    size = assign_offsets(buffers)
    for i, a in enumerate(buffers):
        assert a.offset % ALIGNMENT == 0
        assert a.offset + a.size <= size
        for b in buffers[i + 1 :]:
            at_once = a.first <= b.last and b.first <= a.last
            assert not at_once or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_buffers_one_after_the_other_take_the_room_of_two() -> None:
    buffers = [Buffer(1000, i, i + 1) for i in range(20)]
    assert assign_offsets(buffers) == 2 * 1024


def test_a_large_buffer_takes_the_room_of_small_ones_that_are_gone() -> None:
    small = [Buffer(640, 0, 1) for _ in range(4)]
    assert assign_offsets([*small, Buffer(2560, 2, 3)]) == 2560
