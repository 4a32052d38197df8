"""Linear algebra: Inverse."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from irexec.ir.dims import may_equal, meet, shape_text
from irexec.ir.facts import Fact
from irexec.reference.linear_algebra import inverse
from irexec.schema.element_checks import check_float
from irexec.schema.registry import op


@op("Inverse", since=14, widen=True, tolerance=1e-4)
def inverse_14(data: np.ndarray, *, adjoint: bool = False) -> np.ndarray:
    """The inverses of square matrices on the last two axes, transposed if ``adjoint``.

    A singular matrix gives infinities and NaN, as elimination meets them. Source: Inverse-14.
    """
    found = inverse(data)
    return np.swapaxes(found, -1, -2).copy() if adjoint else found


@inverse_14.shape_rule
def _inverse_14_facts(data: Fact, *, adjoint: bool = False) -> Fact:
    check_float(data, "data")
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 2, f"data has rank {len(data.shape)}, expected 2 or more")
    rows, columns = data.shape[-2:]
    check(may_equal(rows, columns), f"data {shape_text(data.shape)} are no square matrices")
    side = meet(rows, columns)
    return Fact(data.element, (*data.shape[:-2], side, side))
