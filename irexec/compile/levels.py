"""Operations on levels, which no IR has: a pass makes them of FakeQuantize and of the products that read it.

A tensor of levels is u8; it stands for ``(level - zero) * step`` of its Grid. A product of levels and small integers is
a sum of integers, exact in 32 bits, which is scaled once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from irexec.backend.fake_quantize import refuse_nan
from irexec.dtypes.elements import F32, U8
from irexec.ir.facts import Fact
from irexec.reference.convolution import convolve, convolve_transposed
from irexec.reference.grids import Grid, Scores
from irexec.reference.integers import nearest_levels, quantised_rows
from irexec.schema.convolution import BackpropAttributes, ConvolutionAttributes
from irexec.schema.opdef import AnyTensor, FloatTensor, OpDef
from irexec.schema.registry import resolve

SPACE = "irexec"


def _quantize(data: FloatTensor, *ranges: FloatTensor, grid: Grid) -> np.ndarray:
    """The levels nearest to the data. ``ranges`` are the bounds where there is more than one range: their shapes show
    along which axes they vary. A NaN raises NanHasNoLevelError."""
    refuse_nan(data)
    low, high = grid.along(grid.input_low, data.ndim), grid.along(grid.input_high, data.ndim)
    return nearest_levels(np.clip(data, low, high), low, high, grid.levels).astype(np.uint8)


def _dequantize(data: AnyTensor, *, grid: Grid) -> np.ndarray:
    """The values of levels."""
    return grid.values[data]


def _add_levels(data: FloatTensor, other: AnyTensor, *, grid: Grid) -> np.ndarray:
    """The data plus the values of levels of the same shape."""
    return np.asarray(data + grid.values[other])


def _sums(data: np.ndarray, grid: Grid) -> np.ndarray:
    return data.astype(np.float64) - grid.zero


def _convolution(
    data: AnyTensor, filter: AnyTensor, scale: FloatTensor, *, attributes: ConvolutionAttributes, grid: Grid
) -> np.ndarray:
    """Convolution of levels by integers (O, I, kernel...), each output channel scaled."""
    return _group_convolution(data, filter[None], scale, attributes=attributes, grid=grid)


def _group_convolution(
    data: AnyTensor, filter: AnyTensor, scale: FloatTensor, *, attributes: ConvolutionAttributes, grid: Grid
) -> np.ndarray:
    """GroupConvolution of levels by integers (G, O, I, kernel...), each output channel scaled."""
    placed = attributes.windows(data.shape[2:], filter.shape[3:])
    sums = convolve(_sums(data, grid), filter.astype(np.float64), placed)
    scales = scale.astype(np.float64).reshape(-1, *(1,) * (data.ndim - 2))
    steps = grid.step.reshape(-1, *(1,) * (data.ndim - 2))
    return (sums * (scales * steps)).astype(np.float32)


def _backprop(
    data: AnyTensor, filter: AnyTensor, scale: FloatTensor, *, attributes: BackpropAttributes, grid: Grid
) -> np.ndarray:
    """ConvolutionBackpropData of levels by integers (I, O, kernel...), each output channel scaled."""
    placed = attributes.windows(data.shape[2:], filter.shape[2:], None)
    sums = convolve_transposed(_sums(data, grid), filter[None].astype(np.float64), placed)
    scales = scale.astype(np.float64).reshape(-1, *(1,) * (data.ndim - 2))
    return (sums * (scales * grid.step)).astype(np.float32)


def _matmul(
    data: AnyTensor, matrix: AnyTensor, scale: FloatTensor, *, transpose_a: bool, transpose_b: bool, grid: Grid
) -> np.ndarray:
    """MatMul of levels by a matrix of integers, each column scaled."""
    rows = np.swapaxes(data, -1, -2) if transpose_a else data
    columns = matrix.T if transpose_b else matrix
    sums = np.matmul(_sums(rows, grid), columns.astype(np.float64))
    return (sums * (scale.astype(np.float64) * grid.step)).astype(np.float32)


def _dynamic_matmul(
    data: FloatTensor,
    matrix: AnyTensor,
    scale: FloatTensor,
    zero: FloatTensor,
    *,
    transpose_a: bool,
    transpose_b: bool,
    group: int,
) -> np.ndarray:
    """MatMul of rows, which are quantised by groups, by the transpose of a matrix of integers (columns, depth) with
    scales and zero points (columns, groups of the matrix)."""
    rows = np.swapaxes(data, -1, -2) if transpose_a else data
    levels, scales = quantised_rows(rows, group)
    values = (levels.astype(np.float64) * scales).reshape(*rows.shape[:-1], -1)[..., : rows.shape[-1]]
    integers = matrix.astype(np.float64).reshape(*scale.shape, -1) - zero[:, :, None]
    weights = (integers * scale[:, :, None]).reshape(matrix.shape)
    return np.matmul(values, weights.T).astype(np.float32)


def _attention(
    query: AnyTensor,
    key: AnyTensor,
    value: FloatTensor,
    attention_mask: AnyTensor | None = None,
    scale: FloatTensor | None = None,
    sink: FloatTensor | None = None,
    *,
    causal: bool,
    scores: Scores,
) -> np.ndarray:
    """ScaledDotProductAttention of levels of queries and of keys."""
    queries = ((query.astype(np.float64) - scores.query_zero) * scores.step).astype(np.float32)
    keys = (key.astype(np.int64) - scores.key_zero).astype(np.float32)
    attention = resolve("ScaledDotProductAttention", "opset13")
    result: np.ndarray = attention.kernel(queries, keys, value, attention_mask, scale, sink, causal=causal)
    return result


QUANTIZE = OpDef("Quantize", SPACE, _quantize)
DEQUANTIZE = OpDef("Dequantize", SPACE, _dequantize)
ADD_LEVELS = OpDef("AddLevels", SPACE, _add_levels)
CONVOLUTION = OpDef("IntegerConvolution", SPACE, _convolution, tolerance=1e-5)
GROUP_CONVOLUTION = OpDef("IntegerGroupConvolution", SPACE, _group_convolution, tolerance=1e-5)
BACKPROP = OpDef("IntegerConvolutionBackpropData", SPACE, _backprop, tolerance=1e-5)
MATMUL = OpDef("IntegerMatMul", SPACE, _matmul, tolerance=1e-5)
DYNAMIC_MATMUL = OpDef("DynamicMatMul", SPACE, _dynamic_matmul, tolerance=1e-5)
ATTENTION = OpDef("IntegerAttention", SPACE, _attention, tolerance=1e-5)


@QUANTIZE.shape_rule
def _of_levels(data: Fact, *ranges: Fact) -> Fact:
    return Fact(U8, data.shape)


@DEQUANTIZE.shape_rule
def _of_values(data: Fact) -> Fact:
    return Fact(F32, data.shape)


@ADD_LEVELS.shape_rule
def _of_sums(data: Fact, other: Fact) -> Fact:
    return Fact(F32, data.shape)


def _of_products(type: str, data: Fact, weights: Fact, *others: Fact, **arguments: Any) -> Fact:
    """The result of an operation on floats of these shapes."""
    found: Fact = resolve(type, "opset1").facts((Fact(F32, data.shape), Fact(F32, weights.shape)), arguments)
    return found


for _definition, _type in (
    (CONVOLUTION, "Convolution"),
    (GROUP_CONVOLUTION, "GroupConvolution"),
    (BACKPROP, "ConvolutionBackpropData"),
    (MATMUL, "MatMul"),
    (DYNAMIC_MATMUL, "MatMul"),
):
    _definition.shape_rule(functools.partial(_of_products, _type))


@ATTENTION.shape_rule
def _of_attention(query: Fact, key: Fact, *others: Fact | None, causal: bool) -> Fact:
    whole = (Fact(F32, query.shape), Fact(F32, key.shape), *others)
    found: Fact = resolve("ScaledDotProductAttention", "opset13").facts(whole, {"causal": causal})
    return found


def grid_attributes(grid: Grid) -> dict[str, object]:
    """The fields of a grid as attributes of an operation."""
    names = ("levels", "input_low", "input_high", "output_low", "output_high")
    return {name: getattr(grid, name) for name in names}


PRODUCTS: Mapping[str, OpDef] = {
    "Convolution": CONVOLUTION,
    "GroupConvolution": GROUP_CONVOLUTION,
    "ConvolutionBackpropData": BACKPROP,
    "MatMul": MATMUL,
}
"""The products that are computed in integers, and their operations on levels."""

THROUGH = frozenset(
    {
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "MaxPool",
        "Concat",
        "Split",
        "VariadicSplit",
        "Slice",
        "StridedSlice",
    }
)
"""Operations whose results on levels are the levels of their results; a Concat of tensors that have the same levels."""
