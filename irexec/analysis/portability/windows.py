"""Differences of convolutions and pooling: how windows lie on the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import difference, layer_xml, windows_beside

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.graph import Value


difference(
    "IR970", "mean of no element", ("AvgPool",), "CPU plugin", "values",
    does="the CPU plugin gives NaN for a window without an element, whose sum and mean are 0",
    example=layer_xml("AvgPool-1", 'kernel="1, 1" strides="2, 2" exclude-pad="false" rounding_type="ceil"'),
    repair="Use rounding_type floor, or less padding at the end.",
)(lambda layer: windows_beside(layer, padded=layer["exclude_pad"] is False))  # fmt: skip


@difference(
    "IR971", "strides moved over padding", ("Convolution",), "CPU plugin", "shape",
    does="the CPU plugin moves the strides of a convolution by kernels of size 1 into the element-wise layer or "
    "convolution before it, and pads what is left: the result has another shape, or other values",
    example=layer_xml("Relu-1", name="before") + "\n"
    + layer_xml("Convolution-1", 'strides="2, 2" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1"', name="padded"),
    repair="Pad with a Pad, before the convolution.",
)  # fmt: skip
def _strides_moved(layer: ExaminedLayer) -> bool:
    kernel, attributes, source = layer.shape(1), layer.attributes, layer.node.inputs[0]
    if kernel is None or attributes is None or source is None or source.node.type not in _TAKE_STRIDES:
        return False
    pads = (*attributes.pads_begin, *attributes.pads_end) if attributes.auto_pad == "explicit" else ()
    return set(kernel[2:]) == {1} and any(stride > 1 for stride in attributes.strides) and any(pads)


def _strided_window(layer: ExaminedLayer) -> tuple[tuple[int, ...], ...] | None:
    """Shapes of the data, the kernel and the result, and strides and dilations, of a convolution of two or three axes
    with one window and a stride along the last one; None for others."""
    data, kernel, result, attributes = layer.shape(0), layer.shape(1), layer.result(), layer.attributes
    if data is None or kernel is None or result is None or attributes is None or len(data) not in (4, 5):
        return None
    strides, dilations = (1, 1, *attributes.strides), (1, 1, *attributes.dilations)
    return (data, kernel, result, strides, dilations) if result[-1] == 1 and strides[-1] > 1 else None


@difference(
    "IR972", "one window along the last axis", ("Convolution", "GroupConvolution"), "CPU plugin", "values",
    does="the CPU plugin gives wrong values for a convolution of one channel that has one window and a stride along "
    "the last axis, and a stride of 1 along the axis before it: of padded images, and with AVX-512 of volumes, single "
    "ones with one thread",
    example=layer_xml("Convolution-1", 'strides="1, 2" dilations="1, 1" pads_begin="1, 0" pads_end="1, 0"'),
    repair="Write a stride of 1 along an axis with one window: the values are the same.",
)  # fmt: skip
def _one_window(layer: ExaminedLayer) -> bool:
    if (found := _strided_window(layer)) is None:
        return False
    data, kernel, _, strides, _ = found
    return data[1] == 1 and strides[-2] == 1 and (len(data) == 5 or kernel[-1] > 1)


@difference(
    "IR1000", "one window on tiles", ("Convolution", "GroupConvolution"), "CPU plugin", "values",
    does="the CPU plugin on processors with AMX, in bf16, which is its default there, and in int8, gives wrong values "
    "for a convolution of several channels that has one window and a stride along the last axis, unless nothing is "
    "padded along it and the size of the kernel and the stride divide each other",
    example=layer_xml("Convolution-1", 'strides="2, 2" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1"'),
    repair="Write a stride of 1 along an axis with one window: the values are the same.",
)  # fmt: skip
def _one_window_on_tiles(layer: ExaminedLayer) -> bool:
    """2026.4 was asked on an Emerald Rapids beside the formula in f64, with kernels of 2 to 5 and strides of 2 to 6."""
    if (found := _strided_window(layer)) is None:
        return False
    data, kernel, result, strides, dilations = found
    size, stride = kernel[-1], strides[-1]
    if kernel[-len(data) + 1] == 1 or size == 1 or math.prod(result[2:]) == 1:
        return False
    return data[-1] < (size - 1) * dilations[-1] + 1 or (size % stride > 0 and stride % size > 0)


@difference(
    "IR973", "elements of an empty tensor",
    ("AvgPool", "MaxPool", "Convolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Interpolate",
     "Gather"),
    "CPU plugin", "undefined values",
    does="the CPU plugin reads memory that was never written, or ends the process in a Gather, where the data have no "
    "elements",
    example=layer_xml("AvgPool-1", "", "FP32[1,3,0,8]"),
    repair="Give the data a size of 1 or more along each axis.",
)  # fmt: skip
def _of_nothing(layer: ExaminedLayer) -> bool:
    shape, result = layer.shape(), layer.result()
    if shape is None or math.prod(shape) > 0:
        return False
    return layer.node.type == "Gather" or (result is not None and math.prod(result) > 0)


@difference(
    "IR996", "signal transposed and back", ("Transpose",), "CPU plugin", "values",
    does="the CPU plugin gives values in another order for a convolution of one spatial axis whose result is "
    "transposed, changed element by element, and transposed back",
    example=layer_xml("Convolution-1", 'strides="1"', name="conv") + "\n"
    + layer_xml("Transpose-1", name="there") + "\n"
    + layer_xml("Tanh-1", name="curve") + "\n"
    + layer_xml("Transpose-1", name="back"),
    repair="Leave out both Transposes, or write the convolution with two spatial axes, one of them of size 1.",
)  # fmt: skip
def _transposed_back(layer: ExaminedLayer) -> bool:
    if layer.shape() is None or layer.ints(1) != [0, 2, 1]:
        return False
    between = _behind(layer.node.inputs[0], _MOVED, 1)
    if between is layer.node.inputs[0] or between is None or between.node.type != "Transpose":
        return False
    source, order = _behind(between.node.inputs[0], _FUSED), between.node.inputs[1]
    known = None if order is None else layer.facts[order].known
    is_back = known is not None and known.tolist() == [0, 2, 1]
    return is_back and source is not None and source.node.type in _CONVOLUTIONS


@difference(
    "IR997", "padding moved into a transposed convolution",
    ("ConvolutionBackpropData", "GroupConvolutionBackpropData"), "CPU plugin", "shape",
    does="the CPU plugin subtracts a Pad with zeros from pads_begin and pads_end of a transposed convolution as if its "
    "strides were 1: the result has another shape",
    example=layer_xml("Pad-1", 'pad_mode="constant"', name="padded") + "\n"
    + layer_xml("ConvolutionBackpropData-1", 'strides="2, 2" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1"'),
    repair="Make pads_begin and pads_end smaller by the padding times the strides, and leave out the Pad.",
)  # fmt: skip
def _pad_moved(layer: ExaminedLayer) -> bool:
    source, windows = layer.node.inputs[0], layer.attributes
    if source is None or source.node.type != "Pad" or windows is None or windows.auto_pad != "explicit":
        return False
    facts = [None if one is None else layer.facts[one].known for one in source.node.inputs[1:3]]
    if any(one is None for one in facts) or source.node.attributes.get("pad_mode") != "constant":
        return False
    begin, end = (one.ravel().tolist()[2:] for one in facts if one is not None)
    moved = zip(begin, end, windows.pads_begin, windows.pads_end, windows.strides, strict=False)
    axes = [(b, e, own_b, own_e, stride) for b, e, own_b, own_e, stride in moved]
    fits = all(0 <= b <= own_b and 0 <= e <= own_e for b, e, own_b, own_e, _ in axes)
    return fits and any((b or e) and stride > 1 for b, e, _, _, stride in axes)


_TAKE_STRIDES = {
    "Convolution", "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Cos", "Cosh", "Erf",
    "Exp", "Floor", "Log", "Negative", "Relu", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Add",
    "Divide", "FloorMod", "Maximum", "Minimum", "Mod", "Multiply", "Power", "SquaredDifference", "Subtract",
}  # fmt: skip
"""Arithmetic of one and two tensors, as OpenVINO's StridesOptimization has it."""
_CONVOLUTIONS = {"Convolution", "GroupConvolution"}
_MOVED = {
    "Abs", "Add", "Ceiling", "Clamp", "Cos", "Divide", "Elu", "Erf", "Exp", "Floor", "Gelu", "HSigmoid", "HSwish",
    "HardSigmoid", "Log", "Mish", "Multiply", "Negative", "Power", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "SoftPlus", "Sqrt", "Subtract", "Tanh",
}  # fmt: skip
"""Layers that the plugin moves over a Transpose; Swish, PRelu and Convert were right."""
_FUSED = _MOVED | {"BatchNormInference", "PRelu", "Swish"}


def _behind(value: Value | None, types: set[str], largest: float = math.inf) -> Value | None:
    """The tensor that a chain of layers changes; None where one has a second operand that varies.

    Args:
        value: the result of the chain.
        types: of its layers.
        largest: the number of elements that a constant operand may have.
    """
    while value is not None and value.node.type in types:
        sources = [one for one in value.node.inputs if one is not None]
        computed = [one for one in sources if one.node.constant is None]
        if len(computed) != 1 or any(one.node.constant.count > largest for one in sources if one.node.constant):
            return None
        value = computed[0]
    return value
