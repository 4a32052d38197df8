"""Scores of classes as probabilities and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from irexec.dtypes.elements import STRING
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
