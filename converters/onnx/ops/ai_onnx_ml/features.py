"""ai.onnx.ml: preprocessing and encoding of features.

Source: ONNX-ML; where it is silent, ONNX Runtime ``ml_common.h``.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.movement import flattened
from converters.onnx.registry import AI_ONNX_ML, translates
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


@translates("Binarizer", domain=AI_ONNX_ML)
def binarizer(ctx: TranslationContext, x: Value, *, threshold: float = 0.0) -> Value:
    return ctx.convert(ctx.emit("Greater", x, ctx.constant(threshold, x)), ctx.element(x))


@translates("ArrayFeatureExtractor", domain=AI_ONNX_ML)
def array_feature_extractor(ctx: TranslationContext, x: Value, indices: Value) -> Value:
    """Columns of the last axis; a vector counts as one row."""
    x = ctx.unsqueeze(x, [0]) if ctx.rank(x) == 1 else x
    return ctx.emit("Gather", x, ctx.emit("Reshape", indices, [-1], special_zero=False), ctx.constant(ctx.rank(x) - 1))


@translates("Scaler", domain=AI_ONNX_ML)
def scaler(
    ctx: TranslationContext, x: Value, *, offset: list[float] | None = None, scale: list[float] | None = None
) -> Value:
    moved = Expression(ctx, ctx.convert(x, F32)) - Expression(ctx, ctx.constant(np.array(offset or [0], np.float32)))
    return (moved * Expression(ctx, ctx.constant(np.array(scale or [1], np.float32)))).value


@translates("Normalizer", domain=AI_ONNX_ML)
def normalizer(ctx: TranslationContext, x: Value, *, norm: Literal["MAX", "L1", "L2"] = "MAX") -> Value:
    """Rows divided by their maximum, L1 norm or L2 norm; a row of norm 0 is unchanged."""
    wide = Expression(ctx, ctx.convert(x, F32))
    size = Expression(ctx, ctx.emit(f"Reduce{norm.capitalize()}", wide.value, [-1], keep_dims=True))
    return (wide / size.equals(0).select(1, size)).value


@translates("Imputer", domain=AI_ONNX_ML)
def imputer(
    ctx: TranslationContext, x: Value, *, imputed_value_floats: list[float] | None = None,
    imputed_value_int64s: list[int] | None = None, replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Value:  # fmt: skip
    """Missing values replaced by one value per column; all NaN are equal."""
    kind = ctx.element(x)
    given: list[float] | list[int] = imputed_value_floats or imputed_value_int64s or []
    if len(given) == 0:
        raise OpError("neither imputed_value_floats nor imputed_value_int64s is given")
    columns = (ctx.fact(x).shape or (None,))[-1]
    if len(given) > 1 and isinstance(columns, int) and columns != len(given):
        raise OpError(f"there are {counted(len(given), 'imputed value')} for {counted(columns, 'column')} of the data")
    old = replaced_value_float if kind.is_float else replaced_value_int64
    missing = ctx.emit("IsNaN", x) if kind.is_float and math.isnan(old) else ctx.emit("Equal", x, ctx.constant(old, x))
    return ctx.emit("Select", missing, ctx.constant(np.array(given), kind), x)


@translates("FeatureVectorizer", domain=AI_ONNX_ML)
def feature_vectorizer(ctx: TranslationContext, *inputs: Value, inputdimensions: list[int] | None = None) -> Value:
    """The columns of several tensors, cut or filled with zeros to inputdimensions, concatenated as f32.

    Source: ONNX Runtime, where the specification is silent. A vector is a row; the reference evaluator of ONNX reads it
    as a column, against the specification.
    """
    if inputdimensions is not None and (
        len(inputdimensions) != len(inputs) or any(count < 0 for count in inputdimensions)
    ):
        expected = f"expected a number of columns for each of {counted(len(inputs), 'input')}"
        raise OpError(f"inputdimensions is {inputdimensions}, {expected}")
    rows = [_rows(ctx, ctx.convert(x, F32)) for x in inputs]
    if inputdimensions is not None:
        rows = [_of_columns(ctx, x, count) for x, count in zip(rows, inputdimensions, strict=True)]
    return ctx.emit("Concat", *rows, axis=1)


def _rows(ctx: TranslationContext, x: Value) -> Value:
    """The data with two axes: a vector as one row, axes after the first flattened."""
    rank = ctx.rank(x)
    return x if rank == 2 else ctx.unsqueeze(x, [0]) if rank == 1 else flattened(ctx, x, 1)


def _of_columns(ctx: TranslationContext, x: Value, count: int) -> Value:
    columns = ctx.sizes(x)[1]
    if columns == count:
        return x
    missing = count - columns if isinstance(columns, int) else count
    if missing > 0:
        x = ctx.emit("Pad", x, [0, 0], [0, missing], ctx.constant(0, x), pad_mode="constant")
    return ctx.emit("Slice", x, [0], [count], [1], [1])
