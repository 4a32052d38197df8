"""Tensors that are integers by their meaning, such as axes, sizes, pads and counts, as Python integers.

Every shape rule (through ``Fact``) and every kernel reads them here, so that no fraction, NaN or text becomes a size.
"""

from __future__ import annotations

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import Dim, Size


def integers(array: np.ndarray, what: str) -> tuple[int, ...]:
    """The elements, flattened; ``what`` names the tensor in messages.

    Raises:
        OpError: an element is a fraction, NaN, an infinity or text, or is known only by its bounds.
    """
    return tuple(map(int, integers_or_bounds(array, what)))


def integer(array: np.ndarray, what: str) -> int:
    """The element of a tensor that has one; raises OpError if it has more or none, or as ``integers`` does."""
    check(array.size == 1, f"{what} has {array.size} elements, expected 1")
    return integers(array, what)[0]


def integers_or_bounds(array: np.ndarray, what: str) -> tuple[Size, ...]:
    """The elements, flattened, those of which only the bounds are known as Dim; raises OpError for what is neither."""
    values = array.ravel().tolist()
    return tuple(values) if array.dtype.kind in "iu" else tuple(_integer(value, what) for value in values)


def _integer(value: object, what: str) -> Size:
    if isinstance(value, int | Dim | np.integer | np.bool_):
        return value if isinstance(value, Dim) else int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise OpError(f"{what} has {value!r}, expected integers")
