"""Products of matrices, Einsum and inverses."""

from __future__ import annotations

import string

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64, I64
from irexec.errors import check


def transposed(ctx: ExportContext, matrices: Tensor) -> Tensor:
    """The last two axes swapped."""
    rank = matrices.require_rank("a matrix that is transposed")
    return ctx.transpose(matrices, [*range(rank - 2), rank - 1, rank - 2])


@exact("MatMul")
def matmul(ctx: ExportContext, a: Tensor, b: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    """MatMul; transposed matrices of rank 2 by Gemm, others after a Transpose."""
    flags = transpose_a and a.rank != 1, transpose_b and b.rank != 1
    if any(flags) and a.rank == b.rank == 2 and a.element.is_float:
        return ctx.emit("Gemm", a, b, transA=int(flags[0]), transB=int(flags[1]))
    a, b = (transposed(ctx, x) if flag else x for x, flag in zip((a, b), flags, strict=True))
    return ctx.emit("MatMul", a, b)


@exact("Einsum")
def einsum(ctx: ExportContext, *inputs: Tensor, equation: str) -> Tensor:
    """Einsum, with an explicit output in lower case, and ellipses of the same rank."""
    terms, output = explicit_equation(equation.replace(" ", ""))
    if "..." in ",".join(terms):
        ranks = [
            x.require_rank("an input") - len(term.replace("...", "")) for x, term in zip(inputs, terms, strict=True)
        ]
        most = max(rank for rank, term in zip(ranks, terms, strict=True) if "..." in term)
        if "..." in output:
            inputs = tuple(
                ctx.unsqueeze(x, *range(term.index("..."), term.index("...") + most - rank))
                if "..." in term and rank < most else x
                for x, term, rank in zip(inputs, terms, ranks, strict=True)
            )  # fmt: skip
        else:
            # An ellipsis that is summed: its axes get letters.
            letters = [x for x in string.ascii_lowercase if x not in "".join(terms)][:most]
            terms = [
                term.replace("...", "".join(letters[most - rank :])) for term, rank in zip(terms, ranks, strict=True)
            ]
    return ctx.emit("Einsum", *inputs, equation=f"{','.join(terms)}->{output}")


def explicit_equation(equation: str) -> tuple[list[str], str]:
    """The terms of the inputs and of the output, in lower case.

    The output that is not written has the letters that occur once, in the order of the alphabet.
    """
    left, arrow, output = equation.partition("->")
    letters = sorted(set(left) - set(".,"))
    if not arrow:
        output = ("..." if "..." in left else "") + "".join(x for x in letters if left.count(x) == 1)
    lower = str.maketrans(dict(zip(letters, string.ascii_lowercase, strict=False)))
    return left.translate(lower).split(","), output.translate(lower)


@composed("GroupedMatMul")
def grouped_matmul(ctx: ExportContext, mat_a: Tensor, mat_b: Tensor, offsets: Tensor | None = None) -> Tensor:
    """MatMul; of groups of rows the product with each matrix, masked by the group of the row, and the sum."""
    if mat_b.require_rank("the matrices") == 2:
        return _summed_groups(ctx, mat_a, mat_b, offsets)
    b = transposed(ctx, mat_b)
    if mat_a.rank == 3 or offsets is None:
        return ctx.emit("MatMul", mat_a, b)
    inside = _group_of_row(ctx, mat_a, offsets)
    products = ctx.emit("MatMul", ctx.unsqueeze(mat_a, 0), b)
    masked = ctx.where(ctx.unsqueeze(inside, 2), products, ctx.scalar(0, products))
    return ctx.reduce("ReduceSum", masked, [0])


def _group_of_row(ctx: ExportContext, rows: Tensor, offsets: Tensor) -> Tensor:
    """Whether each row is in each group: [groups, rows]."""
    count = ctx.squeeze(ctx.slice(ctx.shape_of(rows), 0, 1, 0), 0)
    index = ctx.unsqueeze(ctx.emit("Range", ctx.constant(0), count, ctx.constant(1)), 0)
    stops = ctx.cast(offsets, I64)
    starts = ctx.concat(ctx.ints(0), ctx.slice(stops, 0, -1, 0))
    after = ctx.emit("GreaterOrEqual", index, ctx.unsqueeze(starts, 1))
    return ctx.emit("And", after, ctx.emit("Less", index, ctx.unsqueeze(stops, 1)))


def _summed_groups(ctx: ExportContext, a: Tensor, b: Tensor, offsets: Tensor | None) -> Tensor:
    if offsets is None:
        return ctx.emit("MatMul", a, b)
    inside = ctx.unsqueeze(_group_of_row(ctx, b, offsets), 1)
    columns = ctx.where(inside, ctx.unsqueeze(a, 0), ctx.scalar(0, a))
    return ctx.emit("MatMul", columns, ctx.unsqueeze(b, 0))


@composed("Inverse")
def inverse(ctx: ExportContext, data: Tensor, *, adjoint: bool) -> Tensor:
    """Gauss-Jordan elimination with pivots, unrolled: the size of the matrices is known."""
    size = data.require_shape("the matrices")[-1]
    check(isinstance(size, int) and size <= 64, "matrices of an unknown size, or larger than 64, are not unrolled")
    assert isinstance(size, int)
    kind = data.element
    if data.is_known_empty():
        return ctx.emit("Identity", data)
    work = ctx.cast(data, F64 if kind is F64 else F32)
    unit = ctx.emit("EyeLike", ctx.constant([[0.0] * size] * size, work.element), element=work.element)
    right = ctx.emit("Expand", unit, ctx.emit("Shape", data))
    both = ctx.emit("Concat", work, right, axis=-1)
    for column in range(size):
        both = _eliminated(ctx, both, column, size)
    result = ctx.slice(both, size, None, -1)
    if adjoint:
        rank = data.require_rank("the matrices")
        result = ctx.transpose(result, [*range(rank - 2), rank - 1, rank - 2])
    return ctx.cast(result, kind)


def _eliminated(ctx: ExportContext, both: Tensor, column: int, size: int) -> Tensor:
    """One step: the row with the largest pivot is swapped to its place, scaled, and subtracted from all others."""
    values = ctx.slice(both, column, column + 1, -1)
    below = ctx.emit("Abs", ctx.slice(values, column, None, -2))
    best = ctx.emit("Add", ctx.emit("ArgMax", below, axis=-2, keepdims=1), ctx.constant(column))
    index = ctx.constant([[row] for row in range(size)])
    is_best, is_column = ctx.emit("Equal", index, best), ctx.emit("Equal", index, ctx.constant(column))
    zero = ctx.scalar(0, both)
    pivot_row = ctx.reduce("ReduceSum", ctx.where(is_best, both, zero), [-2], keep=True)
    swapped = ctx.where(is_best, ctx.slice(both, column, column + 1, -2), both)
    scaled = ctx.emit("Div", pivot_row, ctx.slice(pivot_row, column, column + 1, -1))
    factors = ctx.slice(swapped, column, column + 1, -1)
    cleared = ctx.emit("Sub", swapped, ctx.emit("Mul", factors, scaled))
    return ctx.where(is_column, scaled, cleared)
