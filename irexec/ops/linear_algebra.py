"""Linear algebra: Inverse."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import may_equal, meet, shape_text
from irexec.ir.facts import Fact
from irexec.reference.linear_algebra import inverse
from irexec.schema.inputs import FloatTensor, Rank
from irexec.schema.registry import op


@op("Inverse", since=14, widen=True, tolerance=1e-4)
def inverse_14(data: Annotated[FloatTensor, Rank(2, None)], *, adjoint: bool = False) -> np.ndarray:
    """The inverses of square matrices on the last two axes, transposed if ``adjoint``.

    A singular matrix gives infinities and NaN, from the divisions by 0 of elimination. Source: Inverse-14.
    """
    inverses = inverse(data)
    return np.swapaxes(inverses, -1, -2).copy() if adjoint else inverses


@inverse_14.shape_rule
def _inverse_14_facts(data: Fact) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    rows, columns = data.shape[-2:]
    check(may_equal(rows, columns), f"data {shape_text(data.shape)} are not square matrices")
    side = meet(rows, columns)
    return Fact(data.element, (*data.shape[:-2], side, side))
