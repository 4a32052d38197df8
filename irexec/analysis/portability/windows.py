"""Differences of convolutions and pooling: how windows lie on the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import difference, windows_beside

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer


difference(
    "IR970", "mean of no element", ("AvgPool",), "CPU plugin", "values",
    does="the CPU plugin gives NaN for a window without an element, whose sum and mean are 0",
    example='<layer type="AvgPool" version="opset1">\n'
    '  <data kernel="1, 1" strides="2, 2" exclude-pad="false" rounding_type="ceil"/>\n</layer>',
    repair="Use rounding_type floor, or less padding at the end.",
)(lambda layer: windows_beside(layer, padded=layer["exclude_pad"] is False))  # fmt: skip


@difference(
    "IR971", "strides moved over padding", ("Convolution",), "CPU plugin", "shape",
    does="the CPU plugin moves the strides of a convolution by kernels of size 1 into the element-wise layer or "
    "convolution before it, and pads what is left: the result has another shape, or other values",
    example='<layer name="before" type="Relu" version="opset1"/>\n'
    '<layer name="padded" type="Convolution" version="opset1">\n'
    '  <data strides="2, 2" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1"/>\n</layer>',
    repair="Pad with a Pad, before the convolution.",
)  # fmt: skip
def _strides_moved(layer: ExaminedLayer) -> bool:
    kernel, attributes, source = layer.shape(1), layer.attributes, layer.node.inputs[0]
    if kernel is None or attributes is None or source is None or source.node.type not in _TAKE_STRIDES:
        return False
    pads = (*attributes.pads_begin, *attributes.pads_end) if attributes.auto_pad == "explicit" else ()
    return set(kernel[2:]) == {1} and any(stride > 1 for stride in attributes.strides) and any(pads)


@difference(
    "IR972", "one window along the last axis", ("Convolution", "GroupConvolution"), "CPU plugin", "values",
    does="the CPU plugin gives wrong values for a convolution of one channel that has one window and a stride along "
    "the last axis, and a stride of 1 along the axis before it: of padded images without AVX-512, of several volumes "
    "with it",
    example='<layer type="Convolution" version="opset1">\n'
    '  <data strides="1, 2" dilations="1, 1" pads_begin="1, 0" pads_end="1, 0"/>\n</layer>',
    repair="Write a stride of 1 along an axis with one window: the values are the same.",
)  # fmt: skip
def _one_window(layer: ExaminedLayer) -> bool:
    data, kernel, result, attributes = layer.shape(0), layer.shape(1), layer.result(), layer.attributes
    if data is None or kernel is None or result is None or attributes is None or len(data) not in (4, 5):
        return False
    if data[1] > 1 or result[-1] != 1 or attributes.strides[-1] == 1 or attributes.strides[-2] > 1:
        return False
    pads = attributes.pads_begin[-1] + attributes.pads_end[-1] if attributes.auto_pad == "explicit" else 0
    return kernel[-1] > 1 if len(data) == 4 else data[0] > 1 and data[-1] + pads > kernel[-1]


@difference(
    "IR973", "elements of an empty tensor",
    ("AvgPool", "MaxPool", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Interpolate", "Gather"),
    "CPU plugin", "undefined values",
    does="the CPU plugin reads memory that was never written, or ends the process in a Gather, where the data have no "
    "elements",
    example='<layer type="AvgPool" version="opset1">\n  <input>\n'
    '    <port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>0</dim><dim>8</dim></port>\n  </input>\n</layer>',
    repair="Give the data a size of 1 or more along each axis.",
)  # fmt: skip
def _of_nothing(layer: ExaminedLayer) -> bool:
    shape, result = layer.shape(), layer.result()
    if shape is None or math.prod(shape) > 0:
        return False
    return layer.node.type == "Gather" or (result is not None and math.prod(result) > 0)


_TAKE_STRIDES = {
    "Convolution", "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Cos", "Cosh", "Erf",
    "Exp", "Floor", "Log", "Negative", "Relu", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Add",
    "Divide", "FloorMod", "Maximum", "Minimum", "Mod", "Multiply", "Power", "SquaredDifference", "Subtract",
}  # fmt: skip
"""Arithmetic of one and two tensors, as OpenVINO's StridesOptimization has it."""
