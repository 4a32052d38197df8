"""Scores of classes as probabilities and labels, also from those of pairs of classes.

Source: Wu, Lin and Weng, 2004, algorithm 2; ONNX Runtime ``svmclassifier.cc`` ``multiclass_probability``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.body_builder import BodyBuilder, IterationResult, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated, check_unrolled
from irexec.dtypes.elements import F32, STRING
from irexec.errors import OpError
from irexec.ir.graph import Value

# Constant of an approximation of the inverse error function. Source: Winitzki, 2008.
_WINITZKI = 0.147


def post_transformed(ctx: TranslationContext, scores: Value, post_transform: str) -> Value:
    """Scores, (rows, classes), after ``post_transform``."""
    x = Expression(ctx, scores)
    if post_transform == "NONE":
        return scores
    if post_transform == "LOGISTIC":
        return ctx.emit("Sigmoid", scores)
    if post_transform == "SOFTMAX":
        return ctx.emit("Softmax", scores, axis=-1)
    if post_transform == "SOFTMAX_ZERO":
        # A score of 0 stays 0 and is left out of the softmax.
        nonzero = abs(x) > 1e-7
        top = Expression(ctx, ctx.emit("ReduceMax", scores, [-1], keep_dims=True))
        weights = nonzero.select((x - top).exp(), x * 0)
        return (weights / weights.sum(-1)).value
    if post_transform == "PROBIT":
        y = x * 2 - 1
        log = ((1 - y) * (y + 1)).log()
        half = log * 0.5 + 2 / (math.pi * _WINITZKI)
        size = ((half * half - log / _WINITZKI).sqrt() - half).sqrt() * math.sqrt(2)
        return (y < 0).select(-size, size).value
    raise OpError(f"post_transform {post_transform!r} is not known")


def scores_of_two(score: Expression, post_transform: str, *, complementary: bool) -> Value:
    """The scores of two classes, (rows, 2), from the score of the second, (rows, 1), after ``post_transform``.

    Args:
        score: the score before the transform.
        post_transform: applied to both scores, as by onnx.reference 1.23. ONNX Runtime 1.32 does so for LOGISTIC only.
        complementary: whether the first score is 1 minus the second; otherwise it is its negative.
    """
    first = 1 - score if complementary else -score
    both = score.ctx.emit("Concat", first.value, score.value, axis=1)
    return post_transformed(score.ctx, both, post_transform)


def labels_at(
    ctx: TranslationContext, index: Value, ints: Sequence[int] | None, strings: Sequence[str] | None
) -> Value:
    """Labels of classes by index."""
    if strings:
        return ctx.emit("Gather", ctx.constant(np.array(list(strings), object), STRING), index, ctx.constant(0))
    if not ints:
        raise OpError("the labels of the classes are missing")
    return ctx.emit("Gather", ctx.constant(np.array(ints, np.int64)), index, ctx.constant(0))


def best_class(ctx: TranslationContext, scores: Value) -> Value:
    """The index of the first maximum of each row."""
    top = ctx.emit(
        "TopK", scores, ctx.constant(1), axis=1, mode="max", sort="value", stable=True, index_element_type="i64"
    )
    return ctx.emit("Squeeze", top[1], [1])


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
        # The sum along the last axis of three.
        x = matrix * p.unsqueeze(1)
        product = Expression(x.ctx, x.ctx.emit("ReduceSum", x.value, [2], keep_dims=False))
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
