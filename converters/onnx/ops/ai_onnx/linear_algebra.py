"""Products of matrices, sums of products over labels, inverses and determinants."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.body_builder import BodyBuilder, IterationResult, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.sorting import first_extreme
from converters.onnx.registry import translates
from irexec.dtypes.elements import F64
from irexec.errors import OpError
from irexec.ir.graph import Value

_END = (1 << 63) - 1


@translates("Det", since=11)
def det(ctx: TranslationContext, x: Value) -> Value:
    """Gaussian elimination with partial pivoting: a Loop that eliminates one column per iteration.

    The matrices keep their size: after each iteration the remaining rows and columns are followed by those of an
    identity matrix.
    """
    rank = ctx.rank(x)
    rows, columns = ctx.sizes(x)[-2:] if rank >= 2 else (0, 1)
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise OpError(f"the input {ctx.fact(x)} does not consist of square matrices")
    shape, size = ctx.shape_of(x), ctx.size(x, rank - 1)
    leading = ctx.emit("Slice", shape, [0], [rank - 2], [1], [0])
    if ctx.shape_if_known(x) is None:
        # A matrix that is not square fails here.
        square = ctx.emit("Concat", leading, *[ctx.reshape(size, [1])] * 2, axis=0)
        x = ctx.emit("Reshape", x, square, special_zero=False)
    if not isinstance(columns, int) or columns == 0:
        # The body needs a column, even if there is no iteration.
        x = _enlarged(Expression(ctx, x))

    def iteration(builder: BodyBuilder, states: list[Value], _: list[Value]) -> IterationResult:
        smaller, factor = _eliminated(builder.inner, states[0])
        return IterationResult([_enlarged(smaller), builder.inner.emit("Multiply", states[1], factor)])

    states = [x, ctx.full(ctx.constant(1, x), leading)]
    return build_loop(ctx, states, [], iteration, bounds=(size, ctx.constant(True)))[1]


def _eliminated(ctx: TranslationContext, x: Value) -> tuple[Expression, Value]:
    """The matrices without the row and column of the pivot; and the pivot, negated if rows were exchanged."""
    rank = ctx.rank(x)
    column = ctx.emit("Slice", x, [0], [1], [1], [rank - 1])
    pivot_index = first_extreme(ctx, ctx.emit("Abs", column), "max", rank - 2)
    first = ctx.emit("Slice", x, [0], [1], [1], [rank - 2])
    pivot_row = Expression(
        ctx, ctx.emit("GatherND", x, ctx.emit("Squeeze", pivot_index, [rank - 1]), batch_dims=rank - 2)
    ).unsqueeze(rank - 2)
    rest = _without_first(ctx, x, rank - 2)
    is_pivot = Expression(ctx, pivot_index).equals((positions(ctx, rest, rank - 2) + 1).column())
    rows = is_pivot.select(Expression(ctx, first), Expression(ctx, rest)).value
    pivot = Expression(ctx, ctx.emit("Slice", pivot_row.value, [0], [1], [1], [rank - 1]))
    factor = Expression(ctx, ctx.emit("Slice", rows, [0], [1], [1], [rank - 1])) / pivot.equals(0).select(1, pivot)
    smaller = Expression(ctx, _without_first(ctx, rows, rank - 1))
    pivot_tail = Expression(ctx, _without_first(ctx, pivot_row.value, rank - 1))
    signed = Expression(ctx, pivot_index).equals(0).select(pivot, -pivot)
    return smaller - factor * pivot_tail, ctx.emit("Squeeze", signed.value, [rank - 2, rank - 1])


def _without_first(ctx: TranslationContext, x: Value, axis: int) -> Value:
    return ctx.emit("Slice", x, [1], [_END], [1], [axis])


def _enlarged(matrices: Expression) -> Value:
    """The matrices with a row and a column more, those of an identity matrix."""
    ctx = matrices.ctx
    rank = ctx.rank(matrices.value)
    ends = [0] * (rank - 2) + [1, 1]
    padded = ctx.emit("Pad", matrices.value, [0] * rank, ends, ctx.constant(0, matrices.value), pad_mode="constant")
    index = positions(ctx, padded, rank - 1)
    last = Expression(ctx, ctx.size(matrices.value, rank - 1))
    at_corner = index.column().equals(last) & index.equals(last)
    return at_corner.select(1, Expression(ctx, padded)).value


@translates("MatMul")
def matmul(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return ctx.emit("MatMul", x, y)


@translates("Gemm")
@translates("Gemm", since=7, without=["broadcast"])
def gemm(
    ctx: TranslationContext, x: Value, y: Value, z: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0, broadcast: int = 0,
) -> Value:  # fmt: skip
    """alpha * A @ B + beta * C; C broadcasts as in NumPy. ``broadcast`` has no effect: shapes are equal without it."""
    product, kind = ctx.emit("MatMul", x, y, transpose_a=bool(transA), transpose_b=bool(transB)), ctx.element(x)
    if not kind.is_float and not (float(alpha).is_integer() and float(beta).is_integer()):
        # Rounded once, towards zero, as by onnx.reference.
        product, z = ctx.convert(product, F64), None if z is None else ctx.convert(z, F64)
    result = _scaled(ctx, product, alpha)
    return ctx.convert(result if z is None else ctx.emit("Add", result, _scaled(ctx, z, beta)), kind)


def _scaled(ctx: TranslationContext, x: Value, factor: float) -> Value:
    return x if factor == 1.0 else ctx.emit("Multiply", x, ctx.constant(factor, x))


@translates("Einsum", since=12)
def einsum(ctx: TranslationContext, *inputs: Value, equation: str) -> Value:
    return ctx.emit("Einsum", *inputs, equation=equation.replace(" ", ""))
