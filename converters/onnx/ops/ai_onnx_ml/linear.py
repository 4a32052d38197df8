"""ai.onnx.ml: linear models."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.class_scores import best_class, labels_at, post_transformed, scores_of_two
from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import AI_ONNX_ML, translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


@translates("LinearRegressor", domain=AI_ONNX_ML)
def linear_regressor(
    ctx: TranslationContext, x: Value, *, coefficients: list[float], intercepts: list[float] | None = None,
    post_transform: str = "NONE", targets: int = 1,
) -> Value:  # fmt: skip
    return post_transformed(ctx, _linear(ctx, x, coefficients, intercepts, targets), post_transform)


def _linear(
    ctx: TranslationContext, x: Value, coefficients: list[float], intercepts: list[float] | None, targets: int
) -> Value:
    if targets < 1 or len(coefficients) % targets:
        raise OpError(f"{counted(len(coefficients), 'coefficient')} cannot be split into {targets} rows")
    matrix = ctx.constant(np.array(coefficients, np.float32).reshape(targets, -1))
    y = ctx.emit("MatMul", ctx.convert(x, F32), matrix, transpose_a=False, transpose_b=True)
    return ctx.emit("Add", y, ctx.constant(np.array(intercepts, np.float32))) if intercepts else y


@translates("LinearClassifier", domain=AI_ONNX_ML)
def linear_classifier(
    ctx: TranslationContext, x: Value, *, classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None, coefficients: list[float], intercepts: list[float] | None = None,
    multi_class: int = 0, post_transform: str = "NONE",
) -> tuple[Value, ...]:  # fmt: skip
    """A single row of coefficients belongs to the second of two labels, as in ONNX Runtime."""
    labels = classlabels_strings or classlabels_ints or []
    targets = len(intercepts) if intercepts else len(labels)
    scores = _linear(ctx, x, coefficients, intercepts, targets)
    if targets == 1 and len(labels) == 2:
        index = ctx.convert(ctx.emit("Squeeze", (Expression(ctx, scores) > 0).value, [1]), I64)
        complementary = post_transform in ("NONE", "PROBIT")
        both = scores_of_two(Expression(ctx, scores), post_transform, complementary=complementary)
        return labels_at(ctx, index, classlabels_ints, classlabels_strings), both
    return labels_at(ctx, best_class(ctx, scores), classlabels_ints, classlabels_strings), post_transformed(
        ctx, scores, post_transform
    )
