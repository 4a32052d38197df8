"""Probabilities of classes from those of pairs of classes, by the iteration of LIBSVM, as a Loop.

Source: Wu, Lin and Weng, 2004, algorithm 2; ONNX Runtime ``svmclassifier.cc`` ``multiclass_probability``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.body_builder import BodyBuilder, IterationResult, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_generated, check_unrolled
from irexec.dtypes.elements import F32
from irexec.ir.graph import Value

_SMALLEST = 1e-7
_ITERATIONS = 100


def coupled(ctx: TranslationContext, of_pairs: Expression, pairs: Sequence[tuple[int, int]], classes: int) -> Value:
    """Probabilities (rows, classes) from those of the first class of each pair, (rows, pairs)."""
    check_unrolled(classes, "the classes of a support vector machine")
    q = _coupling(ctx, of_pairs, pairs, classes)
    size = ctx.unsqueeze(ctx.size(of_pairs.value, 0), [0])
    begin = ctx.full(ctx.constant(1 / classes), ctx.emit("Concat", size, ctx.constant([classes]), axis=0))
    active = ctx.full(ctx.constant(True), ctx.emit("Concat", size, ctx.constant([1]), axis=0))

    def iteration(builder: BodyBuilder, states: list[Value], _: list[Value]) -> IterationResult:
        inner = builder.inner
        matrix, p = Expression(inner, builder.captured(q)), Expression(inner, states[0])
        product = _sum(matrix * p.unsqueeze(1))
        total = (p * product).sum(1)
        error = Expression(inner, inner.emit("ReduceMax", abs(product - total).value, [1], keep_dims=True))
        running = Expression(inner, states[1]) & (error >= 0.005 / classes)
        moved = running.select(_swept(inner, matrix, p, product, total, classes), p)
        again = inner.emit("ReduceLogicalOr", running.value, [0, 1], keep_dims=False)
        return IterationResult([moved.value, running.value], condition=again)

    bounds = ctx.constant(max(_ITERATIONS, classes)), ctx.constant(True)
    return build_loop(ctx, [begin, active], [], iteration, bounds=bounds)[0]


def _coupling(ctx: TranslationContext, of_pairs: Expression, pairs: Sequence[tuple[int, int]], classes: int) -> Value:
    """The matrix Q of each row, (rows, classes, classes)."""
    check_generated((len(pairs), classes, classes), F32, "the table of pairs of classes")
    signs = np.zeros((len(pairs), classes, classes), np.float32)
    for k, (i, j) in enumerate(pairs):
        signs[k, i, j], signs[k, j, i] = 1, -1
    # The second class of a pair has the probability 1 - r.
    rest = (signs < 0).any(0).astype(np.float32).reshape(1, -1)
    limited = ctx.emit("Clamp", of_pairs.value, min=_SMALLEST, max=1 - _SMALLEST)
    product = ctx.emit(
        "MatMul", limited, ctx.constant(signs.reshape(len(pairs), -1)), transpose_a=False, transpose_b=False
    )
    flat = Expression(ctx, product) + Expression(ctx, ctx.constant(rest))
    r = Expression(ctx, ctx.reshape(flat.value, [-1, classes, classes]))
    other = Expression(ctx, ctx.transpose(r.value, [0, 2, 1]))
    diagonal = (other * other).sum(2) * Expression(ctx, ctx.constant(np.eye(classes, dtype=np.float32)[None]))
    return (diagonal - r * other).value


def _swept(
    ctx: TranslationContext, q: Expression, p: Expression, product: Expression, total: Expression, classes: int
) -> Expression:
    """``p`` after one update of each class in turn; ``product`` is Q p, ``total`` is p Q p."""
    for t in range(classes):
        row = Expression(ctx, ctx.emit("Gather", q.value, ctx.constant(t), ctx.constant(1)))
        chosen = Expression(ctx, ctx.constant(np.eye(classes, dtype=np.float32)[t : t + 1]))
        own, current = (row * chosen).sum(1), (product * chosen).sum(1)
        step = (total - current) / own
        scale = step + 1
        total = (total + step * (step * own + current * 2)) / (scale * scale)
        product = (product + step * row) / scale
        p = (p + step * chosen) / scale
    return p


def _sum(x: Expression) -> Expression:
    """The sum along the last axis of three."""
    return Expression(x.ctx, x.ctx.emit("ReduceSum", x.value, [2], keep_dims=False))
