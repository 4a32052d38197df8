"""The windows of a convolution as C has them; see irexec/native/source/windows.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64, c_void_p

import numpy as np

from irexec.backend.calls import Binding, element_strides
from irexec.reference.windows import SlidingWindows

_Three = c_int64 * 3


class Windows(ctypes.Structure):
    """See windows.h."""

    _fields_ = (
        ("data", c_void_p), ("data_image", c_int64), ("zeros", c_void_p), ("data_strides", _Three), ("sizes", _Three),
        ("counts", _Three), ("kernel", _Three), ("strides", _Three), ("dilations", _Three), ("pads", _Three),
    )  # fmt: skip


def three(values: Sequence[int], fill: int = 1) -> ctypes.Array[c_int64]:
    """Up to three values, with ``fill`` in front."""
    return _Three(*[fill] * (3 - len(values)), *values)


def windows_of(x: np.ndarray, windows: SlidingWindows, zeros: np.ndarray, binding: Binding) -> Windows:
    """The windows on data (N, C, spatial...) whose channels follow each other in memory.

    Args:
        zeros: as many as a tap reads.
    """
    image, _, *spatial = element_strides(x)
    return Windows(
        binding.address(x), image, binding.address(zeros), three(spatial, 0), three(x.shape[2:]), three(windows.counts),
        three(windows.kernel), three(windows.strides), three(windows.dilations), three(windows.pads_begin, 0),
    )  # fmt: skip


def rows_as_windows(address: int, image: int, row: int, count: int, zeros: int) -> Windows:
    """Rows of a matrix as windows of one tap."""
    ones = three(())
    return Windows(
        address, image, zeros, three((row,), 0), three((count,)), three((count,)), ones, ones, ones, three((), 0)
    )


def table_bytes(rows: int, taps: int) -> int:
    """Bytes of the table of pointers for a block of rows."""
    return (rows + 8) * taps * 8


def most_rows(taps: int, floats: int) -> int:
    """Rows of a block, at most: 64 KiB of table, and data that stays in the second-level cache.

    Args:
        floats: of the data that a row reads.
    """
    return max(8, min((1 << 16) // (8 * taps), (1 << 17) // max(1, floats)))


def row_block(rows: int, taps: int, floats: int, wanted: int) -> int:
    """Rows of a block: at least ``wanted`` blocks if that leaves some rows for each.

    Args:
        floats: of the data that a row reads.
    """
    size = min(most_rows(taps, floats), -(-rows // wanted))
    return min(rows, max(8, -(-size // 8) * 8))
