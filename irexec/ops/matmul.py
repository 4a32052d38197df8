"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.errors import OpError
from irexec.ir.dims import PartialShape, Shape, Size, meet, shape_text
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import check_numeric
from irexec.ops.registry import op
from irexec.ops.rules import broadcast, same_element


def _turned(a: np.ndarray, turn: bool) -> np.ndarray:
    """The matrices transposed; a vector stays."""
    return np.swapaxes(a, -1, -2) if turn and a.ndim > 1 else a


@op("MatMul", since=1, widen=True, tolerance=1e-5)
def matmul_1(a: np.ndarray, b: np.ndarray, *, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    """The products of matrices, their leading axes broadcast.

    A vector is a row on the left and a column on the right, whatever the flags say, and its axis
    leaves the result. Source: MatMul-1.
    """
    return np.asarray(np.matmul(_turned(a, transpose_a), _turned(b, transpose_b)))


@matmul_1.facts
def _matmul_1_facts(a: Fact, b: Fact, *, transpose_a: bool = False, transpose_b: bool = False) -> Fact:
    check_numeric(a, b)
    return Fact(same_element(a, b), _product(a.shape, b.shape, transpose_a, transpose_b))


def _product(a: PartialShape, b: PartialShape, transpose_a: bool, transpose_b: bool) -> PartialShape:
    if a == () or b == ():
        raise OpError("a scalar has no matrix product")
    if a is None or b is None:
        return None
    rows, inner_a = _ends(a, transpose_a, left=True)
    columns, inner_b = _ends(b, transpose_b, left=False)
    try:
        meet(inner_a, inner_b)
    except OpError:
        raise OpError(
            f"the inner sizes of {shape_text(a)} and {shape_text(b)} are {inner_a} and {inner_b}, they must be the same"
        ) from None
    return (*(broadcast([a[:-2], b[:-2]]) or ()), *rows, *columns)


def _ends(shape: Shape, turn: bool, *, left: bool) -> tuple[tuple[Size, ...], Size]:
    """The sizes that an operand leaves in the result, and the one that is summed over."""
    if len(shape) == 1:
        return (), shape[0]
    outer, inner = (shape[-2], shape[-1]) if left != turn else (shape[-1], shape[-2])
    return (outer,), inner


@matmul_1.bind
def _matmul_1_bind(
    a: Fact, b: Fact, *, transpose_a: bool = False, transpose_b: bool = False
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """A matrix of weights on the right makes one product of all the leading axes of ``a``."""
    weights = b.known
    if weights is None or weights.ndim != 2 or weights.dtype not in (np.float32, np.float64) or transpose_a or a.rank in (None, 1):
        return None
    matrix = weights.T if transpose_b else weights

    def product(data: np.ndarray, _: np.ndarray) -> np.ndarray:
        flat = data.reshape(math.prod(data.shape[:-1]), data.shape[-1])
        return np.matmul(flat, matrix).reshape(*data.shape[:-1], matrix.shape[1])

    return product
