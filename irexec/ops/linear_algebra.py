"""Matrix products, inverses and Einsum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Shape, Size, high, may_equal, meet, shape_text
from irexec.ir.facts import Fact, integers
from irexec.messages import counted
from irexec.reference.limits import check_time
from irexec.reference.products import inverse, matmul
from irexec.schema.opdef import NUMERIC, FloatTensor, IntegerVector, NumericTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import broadcast, unify_elements


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


Matrices = Annotated[np.ndarray, NUMERIC, Rank(1, None)]
GroupedMatrices = Annotated[np.ndarray, NUMERIC, Rank(2, 3)]


def _transposed(a: np.ndarray, transpose: bool) -> np.ndarray:
    """The matrices transposed if ``transpose``; a vector is left as it is."""
    return np.swapaxes(a, -1, -2) if transpose and a.ndim > 1 else a


@op("MatMul", since=1, widen=True, tolerance=1e-5)
def matmul_1(a: Matrices, b: Matrices, *, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    """The products of matrices, their leading axes broadcast.

    A vector is a row on the left and a column on the right, whatever the flags are, and its axis
    is removed from the result. Source: MatMul-1.
    """
    return matmul(_transposed(a, transpose_a), _transposed(b, transpose_b))


@matmul_1.shape_rule
def _matmul_1_facts(a: Fact, b: Fact, *, transpose_a: bool, transpose_b: bool) -> Fact:
    return Fact(unify_elements(a, b), _product(a.shape, b.shape, transpose_a, transpose_b))


def _product(a: PartialShape, b: PartialShape, transpose_a: bool, transpose_b: bool) -> PartialShape:
    if a is None or b is None:
        return None
    rows, inner_a = _outer_and_inner(a, transpose_a, left=True)
    columns, inner_b = _outer_and_inner(b, transpose_b, left=False)
    try:
        meet(inner_a, inner_b)
    except OpError:
        raise OpError(
            f"the inner sizes of {shape_text(a)} and {shape_text(b)} are {inner_a} and {inner_b}, they must be equal"
        ) from None
    return (*(broadcast([a[:-2], b[:-2]]) or ()), *rows, *columns)


def _outer_and_inner(shape: Shape, transpose: bool, *, left: bool) -> tuple[tuple[Size, ...], Size]:
    """The sizes of an operand that the result has, but for the leading axes, and the size that is summed over."""
    if len(shape) == 1:
        return (), shape[0]
    outer, inner = (shape[-2], shape[-1]) if left != transpose else (shape[-1], shape[-2])
    return (outer,), inner


@op("GroupedMatMul", since=17, widen=True, tolerance=1e-5)
def grouped_matmul_17(
    mat_a: GroupedMatrices, mat_b: GroupedMatrices, offsets: IntegerVector | None = None
) -> np.ndarray:
    """Products of groups of rows, each with a matrix of its own; ``offsets`` are the stops of the groups.

    [G, M, K] and [G, N, K] to [G, M, N]. [T, K] and [G, N, K] to [T, N], rows after the last offset are 0.
    [K, T] and [T, N] to [G, K, N], summed over a group's part of T. The specification printed [G, K, N] for the
    matrices at first; OpenVINO 2026.4 accepts [G, N, K], and no pair of rank 2.
    Source: GroupedMatMul-17 and openvino ``grouped_matmul_shape_inference.hpp``.
    """
    if mat_b.ndim == 3:
        mat_b = mat_b.swapaxes(1, 2)
    if mat_a.ndim == 3 or offsets is None:
        return matmul(mat_a, mat_b)
    stops = integers(offsets, "offsets")
    groups = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    if mat_b.ndim == 2:
        products = [mat_a[:, rows] @ mat_b[rows] for rows in groups]
        return np.array(products, mat_a.dtype).reshape(len(stops), mat_a.shape[0], mat_b.shape[1])
    result = np.zeros((mat_a.shape[0], mat_b.shape[2]), mat_a.dtype)
    for rows, matrix in zip(groups, mat_b, strict=True):
        check_time()
        np.matmul(mat_a[rows], matrix, out=result[rows])
    return result


@grouped_matmul_17.shape_rule
def _grouped_matmul_17_facts(mat_a: Fact, mat_b: Fact, offsets: Fact | None = None) -> Fact:
    kind, a, b = unify_elements(mat_a, mat_b), mat_a.shape, mat_b.shape
    if a is None or b is None:
        return Fact(kind, None)
    check(
        (len(a), len(b)) in ((3, 3), (2, 3), (2, 2)),
        f"mat_a of rank {len(a)} cannot be multiplied with mat_b of rank {len(b)}",
    )
    check(len(a) == 3 or offsets is not None, "offsets are missing")
    check(len(a) == 2 or offsets is None, "offsets are given, which mat_a of rank 3 does not have")
    _check_offsets(offsets, a[-1] if len(b) == 2 else a[0])
    groups = ANY if offsets is None or offsets.shape is None else offsets.shape[0]
    both = f"mat_a {shape_text(a)} and mat_b {shape_text(b)}"
    if len(b) == 2:
        check(may_equal(a[1], b[0]), f"{both} have different numbers of tokens")
        return Fact(kind, (groups, a[0], b[1]))
    check(may_equal(a[-1], b[2]), f"the inner sizes of {both} differ")
    if len(a) == 3:
        check(may_equal(a[0], b[0]), f"{both} have different numbers of groups")
        return Fact(kind, (meet(a[0], b[0]), a[1], b[1]))
    check(may_equal(groups, b[0]), f"mat_b has {b[0]} matrices, offsets have {groups} groups")
    return Fact(kind, (a[0], b[1]))


def _check_offsets(offsets: Fact | None, tokens: Size) -> None:
    stops = None if offsets is None else offsets.ints("offsets")
    if stops is None:
        return
    ascending = all(a <= b for a, b in zip((0, *stops), stops, strict=False))
    limit = high(tokens)
    check(
        ascending and (limit is None or max(stops, default=0) <= limit),
        f"offsets {list(stops)} do not ascend within 0 to {tokens}",
    )


ELLIPSIS = "..."
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Equation:
    """The labels of each operand and of the result; an ellipsis is a label of its own."""

    operands: tuple[Labels, ...]
    result: Labels


def parse_equation(text: str) -> Equation:
    """Read ``"ab...,bc->...ac"``; blanks are ignored.

    Without an arrow the result has the ellipsis, then the labels that occur once, sorted, capitals first.

    Raises:
        OpError: a character is not a letter, a subscript has two ellipses, or a label of the result is not in any
            operand.
    """
    before, arrow, after = text.replace(" ", "").partition("->")
    operands = tuple(_labels(subscript, text) for subscript in before.split(","))
    counts = Counter(label for labels in operands for label in labels)
    if arrow:
        result = _labels(after, text)
        check(len(set(result)) == len(result), f"the result of equation {text!r} has a label twice")
        for label in result:
            check(label in counts, f"label {label!r} of the result of equation {text!r} is not in any operand")
    else:
        dots = (ELLIPSIS,) if ELLIPSIS in counts else ()
        result = (*dots, *sorted(label for label, count in counts.items() if count == 1 and label != ELLIPSIS))
    return Equation(operands, result)


def _labels(subscript: str, text: str) -> Labels:
    before, dots, after = subscript.partition(ELLIPSIS)
    are_letters = all(letter.isascii() and letter.isalpha() for letter in before + after)
    check(are_letters, f"equation {text!r} is not made of letters, commas and an arrow")
    return (*before, *([ELLIPSIS] if dots else []), *after)


@op("Einsum", since=7, widen=True, tolerance=1e-5)
def einsum_7(*inputs: NumericTensor, equation: str) -> np.ndarray:
    """The sum of products over the labels that are not in the result.

    A label that occurs twice in an operand takes the diagonal; the axes that ellipses stand for are broadcast, and so
    are equal labels of sizes 1 and n. Source: Einsum-7.
    """
    parsed = parse_equation(equation)
    covered = [
        data.ndim - len(labels) + 1 if ELLIPSIS in labels else 0
        for data, labels in zip(inputs, parsed.operands, strict=True)
    ]
    # An axis number for each label, after those of the axes that ellipses stand for.
    letters = dict.fromkeys(label for labels in parsed.operands for label in labels if label != ELLIPSIS)
    axis_of = {letter: max(covered) + i for i, letter in enumerate(letters)}
    arguments: list[Any] = []
    for data, labels, rank in zip(inputs, parsed.operands, covered, strict=True):
        arguments += [data, _axes(labels, rank, axis_of, max(covered))]
    axes = _axes(parsed.result, max(covered), axis_of, max(covered))
    result = np.einsum(*arguments, axes, optimize=len(inputs) > 1)
    if any(np.may_share_memory(result, data) for data in inputs):
        result = result.copy()
    return np.asarray(result, inputs[0].dtype)


def _axes(labels: Labels, rank: int, axis_of: dict[str, int], covered: int) -> list[int]:
    """The axis numbers of the labels; those that an ellipsis stands for are aligned at their last one."""
    axes: list[int] = []
    for label in labels:
        axes += range(covered - rank, covered) if label == ELLIPSIS else [axis_of[label]]
    return axes


@einsum_7.shape_rule
def _einsum_7_facts(*inputs: Fact, equation: str) -> Fact:
    kind = unify_elements(*inputs)
    parsed = parse_equation(equation)
    check(
        len(parsed.operands) == len(inputs),
        f"equation {equation!r} has {counted(len(parsed.operands), 'operand')}, the layer has "
        f"{counted(len(inputs), 'input')}",
    )
    sizes: dict[str, Size] = {}
    covered_shapes: list[PartialShape] = []
    for fact, labels in zip(inputs, parsed.operands, strict=True):
        if fact.shape is None:
            covered_shapes += [None] if ELLIPSIS in labels else []
            _note_sizes(sizes, {label: ANY for label in labels if label != ELLIPSIS}, equation)
            continue
        _check_rank(labels, fact.shape, equation)
        covered = len(fact.shape) - len(labels) + 1
        before = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
        if ELLIPSIS in labels:
            covered_shapes.append(fact.shape[before : before + covered])
        letters = [
            *zip(labels[:before], fact.shape, strict=False),
            *zip(labels[:before:-1], fact.shape[::-1], strict=False),
        ]
        _note_sizes(sizes, _diagonals(letters, equation), equation)
    return Fact(kind, _result_shape(parsed.result, sizes, broadcast(covered_shapes) if covered_shapes else ()))


def _check_rank(labels: Labels, shape: Shape, equation: str) -> None:
    letters = len(labels) - (ELLIPSIS in labels)
    fits = len(shape) >= letters if ELLIPSIS in labels else len(shape) == letters
    axes = f"the {letters} axes of {''.join(labels)!r} in equation {equation!r}"
    check(fits, f"an input of shape {shape_text(shape)} does not have {axes}")


def _diagonals(letters: Sequence[tuple[str, Size]], equation: str) -> dict[str, Size]:
    """The sizes of one operand's labels; those of a label that occurs twice must be equal."""
    sizes: dict[str, Size] = {}
    for label, size in letters:
        try:
            sizes[label] = meet(sizes.get(label, size), size)
        except OpError:
            raise OpError(
                f"label {label!r} of equation {equation!r} has sizes {sizes[label]} and {size} in one input"
            ) from None
    return sizes


def _note_sizes(sizes: dict[str, Size], letters: dict[str, Size], equation: str) -> None:
    for label, size in letters.items():
        try:
            merged = broadcast([(sizes.get(label, size),), (size,)])
        except OpError:
            raise OpError(f"label {label!r} of equation {equation!r} has sizes {sizes[label]} and {size}") from None
        sizes[label] = size if merged is None else merged[0]


def _result_shape(labels: Labels, sizes: dict[str, Size], covered: PartialShape) -> PartialShape:
    if ELLIPSIS in labels and covered is None:
        return None
    shape: list[Size] = []
    for label in labels:
        shape += (covered or ()) if label == ELLIPSIS else [sizes.get(label, ANY)]
    return tuple(shape)
