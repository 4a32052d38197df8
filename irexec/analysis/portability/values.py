"""Differences in values of other kinds: windows, boxes, sequences, random numbers, networks. IR91x to IR94x."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import (
    aligned_at_the_end,
    difference,
    is_aligned_at_the_start,
    layer_xml,
    may_be,
    windows_beside,
)
from irexec.ir.dims import low
from irexec.schema.shape_rules import pdpd_start

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer


@difference(
    "IR912", "axes aligned at the end",
    ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "BitwiseLeftShift", "BitwiseRightShift"),
    "CPU plugin", "values",
    does="the CPU plugin aligns the axes of the second input with the last ones of the first, where "
    'auto_broadcast="pdpd" aligns them with the first ones',
    example=layer_xml("Less-1", 'auto_broadcast="pdpd"', "[3,3]", "[3]"),
    repair='Reshape the second input to the rank of the first, and write auto_broadcast="numpy".',
)  # fmt: skip
def _aligned_at_the_end(layer: ExaminedLayer) -> bool:
    right = layer.definition.type in ("Equal", "NotEqual") and not layer.is_integer()
    return not right and is_aligned_at_the_start(layer) and aligned_at_the_end(layer)


@difference(
    "IR994", "padding of a kernel of one", ("ConvolutionBackpropData",), "CPU plugin", "values",
    does="with output_shape of the size of the data and a kernel of size 1, the CPU plugin ignores pads_begin; with "
    "other sizes it leaves out these elements, as the reference kernel does",
    example=layer_xml("ConvolutionBackpropData-1",
        'strides="1, 1" pads_begin="1, 0" pads_end="0, 0" dilations="1, 1" auto_pad="explicit"'),
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
    example=layer_xml("MaxPool-1", 'strides="3" pads_begin="0" pads_end="2" kernel="2" rounding_type="ceil"'),
    repair="Use less padding, so that every window has an element of the data.",
)(lambda layer: layer.element() in ("f16", "f64") and windows_beside(layer))  # fmt: skip


@difference(
    "IR919", "cube_coeff ignored", ("Interpolate",), "CPU plugin", "values",
    does="the CPU plugin computes bicubic_pillow with the coefficient -0.5, whatever cube_coeff is; constant "
    "folding uses cube_coeff",
    example=layer_xml("Interpolate-11", 'mode="bicubic_pillow" cube_coeff="-0.75"'),
    repair='Write cube_coeff="-0.5".',
)  # fmt: skip
def _coefficient(layer: ExaminedLayer) -> bool:
    return layer["mode"] == "bicubic_pillow" and not math.isclose(layer["cube_coeff"], -0.5, rel_tol=1e-6)


difference(
    "IR920", "box without extent", ("ROIAlign",), "CPU plugin", "values",
    does="with sampling_ratio=0 the CPU plugin gives NaN for a box without width or height, the reference 0",
    example=layer_xml("ROIAlign-9", 'sampling_ratio="0"'),
    repair="Write the sampling_ratio that is meant, such as 2, or make sure that boxes have an extent.",
)(lambda layer: layer["sampling_ratio"] == 0)  # fmt: skip


@difference(
    "IR924", "padding of a binary convolution", ("BinaryConvolution",), "CPU plugin", "values",
    does="the CPU plugin leaves out padding of pad_value 0, which the specification counts as -1",
    example=layer_xml("BinaryConvolution-1", 'mode="xnor-popcount" pad_value="0" pads_begin="1, 1" pads_end="1, 1"'),
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
    example=layer_xml("LSTMCell-1", 'hidden_size="4" input_forget="true"'),
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
    example=layer_xml("LSTMSequence-5", "", "[2,-1,3]"),
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
    example=layer_xml("LRN-1", 'alpha="1e-4" beta="0.75" bias="1" size="5"'),
    repair="Write it in basic operations, or normalise over axis 1 or over the spatial axes.",
)  # fmt: skip
def is_over_three_axes(layer: ExaminedLayer) -> bool:
    axes = layer.ints(1)
    return axes is not None and len(axes) >= 3 and min(axes) in (0, 1)


difference(
    "IR946", "bias of a normalisation cut", ("LRN",), "CPU plugin", "values",
    does="the CPU plugin cuts the bias of an LRN to an integer: 0.5 becomes 0",
    example=layer_xml("LRN-1", 'alpha="1e-4" beta="0.75" bias="0.5" size="5"'),
    repair="Divide alpha by the bias, write a bias of 1, and multiply the result by bias ** -beta.",
)(lambda layer: not float(layer["bias"]).is_integer())  # fmt: skip


@difference(
    "IR928", "transform longer than the data", ("RDFT", "IRDFT"), "CPU plugin", "undefined values",
    does="the CPU plugin fails, or reads beside the data, where signal_size is more than the size of the axis; "
    "the specification pads with zeros",
    example=layer_xml("RDFT-9", "", "[2,6]"),
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
    example=layer_xml("Multiply-1", "", "FP64", "FP64"),
    repair="Use f32, so that every implementation computes the same.",
)  # fmt: skip
def _double(layer: ExaminedLayer) -> bool:
    computes = layer.definition.type not in ("Parameter", "Constant", "Result", "Convert", "ReadValue", "Assign")
    return computes and "f64" in map(layer.element, range(len(layer.node.inputs)))


@difference(
    "IR930", "maximum of nothing", ("ReduceMax", "ReduceMin"), "CPU plugin", "values",
    does="the maximum and minimum of no elements are the lowest and largest finite value for the CPU plugin, and "
    "infinities in ONNX and irexec",
    example=layer_xml("ReduceMax-1", "", "[2,0]"),
    repair="Make sure that the axes that are reduced have elements.",
)  # fmt: skip
def _maximum_of_nothing(layer: ExaminedLayer) -> bool:
    shape, axes = layer.shape(), layer.ints(1)
    if layer.element() not in ("f32", "f16", "bf16", "f64") or shape is None or axes is None:
        return False
    return any(-len(shape) <= axis < len(shape) and shape[axis] == 0 for axis in axes)


difference(
    "IR932", "softmax of regions by default", ("RegionYolo",), "reader", "shape",
    does="the reader takes do_softmax for false where it is absent, the specification for true",
    example=layer_xml("RegionYolo-1", 'axis="1" coords="4" classes="80" end_axis="3" num="5"'),
    repair="Write do_softmax.",
)(lambda layer: layer.says("do_softmax") is None)  # fmt: skip


@difference(
    "IR933", "images of a batch mixed up", ("RegionYolo",), "CPU plugin", "values",
    does="without do_softmax the CPU plugin mixes up the images of a batch where the input has more channels than "
    "the regions take",
    example=layer_xml("RegionYolo-1", 'do_softmax="false" mask="0, 1, 2"', "[2,255,13,13]"),
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
    example=layer_xml("PriorBoxClustered-1", 'step="16" offset="0.5"'),
    repair="Write width and height.",
)(lambda layer: layer.says("width") is None or layer.says("height") is None)  # fmt: skip


def _is_seeded(layer: ExaminedLayer) -> bool:
    return bool(layer["global_seed"] or layer["op_seed"])


difference(
    "IR935", "random numbers of small floats", ("RandomUniform",), "CPU plugin", "values",
    does="the CPU plugin generates f16, bf16 and f64 as f32: other numbers than the specification's algorithm "
    "gives for the same seeds",
    example=layer_xml("RandomUniform-8", 'output_type="f16" global_seed="1" op_seed="2"'),
    repair="Generate f32 and convert.",
)(lambda layer: _is_seeded(layer) and layer.element(1) in ("f16", "bf16", "f64"))  # fmt: skip


difference(
    "IR936", "random numbers continued", ("RandomUniform",), "CPU plugin", "values",
    does="the CPU plugin continues the sequence of random numbers from one inference to the next, also with "
    "seeds; irexec and constant folding give the same ones each time",
    example=layer_xml("RandomUniform-8", 'output_type="f32" global_seed="1" op_seed="2"'),
    repair="If results must be the same in each inference, make the numbers an input or a constant.",
)(_is_seeded)  # fmt: skip


difference(
    "IR937", "samples of another generator", ("Multinomial",), "CPU plugin", "values",
    does="the CPU plugin draws other samples than the reference implementation, with the same seeds",
    example=layer_xml("Multinomial-13", 'global_seed="1" op_seed="2"'),
    repair="Expect the distribution, not the samples.",
)(_is_seeded)  # fmt: skip


@difference(
    "IR949", "axis of pdpd dropped", ("FakeQuantize",), "CPU plugin", "undefined values",
    does="the CPU plugin aligns the bounds with the last axes of the data, or takes the first ones for all, where "
    'auto_broadcast="pdpd" aligns them with other axes; it may read beyond the bounds, or end the process',
    example=layer_xml("FakeQuantize-1", 'levels="256" auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="1"',
        "[2,3,4]", "[3]"),
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
    example=layer_xml("PriorBox-8", 'min_size="0.4" max_size="0.9" scale_all_sizes="false" offset="0.5"'),
    repair="Leave out max_size.",
)  # fmt: skip
def _uncounted_boxes(layer: ExaminedLayer) -> bool:
    boxes = layer.attributes
    return boxes is not None and not boxes.scale_all_sizes and bool(boxes.min_size and boxes.max_size)


@difference(
    "IR985", "fractions in a range of integers", ("Range",), "CPU plugin", "shape",
    does="the CPU plugin adds a step with its fraction and rounds the sums; in the specification and in constant "
    "folding start, stop and step are truncated first",
    example=layer_xml("Range-4", 'output_type="i64"', "FP32", "FP32", "FP32"),
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
    example=layer_xml("Divide-1", name="quotient") + "\n" + layer_xml("ReduceMax-1"),
    repair="Bound the divisor, or the operand of the root or logarithm, with a Maximum, or replace NaN with IsNaN and "
    "Select.",
)  # fmt: skip
def _nan_among_maxima(layer: ExaminedLayer) -> bool:
    return any(layer.may_have_nan(i) for i in range(2 if layer.definition.type in ("Maximum", "Minimum") else 1))


@difference(
    "IR940", "operand gathered from constants", ("Einsum",), "CPU plugin", "values",
    does="the CPU plugin computes an Einsum of several matrices wrongly if one of its operands is computed from "
    "constants by GatherElements, which is not folded",
    example=layer_xml("GatherElements-6", 'axis="0"') + "\n" + layer_xml("Einsum-7", 'equation="inh,tnh->int"'),
    repair="Replace the GatherElements by a constant.",
)  # fmt: skip
def _gathered_operand(layer: ExaminedLayer) -> bool:
    operands, arrow, result = (layer["equation"] or "").partition("->")
    labels = operands.split(",")
    if not arrow or len(labels) != 2 or not set(labels[0]).intersection(labels[1], result) - {" ", "."}:
        return False
    return any(layer.has(i) and layer.is_gathered_from_constants(i) for i in range(2))


@difference(
    "IR943", "unsorted values without their indices", ("Unique",), "CPU plugin", "values",
    does="with sorted=false and without axis the CPU plugin computes the unique values, their first positions and "
    "their counts only if output 2, the indices into the unique values, is read too",
    example=layer_xml("Unique-10", 'sorted="false"'),
    repair='Write sorted="true", or read output 2 as well.',
)  # fmt: skip
def _unsorted_values(layer: ExaminedLayer) -> bool:
    others = any(layer.is_used(output) for output in (0, 1, 3))
    return layer["sorted"] is False and not layer.has(1) and others and not layer.is_used(2)


difference(
    "IR947", "empty list of repeats or shifts", ("Tile", "Roll"), "CPU plugin", "undefined values",
    does="the CPU plugin leaves the result as it was in memory where repeats of Tile or the axes of Roll are empty, "
    "and nothing is to be done",
    example=layer_xml("Tile-1", "", "", "[0]"),
    repair="Remove the layer, or write a 1 for each axis.",
)(lambda layer: layer.shape(1) == (0,))  # fmt: skip


@difference(
    "IR945", "reciprocal rounded to f16", ("Divide",), "CPU plugin", "values",
    does="the CPU plugin multiplies by the reciprocal of a constant divisor, which it rounds to f16, also where it "
    "computes in f32",
    example=layer_xml("Const-1", 'element_type="f16" shape=""', name="divisor") + "\n"
    + layer_xml("Divide-1", name="quotient"),
    repair="Convert the constant to f32 before the division, or multiply by a constant.",
)  # fmt: skip
def _rounded_reciprocal(layer: ExaminedLayer) -> bool:
    if layer.element(1) != "f16" or layer.is_constant(0) or not layer.is_constant(1):
        return False
    divisor = layer.constant(1)
    # Reciprocals of powers of 2 are exact.
    return divisor is None or any(math.frexp(value)[0] not in (0.0, 0.5, -0.5) for value in divisor)
