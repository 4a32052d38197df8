"""Exact packing and unpacking of every element type, as the bytes of a .bin hold it, and rounding to those that NumPy
lacks.
"""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import OpError


def packed_size(element: Element, count: int) -> int:
    """The number of bytes that ``count`` elements take; raises OpError for strings, whose count does not decide it."""
    return element.codec.size(count)


def unpack(element: Element, raw: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` elements of packed bytes.

    Args:
        element: the element type.
        raw: uint8, one dimension.
        count: number of elements to read.

    Returns:
        One dimension in the element's carrier; a view on ``raw`` where the type is NumPy's own.

    Raises:
        OpError: there are too few bytes, or the offsets of a string tensor are damaged.
    """
    if element.kind == "string":
        return element.codec.unpack(raw, count)
    size = packed_size(element, count)
    if raw.size < size:
        raise OpError(f"{count} elements of {element} take {size} bytes, there are {raw.size}")
    return element.codec.unpack(raw[:size], count)


def pack(element: Element, array: np.ndarray) -> np.ndarray:
    """The packed bytes of an array in the carrier of ``element``: uint8, one dimension."""
    return element.codec.pack(np.ascontiguousarray(array).reshape(-1))


def round_to(element: Element, array: np.ndarray) -> np.ndarray:
    """The values of ``array`` rounded to ``element``, in its carrier.

    Args:
        element: the type; one that NumPy has itself leaves the array as it is.
        array: values of the carrier, any shape.
    """
    # Arithmetic on an array without axes gives a NumPy scalar.
    return np.asarray(element.codec.round(np.asarray(array)))
