"""Differences in values of quantised tensors and compressed weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import decompressed, difference, layer_xml
from irexec.ir.order import in_front

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.graph import Node, Value

_INTEGER = 1e-3
"""A zero point is rounded by less than what can be seen."""
_POOLS = frozenset({"MaxPool", "AvgPool"})
_AROUND_POOLS = _POOLS | {"FakeQuantize", "Relu", "PRelu", "Clamp", "Add", "Multiply"}
_CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})


@difference(
    "IR939", "level of zero", ("FakeQuantize",), "CPU plugin", "values",
    does="the CPU plugin rounds the step between two levels to f32, so that levels are up to two ulps of the "
    "range off and the one that is meant to be 0 is not; irexec has exact levels, rounded once, and 0",
    example=layer_xml("FakeQuantize-1", 'levels="256"'),
    repair="Where zeros matter, as in 0 / 0 or under padding, begin the range with 0 or choose a step that is a "
    "power of two.",
)  # fmt: skip
def _beside_zero(layer: ExaminedLayer) -> bool:
    from irexec.reference.integers import is_zero_inexact_in_f32

    begin, end, levels = layer.value(3), layer.value(4), layer["levels"]
    return levels is not None and begin is not None and end is not None and is_zero_inexact_in_f32(begin, end, levels)


@difference(
    "IR999", "one end by channel", ("FakeQuantize",), "CPU plugin", "values", since="2023.3",
    does="with 15, 16, 255 or 256 levels the CPU plugin gives wrong values, off by up to the whole range, where one "
    "end of the output range varies by channel and the other does not, unless LP_TRANSFORMS_MODE is NO",
    example=layer_xml("Const-1", 'element_type="f32" shape="1,3,1,1"', name="low") + "\n"
    + layer_xml("Const-1", 'element_type="f32" shape=""', name="high") + "\n"
    + layer_xml("FakeQuantize-1", 'levels="256"', name="quantised"),
    repair="Repeat the other end for each channel.",
)  # fmt: skip
def _one_end_by_channel(layer: ExaminedLayer) -> bool:
    """2023.3 to 2026.4 were asked beside the formula in f64, with 2 to 65,536 levels and ends of both ranges."""
    ends = [layer.shape(index) for index in (3, 4)]
    is_lowered = layer["levels"] in (15, 16, 255, 256) and layer.is_constant(3) and layer.is_constant(4)
    return is_lowered and None not in ends and [math.prod(end or ()) > 1 for end in ends].count(True) == 1


@difference(
    "IR1001", "rounded zero point", ("FakeQuantize",), "CPU plugin", "values",
    does="the CPU plugin rounds the level of 0 to an integer where a convolution with quantised weights reads 255 or "
    "256 levels, which moves all of them by up to half a level, unless LP_TRANSFORMS_MODE is NO",
    example=layer_xml("Const-1", 'element_type="f32" shape=""', name="low") + "\n"
    + layer_xml("FakeQuantize-1", 'levels="256"', name="quantised") + "\n"
    + layer_xml("Convolution-1"),
    repair="Move output_low and output_high so that 0 is a level.",
)  # fmt: skip
def _rounded_zero(layer: ExaminedLayer) -> bool:
    """2026.4 was asked beside the formula in f64, with weights of 7 bits; a MatMul is computed as written."""
    low, high = layer.constant(3), layer.constant(4)
    if layer["levels"] not in (255, 256) or not low or not high or len(low) > 1 or len(high) > 1:
        return False
    zero = -low[0] / (high[0] - low[0]) * (layer["levels"] - 1) if high[0] > low[0] else 0.0
    if not 0 < zero < layer["levels"] - 1 or abs(zero - round(zero)) < _INTEGER:
        return False
    readers = layer.readers[layer.node.outputs[0]] if layer.is_used(0) else ()
    return any(_has_quantised_weights(node) for node in readers if node.type in _CONVOLUTIONS)


def _has_quantised_weights(node: Node) -> bool:
    weights = node.inputs[1]
    constant = decompressed(weights)[0]
    is_stored = constant is not None and constant.element.name in ("i8", "u8")
    return is_stored or (weights is not None and weights.node.type == "FakeQuantize")


@difference(
    "IR942", "scales of other channels", ("FakeQuantize",), "CPU plugin", "values",
    does="in a graph of f16, with LP_TRANSFORMS_MODE off, the CPU plugin fuses a Multiply or Add of a value per "
    "channel, behind a pooled convolution, into a FakeQuantize of one range, and uses the value of the first "
    "channel for all",
    example=layer_xml("MaxPool-1", name="pool") + "\n"
    + layer_xml("Multiply-1", name="scale") + "\n"
    + layer_xml("FakeQuantize-1", 'levels="256"', name="quantised"),
    repair="Fold the scale and shift into the convolution, or give the FakeQuantize a range for each channel.",
)  # fmt: skip
def _scale_of_the_first_channel(layer: ExaminedLayer) -> bool:
    if layer.element() != "f16" or any(math.prod(layer.shape(i) or ()) != 1 for i in range(1, 5)):
        return False
    value = _before_scales_by_channel(layer.node.inputs[0])
    if value is None or value.node.type not in _POOLS:
        return False
    value = in_front(value, _AROUND_POOLS)
    return value is not None and value.node.type in _CONVOLUTIONS


def _before_scales_by_channel(value: Value | None) -> Value | None:
    """The value that a chain of constant Multiply and Add scales and shifts; None unless one varies by channel."""
    varies = False
    while value is not None and value.node.type in ("Multiply", "Add"):
        constants = [None if one is None else one.node.constant for one in value.node.inputs]
        counts = [constant.count for constant in constants if constant is not None]
        if len(counts) != 1:
            return None
        varies |= counts[0] > 1
        value = value.node.inputs[constants.index(None)]
    return value if varies else None


@difference(
    "IR948", "input range of no extent", ("FakeQuantize",), "CPU plugin", "undefined values",
    does="where input_low is input_high the CPU plugin gives NaN or ends the process, and the specification output_low "
    "up to this value, output_high above it",
    example=layer_xml("FakeQuantize-1", 'levels="2" auto_broadcast="numpy"'),
    repair="Write a Greater of the data and input_low, and a Select between output_high and output_low.",
)  # fmt: skip
def _no_extent(layer: ExaminedLayer) -> bool:
    low, high = layer.constant(1), layer.constant(2)
    return low is not None and high is not None and any(a == b for a, b in zip(low, high, strict=False))


@difference(
    "IR989", "weights in odd groups", ("MatMul",), "CPU plugin", "values", since="2024.6",
    does="the CPU plugin gives wrong products with weights in groups of some sizes: of i8 or u8 in groups of more than "
    "4 that are not multiples of 4, of i4 or u4 in odd groups of more than 4, in groups of more than 32 that are "
    "not multiples of 32, or with a scale for each element",
    example=layer_xml("Const-1", 'element_type="i8" shape="64,16,6"', name="codes") + "\n"
    + layer_xml("MatMul-1", 'transpose_b="true"', name="product"),
    repair="Compress in groups of 32, 64 or 128, or with one scale for each channel.",
)  # fmt: skip
def _odd_groups(layer: ExaminedLayer) -> bool:
    """Weights of three axes, one of which is a group, that a Reshape joins; or of two, with scales of their shape.

    2024.6 and 2026.4 were asked, without dynamic quantisation, beside the product in f32: i8 in groups of 6, u8 of 10,
    i4 of 7 and u4 of 48 are wrong; i8 of 12 and 16 and u4 of 32 are right. 2023.3 is right for i8 in groups of 6, wrong
    for u4 in groups of 48, and ends the process for u8 of 10 and i4 of 7.
    """
    constant, is_grouped, shapes = decompressed(layer.node.inputs[1])
    if constant is None or len(constant.shape) != 2 + is_grouped:
        return False
    is_packed = constant.element.name in ("i4", "u4")
    row = constant.shape[1:] if layer["transpose_b"] else constant.shape[:-1]
    if not is_grouped:
        return is_packed and row[0] > 2 and constant.shape in shapes and constant.count > row[0]
    groups, size = row
    if groups == 1:
        return False
    if constant.element.name in ("i8", "u8"):
        return size > 4 and size % 4 > 0
    wide = 32 if size % 2 == 0 else 4
    return is_packed and size > wide and size % 32 > 0


@difference(
    "IR998", "scales along a row", ("MatMul", "Gather"), "CPU plugin", "values",
    does="where scales or zero points of compressed weights vary within a row and not from row to row, the CPU plugin "
    "takes the first ones for all, or ends the process, in a MatMul and in a Gather of rows",
    example=layer_xml("Const-1", 'element_type="u8" shape="64,128"', name="codes") + "\n"
    + layer_xml("Const-1", 'element_type="f16" shape="1,128"', name="scales") + "\n"
    + layer_xml("MatMul-1", 'transpose_b="true"', name="product"),
    repair="Repeat the scales and zero points for each row.",
)  # fmt: skip
def _scaled_along_a_row(layer: ExaminedLayer) -> bool:
    """2026.4 was asked beside the product in f64, with u8, i8, u4 and i4, in groups and without; bf16 ends it."""
    is_product = layer.definition.type == "MatMul"
    if not is_product and layer.ints(2) not in ([0], [-len(layer.shape() or ())]):
        return False
    constant, is_grouped, shapes = decompressed(layer.node.inputs[int(is_product)])
    if constant is None or constant.element.name not in ("i8", "u8", "i4", "u4"):
        return False
    rank = len(constant.shape)
    axis = rank - 1 if is_product and not layer["transpose_b"] else 0
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return rank == 2 + is_grouped and any(math.prod(shape) > 1 and shape[axis] == 1 for shape in padded)
