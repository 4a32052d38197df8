"""ai.onnx.ml: preprocessing and encoding of features; labels and categories, numbers or strings.

Source: ONNX-ML; where it is silent, ONNX Runtime ``ml_common.h``.

Source: ONNX-ML; where it is silent, ONNX Runtime ``label_encoder.h``, ``category_mapper.cc`` and
``onehotencoder.cc``. A lookup of strings is an operation of irexec, which OpenVINO does not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from onnx import TensorProto

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.movement import flattened
from converters.onnx.ops.ai_onnx.text import strings
from converters.onnx.registry import AI_ONNX_ML, translates
from converters.onnx.tensors import ScoresByLabel, array_of
from irexec.dtypes.elements import F32, I64, STRING, Element
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
    return ctx.shaped_as((moved * Expression(ctx, ctx.constant(np.array(scale or [1], np.float32)))).value, x)


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


@translates("OneHotEncoder", domain=AI_ONNX_ML)
def one_hot_encoder(
    ctx: TranslationContext, x: Value, *, cats_int64s: list[int] | None = None, cats_strings: list[str] | None = None,
    zeros: int = 1,
) -> Value:  # fmt: skip
    """One-hot categories; other values are all 0, even if ``zeros`` is 0. The last of equal categories counts."""
    is_string = ctx.element(x).kind == "string"
    categories: Sequence[int | str] = (cats_strings if is_string else cats_int64s) or []
    if not categories:
        raise OpError(f"{'cats_strings' if is_string else 'cats_int64s'} is missing for data of type {ctx.element(x)}")
    last = {category: i for i, category in enumerate(categories)}
    index = _index_of(ctx, x if is_string else ctx.convert(x, I64), np.array(list(last), object if is_string else None))
    columns = ctx.emit("Gather", ctx.constant(np.array([-1, *last.values()])), index, ctx.constant(0))
    wide = ctx.unsqueeze(columns, [ctx.rank(x)])
    return ctx.convert(ctx.emit("Equal", wide, ctx.constant(np.arange(len(categories)))), F32)


@translates("ZipMap", domain=AI_ONNX_ML)
def zip_map(
    ctx: TranslationContext, x: Value, *, classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
) -> ScoresByLabel:  # fmt: skip
    """Maps of labels to scores, which only an output of the graph can be: it becomes one output per label."""
    labels = tuple(map(str, classlabels_strings or classlabels_int64s or ()))
    columns = ctx.sizes(x)[-1] if ctx.rank(x) else 1
    if isinstance(columns, int) and columns != len(labels):
        raise OpError(f"there are {counted(len(labels), 'label')} for {counted(columns, 'score')}")
    if len(set(labels)) < len(labels):
        raise OpError("two classes have the same label")
    return ScoresByLabel(labels, x)


@translates("CategoryMapper", domain=AI_ONNX_ML)
def category_mapper(
    ctx: TranslationContext, x: Value, *, cats_int64s: list[int], cats_strings: list[str], default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:  # fmt: skip
    """Strings become integers, integers strings; the last of equal keys counts."""
    _check_pairs(cats_int64s, cats_strings)
    if ctx.element(x).kind == "string":
        numbers = dict(zip(cats_strings, cats_int64s, strict=True))
        return _mapped(ctx, x, np.array(list(numbers), object), list(numbers.values()), default_int64, I64)
    texts = dict(zip(cats_int64s, cats_strings, strict=True))
    return _mapped(ctx, x, np.array(list(texts)), list(texts.values()), default_string, STRING)


@translates("LabelEncoder", domain=AI_ONNX_ML)
def label_encoder_1(
    ctx: TranslationContext, x: Value, *, classes_strings: list[str], default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:  # fmt: skip
    """Strings become their indices in ``classes_strings``, integers the strings."""
    indices = list(range(len(classes_strings)))
    return category_mapper(
        ctx, x, cats_int64s=indices, cats_strings=classes_strings, default_int64=default_int64,
        default_string=default_string,
    )  # fmt: skip


@translates("LabelEncoder", since=2, domain=AI_ONNX_ML)
def label_encoder(
    ctx: TranslationContext, x: Value, *, default_float: float = -0.0, default_int64: int = -1,
    default_string: str = "_Unused", default_tensor: TensorProto | None = None, keys_floats: list[float] | None = None,
    keys_int64s: list[int] | None = None, keys_strings: list[str] | None = None, keys_tensor: TensorProto | None = None,
    values_floats: list[float] | None = None, values_int64s: list[int] | None = None,
    values_strings: list[str] | None = None, values_tensor: TensorProto | None = None,
) -> Value:  # fmt: skip
    """Values by keys; the default for other inputs. The first of equal keys counts. NaN can be a key since opset 4."""
    keys, key_kind = _table(keys_floats, keys_int64s, keys_strings, keys_tensor)
    values, kind = _table(values_floats, values_int64s, values_strings, values_tensor)
    if (key_kind.kind == "string") != (ctx.element(x).kind == "string"):
        raise OpError(f"the keys are of type {key_kind}, the data of type {ctx.element(x)}")
    defaults: dict[str, float | str] = {"f32": default_float, "i64": default_int64, "string": default_string}
    default = [defaults.get(kind.name, 0)] if default_tensor is None else array_of(default_tensor)[0].ravel().tolist()
    if not default:
        raise OpError("default_tensor is empty")
    _check_pairs(keys.tolist(), values.tolist())
    _, first = np.unique(keys.astype(str), return_index=True)
    kept = sorted(first.tolist())
    return _mapped(ctx, x, keys[kept], values[kept].tolist(), default[0], kind, has_nan=ctx.opset >= 4)


def _table(
    floats: list[float] | None, ints: list[int] | None, texts: list[str] | None, tensor: TensorProto | None
) -> tuple[np.ndarray, Element]:
    """Keys or values from the attribute that is given."""
    if tensor is not None:
        array, kind = array_of(tensor)
        return array.reshape(-1), kind
    if texts:
        return np.array(texts, object), STRING
    return (np.array(floats, np.float32), F32) if floats else (np.array(ints or [], np.int64), I64)


def _check_pairs(keys: Sequence[object], values: Sequence[object]) -> None:
    if len(keys) != len(values) or not keys:
        raise OpError(f"it has {counted(len(keys), 'key')} and {counted(len(values), 'value')}")


def _mapped(
    ctx: TranslationContext, x: Value, keys: np.ndarray, values: Sequence[float | str], default: float | str,
    kind: Element, has_nan: bool = False,
) -> Value:  # fmt: skip
    """The value of each element by its key, or the default."""
    table = np.array([default, *values], object).astype(kind.carrier)
    return ctx.emit("Gather", ctx.constant(table, kind), _index_of(ctx, x, keys, has_nan), ctx.constant(0))


def _index_of(ctx: TranslationContext, x: Value, keys: np.ndarray, has_nan: bool = False) -> Value:
    """The index of each element in distinct keys, counted from 1; 0 if it is none of them."""
    if keys.dtype == object:
        return ctx.emit("Add", ctx.emit("StringLookup", x, strings(ctx, keys.tolist())), ctx.constant(1))
    wide = ctx.unsqueeze(x, [ctx.rank(x)])
    hit = Expression(ctx, ctx.emit("Equal", wide, ctx.constant(keys.astype(ctx.element(x).carrier), ctx.element(x))))
    is_nan = np.isnan(keys.astype(np.float64))
    if has_nan and is_nan.any():
        hit = hit | (Expression(ctx, ctx.emit("IsNaN", wide)) & Expression(ctx, ctx.constant(is_nan)))
    positions = (hit.to(F32) * Expression(ctx, ctx.constant(np.arange(1, len(keys) + 1, dtype=np.float32)))).value
    return ctx.convert(ctx.emit("ReduceMax", positions, [-1], keep_dims=False), I64)
