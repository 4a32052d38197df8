"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Shape, Size, high, may_equal, meet, shape_text
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import check_numeric
from irexec.schema.broadcasting import broadcast
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_vector


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


@matmul_1.shape_rule
def _matmul_1_facts(a: Fact, b: Fact, *, transpose_a: bool = False, transpose_b: bool = False) -> Fact:
    check_numeric(a, b)
    return Fact(unify_elements(a, b), _product(a.shape, b.shape, transpose_a, transpose_b))


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


@op("GroupedMatMul", since=17, widen=True, tolerance=1e-5)
def grouped_matmul_17(mat_a: np.ndarray, mat_b: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
    """Products of groups of rows, each with a matrix of its own; ``offsets`` are where the groups end.

    [G, M, K] and [G, N, K] to [G, M, N]. [T, K] and [G, N, K] to [T, N], rows behind the last offset are 0.
    [K, T] and [T, N] to [G, K, N], summed over a group's part of T. The specification printed [G, K, N] for the
    matrices at first; OpenVINO 2026.4 takes [G, N, K], and no pair of two axes each.
    Source: GroupedMatMul-17 and openvino ``grouped_matmul_shape_inference.hpp``.
    """
    if mat_b.ndim == 3:
        mat_b = mat_b.swapaxes(1, 2)
    if mat_a.ndim == 3 or offsets is None:
        return np.matmul(mat_a, mat_b)
    ends = offsets.tolist()
    groups = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if mat_b.ndim == 2:
        products = [mat_a[:, rows] @ mat_b[rows] for rows in groups]
        return np.array(products, mat_a.dtype).reshape(len(ends), mat_a.shape[0], mat_b.shape[1])
    result = np.zeros((mat_a.shape[0], mat_b.shape[2]), mat_a.dtype)
    for rows, matrix in zip(groups, mat_b, strict=True):
        np.matmul(mat_a[rows], matrix, out=result[rows])
    return result


@grouped_matmul_17.shape_rule
def _grouped_matmul_17_facts(mat_a: Fact, mat_b: Fact, offsets: Fact | None = None) -> Fact:
    check_numeric(mat_a, mat_b)
    kind, a, b = unify_elements(mat_a, mat_b), mat_a.shape, mat_b.shape
    if offsets is not None:
        check_integers(offsets, "offsets")
        check_vector(offsets, "offsets")
    if a is None or b is None:
        return Fact(kind, None)
    check((len(a), len(b)) in ((3, 3), (2, 3), (2, 2)), f"mat_a of rank {len(a)} and mat_b of rank {len(b)} do not go together")
    check(len(a) == 3 or offsets is not None, "offsets are missing")
    check(len(a) == 2 or offsets is None, "offsets are given, groups of three axes have none")
    _check_ends(offsets, a[-1] if len(b) == 2 else a[0])
    many = ANY if offsets is None or offsets.shape is None else offsets.shape[0]
    if len(b) == 2:
        check(may_equal(a[1], b[0]), f"mat_a {shape_text(a)} and mat_b {shape_text(b)} do not share their tokens")
        return Fact(kind, (many, a[0], b[1]))
    check(may_equal(a[-1], b[2]), f"the inner sizes of mat_a {shape_text(a)} and mat_b {shape_text(b)} are not the same")
    if len(a) == 3:
        check(may_equal(a[0], b[0]), f"mat_a {shape_text(a)} and mat_b {shape_text(b)} have different numbers of groups")
        return Fact(kind, (meet(a[0], b[0]), a[1], b[1]))
    check(may_equal(many, b[0]), f"mat_b has {b[0]} matrices, offsets {many} groups")
    return Fact(kind, (a[0], b[1]))


def _check_ends(offsets: Fact | None, tokens: Size) -> None:
    ends = None if offsets is None else offsets.ints()
    if ends is None:
        return
    rising = all(a <= b for a, b in zip((0, *ends), ends, strict=False))
    most = high(tokens)
    check(rising and (most is None or max(ends, default=0) <= most), f"offsets {list(ends)} do not rise from 0 to {tokens}")
