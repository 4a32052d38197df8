"""Scores of classes as probabilities and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from irexec.dtypes.elements import STRING
from irexec.errors import OpError
from irexec.ir.graph import Value

# A constant of an approximation of the inverse error function. Source: Winitzki, 2008.
_WINITZKI = 0.147


def post_transformed(b: Context, scores: Value, post_transform: str) -> Value:
    """Scores, (rows, classes), after ``post_transform``."""
    x = Expression(b, scores)
    if post_transform == "NONE":
        return scores
    if post_transform == "LOGISTIC":
        return b.emit("Sigmoid", scores)
    if post_transform == "SOFTMAX":
        return b.emit("Softmax", scores, axis=-1)
    if post_transform == "SOFTMAX_ZERO":
        # A score of 0 stays 0 and is not part of the softmax.
        nonzero = abs(x) > 1e-7
        top = Expression(b, b.emit("ReduceMax", scores, [-1], keep_dims=True))
        weights = nonzero.select((x - top).exp(), x * 0)
        return (weights / weights.sum(-1)).value
    if post_transform == "PROBIT":
        y = x * 2 - 1
        log = ((1 - y) * (y + 1)).log()
        half = log * 0.5 + 2 / (math.pi * _WINITZKI)
        size = ((half * half - log / _WINITZKI).sqrt() - half).sqrt() * math.sqrt(2)
        return (y < 0).select(-size, size).value
    raise OpError(f"post_transform is {post_transform!r}")


def labels_at(b: Context, index: Value, ints: Sequence[int] | None, strings: Sequence[str] | None) -> Value:
    """The labels of the classes with these indices."""
    if strings:
        return b.emit("Gather", b.constant(np.array(list(strings), object), STRING), index, b.constant(0))
    if not ints:
        raise OpError("the labels of the classes are missing")
    return b.emit("Gather", b.constant(np.array(ints, np.int64)), index, b.constant(0))


def best_class(b: Context, scores: Value) -> Value:
    """The index of the maximum of each row, the first of equal ones."""
    top = b.emit("TopK", scores, b.constant(1), axis=1, mode="max", sort="value", stable=True, index_element_type="i64")
    return b.emit("Squeeze", top[1], [1])
