"""Differences in values of other kinds: windows, boxes, sequences, random numbers, networks. IR91x to IR94x."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import (
    aligned_at_the_end,
    difference,
    is_aligned_at_the_start,
    may_be,
    windows_beside,
)
from irexec.ir.dims import low
from irexec.schema.shape_rules import pdpd_start

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.constants import Constant
    from irexec.ir.graph import Node, Value


@difference(
    "IR912", "axes aligned at the end",
    ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "BitwiseLeftShift", "BitwiseRightShift"),
    "CPU plugin", "values",
    does="the CPU plugin aligns the axes of the second input with the last ones of the first, where "
    'auto_broadcast="pdpd" aligns them with the first ones',
    example='<layer type="Less" version="opset1">\n  <data auto_broadcast="pdpd"/>\n  <input>\n'
    '    <port id="0"><dim>3</dim><dim>3</dim></port>\n    <port id="1"><dim>3</dim></port>\n  </input>\n</layer>',
    repair='Reshape the second input to the rank of the first, and write auto_broadcast="numpy".',
)  # fmt: skip
def _aligned_at_the_end(layer: ExaminedLayer) -> bool:
    right = layer.definition.type in ("Equal", "NotEqual") and not layer.is_integer()
    return not right and is_aligned_at_the_start(layer) and aligned_at_the_end(layer)


@difference(
    "IR994", "padding of a kernel of one", ("ConvolutionBackpropData",), "CPU plugin", "values",
    does="with output_shape of the size of the data and a kernel of size 1, the CPU plugin ignores pads_begin; with "
    "other sizes it leaves out these elements, as the reference kernel does",
    example='<layer type="ConvolutionBackpropData" version="opset1">\n'
    '  <data strides="1, 1" pads_begin="1, 0" pads_end="0, 0" dilations="1, 1" auto_pad="explicit"/>\n</layer>',
    repair="Write pads_begin of 0 without output_shape, and a Slice and a Pad.",
)  # fmt: skip
def _padded_kernel_of_one(layer: ExaminedLayer) -> bool:
    windows, shape, weights, result = layer.attributes, layer.shape(), layer.shape(1), layer.result()
    if windows is None or shape is None or weights is None or result is None or not layer.has(2):
        return False
    is_of_one = all(size == 1 for size in (*weights[2:], *windows.strides)) and result[2:] == shape[2:]
    return is_of_one and windows.auto_pad == "explicit" and any(windows.pads_begin)


difference(
    "IR918", "maximum of an empty window", ("MaxPool",), "CPU plugin", "values",
    does="the CPU plugin gives the lowest value of f32 for a window that lies in the padding, not the lowest "
    "value of the data's type",
    example='<layer type="MaxPool" version="opset1">\n'
    '  <data strides="3" pads_begin="0" pads_end="2" kernel="2" rounding_type="ceil"/>\n</layer>',
    repair="Use less padding, so that every window has an element of the data.",
)(lambda layer: layer.element() in ("f16", "f64") and windows_beside(layer))  # fmt: skip


@difference(
    "IR919", "cube_coeff ignored", ("Interpolate",), "CPU plugin", "values",
    does="the CPU plugin computes bicubic_pillow with the coefficient -0.5, whatever cube_coeff is; constant "
    "folding uses cube_coeff",
    example='<layer type="Interpolate" version="opset11">\n'
    '  <data mode="bicubic_pillow" cube_coeff="-0.75"/>\n</layer>',
    repair='Write cube_coeff="-0.5".',
)  # fmt: skip
def _coefficient(layer: ExaminedLayer) -> bool:
    return layer["mode"] == "bicubic_pillow" and not math.isclose(layer["cube_coeff"], -0.5, rel_tol=1e-6)


difference(
    "IR920", "box without extent", ("ROIAlign",), "CPU plugin", "values",
    does="with sampling_ratio=0 the CPU plugin gives NaN for a box without width or height, the reference 0",
    example='<layer type="ROIAlign" version="opset9">\n  <data sampling_ratio="0"/>\n</layer>',
    repair="Write the sampling_ratio that is meant, such as 2, or make sure that boxes have an extent.",
)(lambda layer: layer["sampling_ratio"] == 0)  # fmt: skip


@difference(
    "IR924", "padding of a binary convolution", ("BinaryConvolution",), "CPU plugin", "values",
    does="the CPU plugin leaves out padding of pad_value 0, which the specification counts as -1",
    example='<layer type="BinaryConvolution" version="opset1">\n'
    '  <data mode="xnor-popcount" pad_value="0" pads_begin="1, 1" pads_end="1, 1"/>\n</layer>',
    repair="Pad the data with a Pad before the convolution.",
)  # fmt: skip
def _binary_padding(layer: ExaminedLayer) -> bool:
    windows = layer.attributes
    if windows is None:
        return False
    pads = windows.auto_pad in ("same_upper", "same_lower") or any((*windows.pads_begin, *windows.pads_end))
    return pads and windows.auto_pad != "valid" and layer["pad_value"] == 0


@difference(
    "IR925", "peepholes or input_forget ignored", ("LSTMCell",), "CPU plugin", "values",
    does="the CPU plugin computes neither the peephole weights nor input_forget of version 1",
    example='<layer type="LSTMCell" version="opset1">\n  <data hidden_size="4" input_forget="true"/>\n</layer>',
    repair="Write the cell in basic operations.",
)  # fmt: skip
def _peepholes(layer: ExaminedLayer) -> bool:
    peepholes = layer.value(6)
    given = layer.has(6) and (peepholes is None or bool(peepholes.any()))
    return layer.definition.since == 1 and (given or layer["input_forget"] is True)


@difference(
    "IR926", "sequence lengths ignored", ("LSTMSequence", "GRUSequence", "RNNSequence"), "CPU plugin", "values",
    does="the CPU plugin ignores sequence_lengths where a size of the data is dynamic, and runs every sequence to "
    "its end",
    example='<layer type="LSTMSequence" version="opset5">\n  <input>\n'
    '    <port id="0"><dim>2</dim><dim>-1</dim><dim>3</dim></port>\n  </input>\n</layer>',
    repair="Give the model a static batch and length, or use sequences of the full length only.",
)  # fmt: skip
def _lengths(layer: ExaminedLayer) -> bool:
    sizes = layer.sizes()
    if sizes is not None and all(isinstance(size, int) for size in sizes[:2]):
        return False
    # Converters write the size of the data's axis as the length of every sequence, which runs to its end then.
    return not layer.is_made_of_sizes(3 if layer.definition.type == "LSTMSequence" else 2)


@difference(
    "IR927", "normalisation over three axes", ("LRN",), "CPU plugin", "values",
    does="the CPU plugin leaves the channels out of an LRN over three or more axes, and normalises over the "
    "spatial ones",
    example='<layer type="LRN" version="opset1">\n  <data alpha="1e-4" beta="0.75" bias="1" size="5"/>\n</layer>',
    repair="Write it in basic operations, or normalise over axis 1 or over the spatial axes.",
)  # fmt: skip
def is_over_three_axes(layer: ExaminedLayer) -> bool:
    axes = layer.ints(1)
    return axes is not None and len(axes) >= 3 and min(axes) in (0, 1)


difference(
    "IR946", "bias of a normalisation cut", ("LRN",), "CPU plugin", "values",
    does="the CPU plugin cuts the bias of an LRN to an integer: 0.5 becomes 0",
    example='<layer type="LRN" version="opset1">\n  <data alpha="1e-4" beta="0.75" bias="0.5" size="5"/>\n</layer>',
    repair="Divide alpha by the bias, write a bias of 1, and multiply the result by bias ** -beta.",
)(lambda layer: not float(layer["bias"]).is_integer())  # fmt: skip


@difference(
    "IR928", "transform longer than the data", ("RDFT", "IRDFT"), "CPU plugin", "undefined values",
    does="the CPU plugin fails, or reads beside the data, where signal_size is more than the size of the axis; "
    "the specification pads with zeros",
    example='<layer type="RDFT" version="opset9">\n'
    '  <input>\n    <port id="0"><dim>2</dim><dim>6</dim></port>\n  </input>\n'
    "</layer>",
    repair="Pad the data with a Pad, and leave out signal_size.",
)  # fmt: skip
def _long_transform(layer: ExaminedLayer) -> bool:
    axes, wanted, shape = layer.ints(1), layer.ints(2), layer.sizes()
    if axes is None or wanted is None or shape is None or len(axes) != len(wanted):
        return False
    rank = len(shape) - (layer.definition.type == "IRDFT")
    needed = [*wanted[:-1], wanted[-1] // 2 + 1 if layer.definition.type == "IRDFT" else wanted[-1]] if wanted else []
    return any(low(shape[axis % rank]) < need for axis, need in zip(axes, needed, strict=True) if -rank <= axis < rank)


@difference(
    "IR929", "f64 computed in f32", (), "CPU plugin", "values",
    does="the CPU plugin computes f64 in f32: results have 7 digits, and what f32 cannot hold becomes its largest "
    "value",
    example='<layer type="Multiply" version="opset1">\n  <input>\n    <port id="0" precision="FP64"/>\n'
    '    <port id="1" precision="FP64"/>\n  </input>\n</layer>',
    repair="Use f32, so that every implementation computes the same.",
)  # fmt: skip
def _double(layer: ExaminedLayer) -> bool:
    computes = layer.definition.type not in ("Parameter", "Constant", "Result", "Convert", "ReadValue", "Assign")
    return computes and "f64" in map(layer.element, range(len(layer.node.inputs)))


@difference(
    "IR930", "maximum of nothing", ("ReduceMax", "ReduceMin"), "CPU plugin", "values",
    does="the maximum and minimum of no elements are the lowest and largest finite value for the CPU plugin, and "
    "infinities in ONNX and irexec",
    example='<layer type="ReduceMax" version="opset1">\n  <input>\n    <port id="0"><dim>2</dim><dim>0</dim></port>\n'
    "  </input>\n</layer>",
    repair="Make sure that the axes that are reduced have elements.",
)  # fmt: skip
def _maximum_of_nothing(layer: ExaminedLayer) -> bool:
    shape, axes = layer.shape(), layer.ints(1)
    floats = layer.element() in ("f32", "f16", "bf16", "f64")
    return (
        floats
        and shape is not None
        and axes is not None
        and any(-len(shape) <= axis < len(shape) and shape[axis] == 0 for axis in axes)
    )


difference(
    "IR932", "softmax of regions by default", ("RegionYolo",), "reader", "shape",
    does="the reader takes do_softmax for false where it is absent, the specification for true",
    example='<layer type="RegionYolo" version="opset1">\n'
    '  <data axis="1" coords="4" classes="80" end_axis="3" num="5"/>\n'
    "</layer>",
    repair="Write do_softmax.",
)(lambda layer: layer.says("do_softmax") is None)  # fmt: skip


@difference(
    "IR933", "images of a batch mixed up", ("RegionYolo",), "CPU plugin", "values",
    does="without do_softmax the CPU plugin mixes up the images of a batch where the input has more channels than "
    "the regions take",
    example='<layer type="RegionYolo" version="opset1">\n  <data do_softmax="false" mask="0, 1, 2"/>\n  <input>\n'
    '    <port id="0"><dim>2</dim><dim>255</dim><dim>13</dim><dim>13</dim></port>\n  </input>\n</layer>',
    repair="Slice the channels that the regions take.",
)  # fmt: skip
def _mixed_up(layer: ExaminedLayer) -> bool:
    regions, shape = layer.attributes, layer.sizes()
    if layer.says("do_softmax") not in ("false", "0", "False") or shape is None or len(shape) != 4 or regions is None:
        return False
    taken = len(regions.mask) * (regions.classes + regions.coords + 1)
    return not (may_be(shape[0], 1) and isinstance(shape[0], int)) and low(shape[1]) > taken


difference(
    "IR934", "sizes of prior boxes by default", ("PriorBoxClustered",), "reader", "shape",
    does="the reader takes an absent width and height for no boxes at all, the specification for one box of size 1",
    example='<layer type="PriorBoxClustered" version="opset1">\n  <data step="16" offset="0.5"/>\n</layer>',
    repair="Write width and height.",
)(lambda layer: layer.says("width") is None or layer.says("height") is None)  # fmt: skip


def _is_seeded(layer: ExaminedLayer) -> bool:
    return bool(layer["global_seed"] or layer["op_seed"])


difference(
    "IR935", "random numbers of small floats", ("RandomUniform",), "CPU plugin", "values",
    does="the CPU plugin generates f16, bf16 and f64 as f32: other numbers than the specification's algorithm "
    "gives for the same seeds",
    example='<layer type="RandomUniform" version="opset8">\n  <data output_type="f16" global_seed="1" op_seed="2"/>\n'
    "</layer>",
    repair="Generate f32 and convert.",
)(lambda layer: _is_seeded(layer) and layer.element(1) in ("f16", "bf16", "f64"))  # fmt: skip


difference(
    "IR936", "random numbers continued", ("RandomUniform",), "CPU plugin", "values",
    does="the CPU plugin continues the sequence of random numbers from one inference to the next, also with "
    "seeds; irexec and constant folding give the same ones each time",
    example='<layer type="RandomUniform" version="opset8">\n  <data output_type="f32" global_seed="1" op_seed="2"/>\n'
    "</layer>",
    repair="If results must be the same in each inference, make the numbers an input or a constant.",
)(_is_seeded)  # fmt: skip


difference(
    "IR937", "samples of another generator", ("Multinomial",), "CPU plugin", "values",
    does="the CPU plugin draws other samples than the reference implementation, with the same seeds",
    example='<layer type="Multinomial" version="opset13">\n  <data global_seed="1" op_seed="2"/>\n</layer>',
    repair="Expect the distribution, not the samples.",
)(_is_seeded)  # fmt: skip


@difference(
    "IR949", "axis of pdpd dropped", ("FakeQuantize",), "CPU plugin", "undefined values",
    does="the CPU plugin aligns the bounds with the last axes of the data, or takes the first ones for all, where "
    'auto_broadcast="pdpd" aligns them with other axes; it may read beyond the bounds, or end the process',
    example='<layer type="FakeQuantize" version="opset1">\n  <data levels="256" auto_broadcast="pdpd" '
    'auto_broadcast.auto_broadcast_axis="1"/>\n  <input>\n'
    '    <port id="0"><dim>2</dim><dim>3</dim><dim>4</dim></port>\n'
    '    <port id="1"><dim>3</dim></port>\n  </input>\n</layer>',
    repair='Reshape the bounds to the rank of the data, and write auto_broadcast="numpy".',
)  # fmt: skip
def _axis_dropped(layer: ExaminedLayer) -> bool:
    data, axis = layer.sizes(), layer["auto_broadcast_axis"]
    if layer["auto_broadcast"] != "pdpd" or data is None:
        return False
    bounds = [shape for shape in map(layer.shape, range(1, 5)) if shape is not None and math.prod(shape) > 1]
    return any(pdpd_start(len(data), len(shape), axis) != len(data) - len(shape) for shape in bounds)


@difference(
    "IR988", "max_size without scale_all_sizes", ("PriorBox",), "CPU plugin", "undefined values",
    does="OpenVINO writes a box of each max_size that it does not count, over those of the next cell and beyond its "
    "memory; in the specification max_size has no effect without scale_all_sizes",
    example='<layer type="PriorBox" version="opset8">\n'
    '  <data min_size="0.4" max_size="0.9" scale_all_sizes="false" offset="0.5"/>\n</layer>',
    repair="Leave out max_size.",
)  # fmt: skip
def _uncounted_boxes(layer: ExaminedLayer) -> bool:
    boxes = layer.attributes
    return boxes is not None and not boxes.scale_all_sizes and bool(boxes.min_size and boxes.max_size)


@difference(
    "IR985", "fractions in a range of integers", ("Range",), "CPU plugin", "shape",
    does="the CPU plugin adds a step with its fraction and rounds the sums; in the specification and in constant "
    "folding start, stop and step are truncated first",
    example='<layer type="Range" version="opset4">\n  <data output_type="i64"/>\n  <input>\n'
    '    <port id="0" precision="FP32"/>\n    <port id="1" precision="FP32"/>\n    <port id="2" precision="FP32"/>\n'
    "  </input>\n</layer>",
    repair="Convert start, stop and step to the type of the range.",
)  # fmt: skip
def _fractions(layer: ExaminedLayer) -> bool:
    kind = None if layer.definition.since == 1 else layer["output_type"]
    values = [layer.value(i) for i in range(3)]
    if kind is None or not kind.is_integer or all(value is not None for value in values):
        return False
    floats = [value for i, value in enumerate(values) if (layer.element(i) or "i")[0] in "fb"]
    return any(value is None or bool((value % 1).any()) for value in floats)


@difference(
    "IR986", "maxima with not a number", ("ReduceMax", "ReduceMin", "TopK", "Maximum", "Minimum"),
    "CPU plugin", "values",
    does="the CPU plugin keeps or drops NaN by its place; ONNX Runtime takes it for the largest value or drops it, by "
    "operator and place; onnx.reference keeps it; irexec keeps it in Maximum and Minimum, drops it in ReduceMax and "
    "ReduceMin, and ranks it last in TopK",
    example='<layer name="quotient" type="Divide" version="opset1"/>\n<layer type="ReduceMax" version="opset1"/>',
    repair="Bound the divisor, or the operand of the root or logarithm, with a Maximum, or replace NaN with IsNaN and "
    "Select.",
)  # fmt: skip
def _nan_among_maxima(layer: ExaminedLayer) -> bool:
    return any(layer.may_have_nan(i) for i in range(2 if layer.definition.type in ("Maximum", "Minimum") else 1))


@difference(
    "IR939", "level of zero", ("FakeQuantize",), "CPU plugin", "values",
    does="the CPU plugin rounds the step between two levels to f32, so that levels are up to two ulps of the "
    "range off and the one that is meant to be 0 is not; irexec has exact levels, rounded once, and 0",
    example='<layer type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>',
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
    example='<layer name="low" type="Const" version="opset1">\n  <data element_type="f32" shape="1,3,1,1"/>\n</layer>\n'
    '<layer name="high" type="Const" version="opset1">\n  <data element_type="f32" shape=""/>\n</layer>\n'
    '<layer name="quantised" type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>',
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
    example='<layer name="low" type="Const" version="opset1">\n  <data element_type="f32" shape=""/>\n</layer>\n'
    '<layer name="quantised" type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>\n'
    '<layer type="Convolution" version="opset1"/>',
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
    while weights is not None and weights.node.type in ("Reshape", "Multiply", "Subtract", "Convert"):
        weights = weights.node.inputs[0]
        if weights is not None and weights.node.constant is not None:
            return weights.node.constant.element.name in ("i8", "u8")
    return weights is not None and weights.node.type == "FakeQuantize"


@difference(
    "IR940", "operand gathered from constants", ("Einsum",), "CPU plugin", "values",
    does="the CPU plugin computes an Einsum of several matrices wrongly if one of its operands is computed from "
    "constants by GatherElements, which is not folded",
    example='<layer type="GatherElements" version="opset6">\n  <data axis="0"/>\n</layer>\n'
    '<layer type="Einsum" version="opset7">\n  <data equation="inh,tnh->int"/>\n</layer>',
    repair="Replace the GatherElements by a constant.",
)  # fmt: skip
def _gathered_operand(layer: ExaminedLayer) -> bool:
    operands, arrow, result = (layer["equation"] or "").partition("->")
    labels = operands.split(",")
    if not arrow or len(labels) != 2 or not set(labels[0]).intersection(labels[1], result) - {" ", "."}:
        return False
    return any(layer.has(i) and layer.is_gathered_from_constants(i) for i in range(2))


_INTEGER = 1e-3
"""A zero point is rounded by less than what can be seen."""
_POOLS = frozenset({"MaxPool", "AvgPool"})
_AROUND_POOLS = _POOLS | {"FakeQuantize", "Relu", "PRelu", "Clamp", "Add", "Multiply"}
_CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})


@difference(
    "IR942", "scales of other channels", ("FakeQuantize",), "CPU plugin", "values",
    does="in a graph of f16, with LP_TRANSFORMS_MODE off, the CPU plugin fuses a Multiply or Add of a value per "
    "channel, behind a pooled convolution, into a FakeQuantize of one range, and uses the value of the first "
    "channel for all",
    example='<layer name="pool" type="MaxPool" version="opset1"/>\n'
    '<layer name="scale" type="Multiply" version="opset1"/>\n'
    '<layer name="quantised" type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>',
    repair="Fold the scale and shift into the convolution, or give the FakeQuantize a range for each channel.",
)  # fmt: skip
def _scale_of_the_first_channel(layer: ExaminedLayer) -> bool:
    if layer.element() != "f16" or any(math.prod(layer.shape(i) or ()) != 1 for i in range(1, 5)):
        return False
    value = _before_scales_by_channel(layer.node.inputs[0])
    if value is None or value.node.type not in _POOLS:
        return False
    while value is not None and value.node.type in _AROUND_POOLS:
        value = value.node.inputs[0]
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
    "IR943", "unsorted values without their indices", ("Unique",), "CPU plugin", "values",
    does="with sorted=false and without axis the CPU plugin computes the unique values, their first positions and "
    "their counts only if output 2, the indices into the unique values, is read too",
    example='<layer type="Unique" version="opset10">\n  <data sorted="false"/>\n</layer>',
    repair='Write sorted="true", or read output 2 as well.',
)  # fmt: skip
def _unsorted_values(layer: ExaminedLayer) -> bool:
    others = any(layer.is_used(output) for output in (0, 1, 3))
    return layer["sorted"] is False and not layer.has(1) and others and not layer.is_used(2)


difference(
    "IR947", "empty list of repeats or shifts", ("Tile", "Roll"), "CPU plugin", "undefined values",
    does="the CPU plugin leaves the result as it was in memory where repeats of Tile or the axes of Roll are empty, "
    "and nothing is to be done",
    example='<layer type="Tile" version="opset1">\n  <input>\n    <port id="0"/>\n'
    '    <port id="1"><dim>0</dim></port>\n  </input>\n</layer>',
    repair="Remove the layer, or write a 1 for each axis.",
)(lambda layer: layer.shape(1) == (0,))  # fmt: skip


@difference(
    "IR948", "input range of no extent", ("FakeQuantize",), "CPU plugin", "undefined values",
    does="where input_low is input_high the CPU plugin gives NaN or ends the process, and the specification output_low "
    "up to this value, output_high above it",
    example='<layer type="FakeQuantize" version="opset1">\n  <data levels="2" auto_broadcast="numpy"/>\n</layer>',
    repair="Write a Greater of the data and input_low, and a Select between output_high and output_low.",
)  # fmt: skip
def _no_extent(layer: ExaminedLayer) -> bool:
    low, high = layer.constant(1), layer.constant(2)
    return low is not None and high is not None and any(a == b for a, b in zip(low, high, strict=False))


@difference(
    "IR945", "reciprocal rounded to f16", ("Divide",), "CPU plugin", "values",
    does="the CPU plugin multiplies by the reciprocal of a constant divisor, which it rounds to f16, also where it "
    "computes in f32",
    example='<layer name="divisor" type="Const" version="opset1">\n  <data element_type="f16" shape=""/>\n</layer>\n'
    '<layer name="quotient" type="Divide" version="opset1"/>',
    repair="Convert the constant to f32 before the division, or multiply by a constant.",
)  # fmt: skip
def _rounded_reciprocal(layer: ExaminedLayer) -> bool:
    if layer.element(1) != "f16" or layer.is_constant(0) or not layer.is_constant(1):
        return False
    divisor = layer.constant(1)
    # Reciprocals of powers of 2 are exact.
    return divisor is None or any(math.frexp(value)[0] not in (0.0, 0.5, -0.5) for value in divisor)


@difference(
    "IR989", "weights in odd groups", ("MatMul",), "CPU plugin", "values", since="2024.6",
    does="the CPU plugin gives wrong products with weights in groups of some sizes: of i8 or u8 in groups of more than "
    "4 that are not multiples of 4, of i4 or u4 in odd groups of more than 4, in groups of more than 32 that are "
    "not multiples of 32, or with a scale for each element",
    example='<layer name="codes" type="Const" version="opset1">\n'
    '  <data element_type="i8" shape="64,16,6"/>\n</layer>\n'
    '<layer name="product" type="MatMul" version="opset1">\n  <data transpose_b="true"/>\n</layer>',
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


def decompressed(weights: Value | None) -> tuple[Constant | None, bool, list[tuple[int, ...]]]:
    """The integers of compressed weights, whether a Reshape joins groups, and the shapes of scales and zero points."""
    is_grouped, shapes = False, []
    while weights is not None and weights.node.type in ("Convert", "Subtract", "Multiply", "Reshape"):
        is_grouped |= weights.node.type == "Reshape"
        other = weights.node.inputs[1] if weights.node.type in ("Subtract", "Multiply") else None
        while other is not None and other.node.type == "Convert":
            other = other.node.inputs[0]
        if other is not None and other.node.constant is not None:
            shapes.append(tuple(other.node.constant.shape))
        weights = weights.node.inputs[0]
    return (None if weights is None else weights.node.constant), is_grouped, shapes


@difference(
    "IR998", "scales along a row", ("MatMul", "Gather"), "CPU plugin", "values",
    does="where scales or zero points of compressed weights vary within a row and not from row to row, the CPU plugin "
    "takes the first ones for all, or ends the process, in a MatMul and in a Gather of rows",
    example='<layer name="codes" type="Const" version="opset1">\n  <data element_type="u8" shape="64,128"/>\n</layer>\n'
    '<layer name="scales" type="Const" version="opset1">\n  <data element_type="f16" shape="1,128"/>\n</layer>\n'
    '<layer name="product" type="MatMul" version="opset1">\n  <data transpose_b="true"/>\n</layer>',
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
