"""Indices of operations: possibly negative, possibly out of range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.errors import check


def from_front(indices: np.ndarray, sizes: int | Sequence[int], *, negative: bool = True) -> np.ndarray:
    """Indices (i64) counted from the front; negative ones, where allowed, are counted from the end.

    Args:
        indices: integers, or an object array of int.
        sizes: the size they index, or one size for each position along their last axis.

    Raises:
        OpError: an index is out of range.
    """
    wide = indices.astype(np.int64)
    limits = np.asarray(sizes, np.int64)
    inside = (wide >= (-limits if negative else 0)) & (wide < limits)
    if not inside.all():
        size = np.broadcast_to(limits, wide.shape)[~inside][0]
        check(False, f"index {wide[~inside][0]} is out of range for a size of {size}")
    return np.where(wide < 0, wide + limits, wide)
