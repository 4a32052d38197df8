"""Pooling."""

from __future__ import annotations

import math

import numpy as np

from converters.onnx.context import Context
from converters.onnx.ops.windows import ir_auto_pad, same_pads
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


def _spatial(numbers: list[int] | None, rank: int, default: int, what: str) -> list[int]:
    found = [default] * rank if not numbers else list(numbers)
    if len(found) != rank:
        raise OpError(f"{what} has {len(found)} numbers, expected {rank}")
    return found


@translates("MaxPool")
def max_pool(
    b: Context, x: Value, *, kernel_shape: list[int], auto_pad: str = "NOTSET", pads: list[int] | None = None,
    strides: list[int] | None = None, dilations: list[int] | None = None, ceil_mode: int = 0, storage_order: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """Rounded up, no window starts behind the data: that is ceil_torch."""
    rank = len(kernel_shape)
    both = _spatial(pads, 2 * rank, 0, "pads")
    values, places = b.emit(
        "MaxPool", x, version=14, kernel=list(kernel_shape), strides=_spatial(strides, rank, 1, "strides"),
        dilations=_spatial(dilations, rank, 1, "dilations"), pads_begin=both[:rank], pads_end=both[rank:], auto_pad=ir_auto_pad(auto_pad),
        rounding_type="ceil_torch" if ceil_mode else "floor", index_element_type="i64", axis=0,
    )  # fmt: skip
    if storage_order and len(b.outputs) > 1 and b.outputs[1]:
        places = _column_major(b, places, b.static(x, "data"))
    return values, places


def _column_major(b: Context, places: Value, shape: tuple[int, ...]) -> Value:
    """Row-major places turned into places that count the first spatial axis fastest."""
    spatial = shape[2:]
    area = math.prod(spatial)
    inner = b.emit("FloorMod", places, b.constant(area))
    result = b.emit("Subtract", places, inner)
    row, column = area, 1
    for size in spatial:
        row //= size
        index = b.emit("FloorMod", b.emit("Divide", inner, b.constant(row)), b.constant(size))
        result = b.emit("Add", result, b.emit("Multiply", index, b.constant(column)))
        column *= size
    return result


@translates("AveragePool")
def average_pool(
    b: Context, x: Value, *, kernel_shape: list[int], auto_pad: str = "NOTSET", pads: list[int] | None = None,
    strides: list[int] | None = None, dilations: list[int] | None = None, ceil_mode: int = 0, count_include_pad: int = 0,
) -> Value:  # fmt: skip
    """With count_include_pad the padding is added as zeros first: so what lies beyond it does not count."""
    rank = len(kernel_shape)
    steps, apart = _spatial(strides, rank, 1, "strides"), _spatial(dilations, rank, 1, "dilations")
    both = _spatial(pads, 2 * rank, 0, "pads")
    mode = ir_auto_pad(auto_pad)
    if count_include_pad:
        if mode.startswith("same"):
            both = same_pads(b.static(x, "data")[2:], kernel_shape, steps, apart, upper=mode == "same_upper")
        if any(both) and mode != "valid":
            x = b.emit("Pad", x, [0, 0, *both[:rank]], [0, 0, *both[rank:]], b.constant(0, x), pad_mode="constant")
        both, mode = [0] * (2 * rank), "explicit"
    dilated = {"dilations": apart} if any(step != 1 for step in apart) else {}
    return b.emit(
        "AvgPool", x, version=16 if dilated else 14, kernel=list(kernel_shape), strides=steps, pads_begin=both[:rank], pads_end=both[rank:],
        auto_pad=mode, rounding_type="ceil_torch" if ceil_mode else "floor", exclude_pad=True, **dilated,
    )  # fmt: skip


def _everywhere(b: Context, x: Value) -> list[int]:
    return list(range(2, b.rank(x)))


@translates("GlobalAveragePool")
def global_average_pool(b: Context, x: Value) -> Value:
    return b.emit("ReduceMean", x, _everywhere(b, x), keep_dims=True)


@translates("GlobalMaxPool")
def global_max_pool(b: Context, x: Value) -> Value:
    return b.emit("ReduceMax", x, _everywhere(b, x), keep_dims=True)


@translates("GlobalLpPool")
def global_lp_pool(b: Context, x: Value, *, p: float = 2) -> Value:
    raised = b.emit("Power", b.emit("Abs", x), b.constant(float(p), x))
    return b.emit("Power", b.emit("ReduceSum", raised, _everywhere(b, x), keep_dims=True), b.constant(1 / p, x))


@translates("LpPool")
def lp_pool(
    b: Context, x: Value, *, kernel_shape: list[int], auto_pad: str = "NOTSET", pads: list[int] | None = None,
    strides: list[int] | None = None, dilations: list[int] | None = None, ceil_mode: int = 0, p: float = 2,
) -> Value:  # fmt: skip
    """The root of the sum of powers: a mean of powers times the number of points, padding being 0."""
    rank = len(kernel_shape)
    steps, apart = _spatial(strides, rank, 1, "strides"), _spatial(dilations, rank, 1, "dilations")
    both = _spatial(pads, 2 * rank, 0, "pads")
    mode = ir_auto_pad(auto_pad)
    if mode.startswith("same"):
        both = same_pads(b.static(x, "data")[2:], kernel_shape, steps, apart, upper=mode == "same_upper")
    elif mode == "valid":
        both = [0] * (2 * rank)
    raised = b.emit("Power", b.emit("Abs", x), b.constant(float(p), x))
    if ceil_mode:
        both = _stretched(b.static(x, "data")[2:], kernel_shape, steps, apart, both)
    if any(both):
        raised = b.emit("Pad", raised, [0, 0, *both[:rank]], [0, 0, *both[rank:]], b.constant(0, x), pad_mode="constant")
    zeros = [0] * rank
    dilated = {"dilations": apart} if any(step != 1 for step in apart) else {}
    means = b.emit(
        "AvgPool", raised, version=16 if dilated else 14, kernel=list(kernel_shape), strides=steps, pads_begin=zeros, pads_end=zeros,
        auto_pad="explicit", rounding_type="floor", exclude_pad=True, **dilated,
    )  # fmt: skip
    return b.emit("Power", b.emit("Multiply", means, b.constant(float(np.prod(kernel_shape)), x)), b.constant(1 / p, x))


def _stretched(sizes: tuple[int, ...], kernel: list[int], strides: list[int], dilations: list[int], pads: list[int]) -> list[int]:
    """Pads whose ends let every window of a count rounded up fit."""
    rank = len(kernel)
    ends = []
    for i in range(rank):
        reach = dilations[i] * (kernel[i] - 1) + 1
        whole = sizes[i] + pads[i] + pads[rank + i]
        count = -(-(whole - reach) // strides[i]) + 1
        if (count - 1) * strides[i] >= sizes[i] + pads[i]:
            count -= 1
        ends.append(max(pads[rank + i], (count - 1) * strides[i] + reach - sizes[i] - pads[i]))
    return [*pads[:rank], *ends]
