"""Conditions on shapes: broadcasting with the axes of the second operand at the start, and windows in the padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irexec.errors import OpError
from irexec.ir.dims import Size, high, low
from irexec.schema.shape_rules import pdpd_start

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer


def may_be(size: Size, value: int) -> bool:
    """Whether a size may have this value."""
    top = high(size)
    return low(size) <= value and (top is None or value <= top)


def is_aligned_at_the_start(layer: ExaminedLayer) -> bool:
    """True if pdpd aligns axes of the second operand, one of them of a size above 1, before the last ones of the
    first."""
    first, second = layer.shape(0), layer.shape(1)
    if layer["auto_broadcast"] != "pdpd" or first is None or second is None:
        return False
    is_before_the_end = pdpd_start(len(first), len(second), layer["auto_broadcast_axis"]) < len(first) - len(second)
    return is_before_the_end and any(size != 1 for size in second)


def aligned_at_the_end(layer: ExaminedLayer) -> bool:
    """Whether the shapes of the two operands fit also with their last axes aligned, as NumPy has it."""
    first, second = layer.shape(0) or (), layer.shape(1) or ()
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def windows_beside(layer: ExaminedLayer, *, padded: bool = False) -> bool:
    """True if a window of pooling lies entirely beside the data; False where the shape of the data is not known.

    Args:
        layer: the pooling.
        padded: take the padding as part of the data.
    """
    shape, attributes = layer.shape(), layer.attributes
    if shape is None or attributes is None or len(shape) < 3:
        return False
    try:
        windows = attributes.windows(shape[2:])
    except OpError:
        return False
    begins, sizes = windows.pads_begin, shape[2:]
    if padded:
        sizes = tuple(map(sum, zip(begins, sizes, windows.pads_end, strict=True)))
        begins = (0,) * len(sizes)
    axes = zip(sizes, windows.kernel, windows.strides, windows.dilations, begins, windows.counts, strict=True)
    return any(_lies_beside(*axis) for axis in axes)


def _lies_beside(size: int, kernel: int, stride: int, dilation: int, begin: int, count: int) -> bool:
    extent = dilation * (kernel - 1) + 1
    starts = [-begin, (count - 1) * stride - begin]
    return starts[0] + extent <= 0 or starts[-1] >= size
