"""ai.onnx.ml: linear models and support vector machines.

Source: ONNX-ML; where it is silent, ONNX Runtime ``svmclassifier.cc`` and ``svmregressor.cc``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from converters.onnx.algorithms.class_scores import best_class, coupled, labels_at, post_transformed, scores_of_two
from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated
from converters.onnx.registry import AI_ONNX_ML, translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.schema.opdef import Rank


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


@dataclass(frozen=True)
class _Kernel:
    """The similarity of samples to support vectors.

    Attributes:
        type: LINEAR, POLY, RBF or SIGMOID.
        vectors: (vectors, features).
        gamma, offset, degree: parameters of the kernel.
    """

    type: str
    vectors: np.ndarray
    gamma: float
    offset: float
    degree: float

    def of(self, ctx: TranslationContext, x: Value) -> Value:
        """The similarities (rows, vectors) for ``x``, (rows, features)."""
        if self.type == "LINEAR":
            return _product(ctx, x, self.vectors.T)
        if self.type == "RBF":
            return self._radial(ctx, x)
        scaled = Expression(ctx, _product(ctx, x, self.vectors.T)) * self.gamma + self.offset
        return ctx.emit("Tanh", scaled.value) if self.type == "SIGMOID" else (scaled**self.degree).value

    def _radial(self, ctx: TranslationContext, x: Value) -> Value:
        """The radial basis function. Distances are between centred vectors: large offsets would cancel inexactly."""
        center = self.vectors.mean(0, keepdims=True)
        vectors = self.vectors - center
        moved = Expression(ctx, x) - Expression(ctx, ctx.constant(center))
        products = Expression(ctx, _product(ctx, moved.value, vectors.T))
        of_rows = Expression(ctx, ctx.emit("ReduceSum", (moved * moved).value, [1], keep_dims=True))
        of_vectors = Expression(ctx, ctx.constant((vectors**2).sum(1)[None]))
        distance = ctx.emit("Relu", (of_rows + of_vectors - products * 2).value)
        return (Expression(ctx, distance) * -self.gamma).exp().value


def _kernel(type: str, parameters: list[float] | None, vectors: list[float], count: int) -> _Kernel:
    if type not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        raise OpError(f"kernel_type is {type!r}, expected LINEAR, POLY, RBF or SIGMOID")
    if len(parameters or []) != 3 and (parameters or type != "LINEAR"):
        raise OpError(f"kernel_params has {counted(len(parameters or []), 'value')}, expected gamma, coef0 and degree")
    if count < 1 or not vectors or len(vectors) % count:
        raise OpError(f"support_vectors has {counted(len(vectors), 'value')}, which are not {count} vectors")
    gamma, offset, degree = parameters or (0.0, 0.0, 0.0)
    return _Kernel(type, np.array(vectors, np.float32).reshape(count, -1), gamma, offset, degree)


def _product(ctx: TranslationContext, x: Value, matrix: np.ndarray) -> Value:
    return ctx.emit(
        "MatMul", x, ctx.constant(np.ascontiguousarray(matrix, np.float32)), transpose_a=False, transpose_b=False
    )


@translates("SVMRegressor", domain=AI_ONNX_ML)
def svm_regressor(
    ctx: TranslationContext, x: Annotated[Value, Rank(2)], *, coefficients: list[float],
    kernel_params: list[float] | None = None, kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0,
    post_transform: str = "NONE", rho: list[float], support_vectors: list[float] | None = None,
) -> Value:  # fmt: skip
    """One score per row; 1 or -1 for one class. ONNX Runtime ignores ``post_transform``."""
    wide = ctx.convert(x, F32)
    weights = np.array(coefficients, np.float32).reshape(-1, 1)
    if n_supports:
        if len(weights) != n_supports:
            raise OpError(
                f"coefficients has {counted(len(weights), 'value')}, expected {n_supports} for as many support vectors"
            )
        wide = _kernel(kernel_type, kernel_params, support_vectors or [], n_supports).of(ctx, wide)
    if len(rho) < 1:
        raise OpError("rho is empty")
    score = Expression(ctx, _product(ctx, wide, weights)) + rho[0]
    if not one_class:
        return score.value
    return (Expression(ctx, ctx.convert((score > 0).value, F32)) * 2 - 1).value


@translates("SVMClassifier", domain=AI_ONNX_ML)
def svm_classifier(
    ctx: TranslationContext, x: Annotated[Value, Rank(2)], *, classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None, coefficients: list[float], kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR", post_transform: str = "NONE", prob_a: list[float] | None = None,
    prob_b: list[float] | None = None, rho: list[float], support_vectors: list[float] | None = None,
    vectors_per_class: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The label with the most votes of the pairs of classes, and the scores of pairs; for two classes, of classes.

    With ``prob_a`` and ``prob_b`` the scores are probabilities of the classes; the label still has the most votes.
    """
    counts = vectors_per_class or []
    if len(counts) < 2:
        raise ConversionError(
            "a classifier without support vectors of two or more classes cannot be converted", unsupported=True
        )
    expected = len(counts) * (len(counts) - 1) // 2
    if len(rho) != expected:
        raise OpError(f"rho has {counted(len(rho), 'value')}, expected {expected} for {counted(len(counts), 'class')}")
    if len(classlabels_strings or classlabels_ints or []) != len(counts):
        raise OpError(f"the number of labels is not that of the {counted(len(counts), 'class')} with vectors")
    for rows in (sum(counts), len(counts)):
        check_generated((rows, expected), F32, "the weights of the pairs of classes")
    pairs = list(combinations(range(len(counts)), 2))
    kernel = _kernel(kernel_type, kernel_params, support_vectors or [], sum(counts)).of(ctx, ctx.convert(x, F32))
    scores = Expression(ctx, _product(ctx, kernel, _of_pairs(coefficients, counts, pairs)))
    scores = scores + Expression(ctx, ctx.constant(np.array([rho], np.float32)))
    label = labels_at(
        ctx, best_class(ctx, _votes(ctx, scores, len(counts), pairs)), classlabels_ints, classlabels_strings
    )
    if prob_a or prob_b:
        probabilities = coupled(ctx, _of_scores(scores, prob_a or [], prob_b or []), pairs, len(counts))
        return label, post_transformed(ctx, probabilities, post_transform)
    if len(counts) > 2:
        return label, post_transformed(ctx, scores.value, post_transform)
    if post_transform == "PROBIT":
        raise ConversionError("PROBIT of two classes cannot be converted", unsupported=True)
    return label, scores_of_two(scores, post_transform, complementary=False)


def _of_scores(scores: Expression, slopes: list[float], offsets: list[float]) -> Expression:
    """The probability of the first class of each pair, (rows, pairs)."""
    ctx = scores.ctx
    count = ctx.sizes(scores.value)[1]
    if len(slopes) != count or len(offsets) != count:
        raise OpError(f"prob_a and prob_b have {len(slopes)} and {len(offsets)} values, expected {count}")
    a, b = (Expression(ctx, ctx.constant(np.array([values], np.float32))) for values in (slopes, offsets))
    return Expression(ctx, ctx.emit("Sigmoid", (-(scores * a + b)).value))


def _of_pairs(coefficients: list[float], counts: list[int], pairs: list[tuple[int, int]]) -> np.ndarray:
    """The weight of each vector in the score of each pair, (vectors, pairs).

    The coefficients of a class have one row per other class, in the order of the classes.
    """
    ends = np.cumsum(counts)
    expected = (len(counts) - 1) * ends[-1]
    if min(counts) < 0 or len(coefficients) != expected:
        found = counted(len(coefficients), "value")
        raise OpError(f"coefficients has {found}, expected {expected} for vectors_per_class {counts}")
    given = np.array(coefficients, np.float32).reshape(len(counts) - 1, -1)
    weights = np.zeros((given.shape[1], len(pairs)), np.float32)
    for k, (i, j) in enumerate(pairs):
        for of, row in ((i, j - 1), (j, i)):
            own = slice(ends[of] - counts[of], ends[of])
            weights[own, k] = given[row, own]
    return weights


def _votes(ctx: TranslationContext, scores: Expression, classes: int, pairs: list[tuple[int, int]]) -> Value:
    """Number of pairs that each class wins, (rows, classes): the first of a pair wins with a positive score."""
    first, second = (np.eye(classes, dtype=np.float32)[[pair[side] for pair in pairs]] for side in (0, 1))
    won = ctx.convert((scores > 0).value, F32)
    return ctx.emit("Add", _product(ctx, won, first - second), ctx.constant(second.sum(0, keepdims=True)))
