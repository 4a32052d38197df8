"""How many points of each pooling window lie on the data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.errors import OpError
from irexec.reference.windows import SlidingWindows, window_populations

SMALL = st.integers(1, 5)


def _windows(kernel: int, stride: int, dilation: int, begin: int, end: int, count: int) -> SlidingWindows:
    return SlidingWindows((kernel,), (stride,), (dilation,), (begin,), (end,), (count,))


@given(size=st.integers(0, 9), kernel=SMALL, stride=SMALL, dilation=SMALL, begin=st.integers(0, 6), count=SMALL)
def test_as_counted_point_by_point(size: int, kernel: int, stride: int, dilation: int, begin: int, count: int) -> None:
    found = window_populations((size,), _windows(kernel, stride, dilation, begin, 0, count)).tolist()
    positions = [[i * stride - begin + k * dilation for k in range(kernel)] for i in range(count)]
    assert found == [sum(0 <= position < size for position in window) for window in positions]


def test_long_kernels_take_no_memory() -> None:
    assert window_populations((5,), _windows(2**62, 1, 1, 2, 2**62, 2)).tolist() == [5, 5]
    with pytest.raises(OpError, match="an axis of size 5 with pads"):
        window_populations((5,), _windows(3, 1, 1, 2**62, 2**62, 2))
