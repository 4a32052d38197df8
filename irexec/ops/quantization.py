"""FakeQuantize and FakeConvert: quantization and 8-bit floating-point types simulated in wider types."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.bfloat16 import round_bf16
from irexec.dtypes.elements import BF16, F16, F32
from irexec.errors import check
from irexec.ir.dims import broadcastable_to, may_equal, meet, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.reference.quantization import level_values, nearest_levels, round_e4m3, round_e5m2
from irexec.schema.attributes import AtLeast
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.elementwise import align
from irexec.schema.injected import ElementTypes
from irexec.schema.inputs import FloatTensor, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements


@op("FakeQuantize", since=1)
def fake_quantize_1(
    data: FloatTensor,
    input_low: FloatTensor,
    input_high: FloatTensor,
    output_low: FloatTensor,
    output_high: FloatTensor,
    *,
    levels: Annotated[int, AtLeast(2)],
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """The nearest of ``levels`` levels from input_low to input_high, mapped to output_low..output_high.

    At or below the smaller input bound it is output_low, above the larger one output_high; halves are rounded to even.
    Levels are computed in f64 and rounded once; the one that is 0 but for the rounding of the bounds is 0 (see
    ``zero_level``). Source: FakeQuantize-1 and openvino ``reference/fake_quantize.hpp``.
    """
    low, high, out_low, out_high = (
        align(data, bound, auto_broadcast, auto_broadcast_axis)[1]
        for bound in (input_low, input_high, output_low, output_high)
    )
    with np.errstate(all="ignore"):
        inside = level_values(nearest_levels(data, low, high, levels), out_low, out_high, levels)
    np.copyto(inside, out_low, where=data <= np.minimum(low, high))
    np.copyto(inside, out_high, where=data > np.maximum(low, high))
    return inside


@fake_quantize_1.shape_rule
def _fake_quantize_1_facts(
    data: Fact,
    input_low: Fact,
    input_high: Fact,
    output_low: Fact,
    output_high: Fact,
    *,
    auto_broadcast: Broadcasting,
    auto_broadcast_axis: int | None,
) -> Fact:
    kind = unify_elements(data, input_low, input_high, output_low, output_high)
    for bound in (input_low, input_high, output_low, output_high):
        if auto_broadcast != "numpy":
            broadcast([data.shape, bound.shape], auto_broadcast, auto_broadcast_axis)
        elif data.shape is not None and bound.shape is not None:
            text = f"bound {shape_text(bound.shape)} cannot be broadcast to data {shape_text(data.shape)}"
            check(broadcastable_to(bound.shape, data.shape), text)
    return Fact(kind, data.shape)


ConvertedTensor = Annotated[np.ndarray, element_set("f16, bf16 or f32", F16, BF16, F32)]


@op("FakeConvert", since=13)
def fake_convert_13(
    data: ConvertedTensor,
    scale: ConvertedTensor,
    shift: ConvertedTensor | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """data * scale - shift rounded to f16 and then to an 8-bit float type, and converted back: (x + shift) / scale.

    The 8-bit types are rounded and saturated differently than by Convert, see irexec.reference.quantization. Each step
    is rounded to the type of the data. Source: FakeConvert-13 and openvino ``reference/src/op/fake_convert.cpp``.
    """
    rounded = round_bf16 if elements and elements[0] is BF16 else np.asarray
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = rounded(data * scale)
        scaled = scaled if shift is None else rounded(scaled - shift)
        halves = scaled.astype(np.float16)
        result = (round_e5m2(halves) if destination_type == "f8e5m2" else round_e4m3(halves)).astype(data.dtype)
        result = result if shift is None else rounded(result + shift)
        return np.asarray(result / scale, data.dtype)


@fake_convert_13.shape_rule
def _fake_convert_13_facts(data: Fact, scale: Fact, shift: Fact | None = None) -> Fact:
    kind = unify_elements(*(fact for fact in (data, scale, shift) if fact is not None))
    shape = data.shape
    if scale.shape is not None and shape is not None:
        fits = broadcastable_to(scale.shape, shape)
        check(fits, f"scale {shape_text(scale.shape)} cannot be broadcast to data {shape_text(shape)}")
        lead = len(shape) - len(scale.shape)
        sizes = (
            size if may_equal(by, 1) else meet(size, by) for size, by in zip(shape[lead:], scale.shape, strict=True)
        )
        shape = (*shape[:lead], *sizes)
    if shift is not None and shift.shape is not None and scale.shape is not None:
        meet_shapes(scale.shape, shift.shape)
    return Fact(kind, shape)
