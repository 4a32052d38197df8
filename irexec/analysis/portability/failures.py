"""Differences by which a model is not read, compiled or run, or has another shape: IR951 to IR969, IR975 to IR980."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import (
    MOVES,
    NOT_MOVED,
    aligned_at_the_end,
    always,
    decompressed,
    difference,
    is_aligned_at_the_start,
    layer_xml,
)
from irexec.analysis.portability.values import is_over_three_axes
from irexec.ir.dims import is_static

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.graph import Node


@difference(
    "IR951", "one group refused", ("GroupConvolutionBackpropData",), "CPU plugin", "fails", since="2024.2",
    does="the CPU plugin does not compile one group of several channels",
    example=layer_xml("GroupConvolutionBackpropData-1", "", "", "[1,8,4,3,3]"),
    repair="Write a ConvolutionBackpropData, whose weights have no axis of groups.",
)  # fmt: skip
def _one_group(layer: ExaminedLayer) -> bool:
    weights = layer.sizes(1)
    return weights is not None and len(weights) > 3 and weights[0] == 1 and (weights[1] != 1 or weights[2] != 1)


@difference(
    "IR952", "axes of normalisation refused", ("LRN",), "CPU plugin", "fails",
    does="the CPU plugin runs LRN over axis 1 or over all spatial axes, counted from the front, and no others",
    example=layer_xml("LRN-1", 'alpha="1e-4" beta="0.75" bias="1" size="5"'),
    repair="Transpose so that the axis is 1.",
)  # fmt: skip
def _axes(layer: ExaminedLayer) -> bool:
    axes, shape = layer.ints(1), layer.sizes()
    if axes is None or shape is None or not axes or is_over_three_axes(layer):
        return False
    return axes != [1] and sorted(axes) != list(range(2, len(shape)))


@difference(
    "IR953", "axes counted from the end", ("Interpolate",), "reader", "fails",
    does="the reader refuses negative axes, which the specification allows",
    example=layer_xml("Interpolate-11", 'mode="nearest"'),
    repair="Count the axes from the front.",
)  # fmt: skip
def _negative_axes(layer: ExaminedLayer) -> bool:
    axes = layer.ints(3 if layer.definition.since == 4 else 2) if layer.definition.since != 1 else None
    return axes is not None and any(axis < 0 for axis in axes)


@difference(
    "IR954", "operands of pdpd refused",
    ("Subtract", "Divide", "Mod", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"),
    "CPU plugin", "fails",
    does='the CPU plugin does not compile auto_broadcast="pdpd" where the shapes do not fit with their last axes '
    "aligned",
    example=layer_xml("Subtract-1", 'auto_broadcast="pdpd"', "[3,4]", "[3]"),
    repair='Reshape the second input to the rank of the first, and write auto_broadcast="numpy".',
)  # fmt: skip
def _does_not_fit(layer: ExaminedLayer) -> bool:
    if not is_aligned_at_the_start(layer) or aligned_at_the_end(layer):
        return False
    if layer.definition.type in ("Subtract", "Divide", "Mod"):
        return layer.definition.type == "Subtract" or not layer.is_integer()
    return (layer.shape(1) or (1,))[-1] != 1


difference(
    "IR955", "group without default", ("DeformableConvolution",), "reader", "fails",
    does="the reader takes an absent group or deformable_group for 0 and refuses it, where the specification has 1",
    example=layer_xml("DeformableConvolution-8", 'strides="1, 1" pads_begin="0, 0" pads_end="0, 0" dilations="1, 1"'),
    repair="Write group and deformable_group.",
)(lambda layer: layer.says("group") is None or layer.says("deformable_group") is None)  # fmt: skip


@difference(
    "IR956", "activations without default",
    ("LSTMSequence", "GRUSequence", "RNNSequence", "LSTMCell", "GRUCell", "RNNCell"), "CPU plugin", "fails",
    does="absent activations of a sequence, and empty ones of a cell too, are none: the reader refuses the cell, and "
    "the CPU plugin does not compile the sequence; the specification has defaults",
    example=layer_xml("LSTMSequence-5", 'hidden_size="4" direction="forward"'),
    repair='Write them: "sigmoid, tanh, tanh" for LSTM, "sigmoid, tanh" for GRU, "tanh" for RNN.',
)  # fmt: skip
def _without_activations(layer: ExaminedLayer) -> bool:
    given = layer.says("activations")
    return layer.definition.type.endswith("Sequence") if given is None else not given.strip()


@difference(
    "IR957", "background and decreased labels", ("DetectionOutput",), "CPU plugin", "fails",
    does="the CPU plugin refuses decrease_label_id with a background_label_id other than 0",
    example=layer_xml("DetectionOutput-8", 'decrease_label_id="true" background_label_id="1"'),
    repair="Make the background class 0.",
)  # fmt: skip
def _background(layer: ExaminedLayer) -> bool:
    attributes = layer.attributes
    return attributes is not None and attributes.decrease_label_id and attributes.background_label_id != 0


difference(
    "IR958", "adaptive threshold refused", ("GenerateProposals",), "reader", "fails",
    does="the reader refuses an nms_eta other than 1",
    example=layer_xml("GenerateProposals-9", 'nms_eta="0.9"'),
    repair='Write nms_eta="1".',
)(lambda layer: layer["nms_eta"] != 1)  # fmt: skip


difference(
    "IR959", "operation without kernel", ("GroupedMatMul", "RGBtoNV12", "BGRtoNV12"), "CPU plugin", "fails",
    does="OpenVINO infers the shapes of the operation and has no kernel for it",
    example=layer_xml("GroupedMatMul-17"),
    repair="Write it in other operations.",
)(always)  # fmt: skip


@difference(
    "IR960", "tensor of unknown rank", (), "CPU plugin", "fails",
    does="the CPU plugin does not compile a model with an input or a layer of unknown rank",
    example=layer_xml("Parameter-1", 'shape="..." element_type="f32"'),
    repair='Give inputs a rank, such as shape="?,?,?", and layers shapes of known length; sizes may stay dynamic.',
)  # fmt: skip
def _unknown_rank(layer: ExaminedLayer) -> bool:
    return layer.is_of_the_model and any(layer.facts[value].shape is None for value in layer.node.outputs)


difference(
    "IR961", "logical reduction of any axes", ("ReduceLogicalAnd", "ReduceLogicalOr"), "CPU plugin", "fails",
    does="the CPU plugin does not compile logical reductions whose axes are not constant",
    example=layer_xml("ReduceLogicalAnd-1"),
    repair="Make the axes a constant, or convert to i32 and use ReduceMin or ReduceMax.",
)(lambda layer: layer.value(1) is None)  # fmt: skip


@difference(
    "IR962", "pooling of an empty batch", ("MaxPool", "AvgPool"), "reader", "fails",
    does="the reader refuses pooling of a batch of 0",
    example=layer_xml("AvgPool-1", "", "[0,3,8,8]"),
    repair="Make sure that the batch has an image.",
)  # fmt: skip
def _empty_batch(layer: ExaminedLayer) -> bool:
    shape = layer.sizes()
    return bool(shape) and shape is not None and shape[0] == 0


difference(
    "IR963", "signal_size of -1", ("RDFT", "IRDFT"), "CPU plugin", "fails",
    does="the CPU plugin fails on -1 in signal_size, which means the size of the axis",
    example=layer_xml("RDFT-9"),
    repair="Write the size, or leave out signal_size.",
)(lambda layer: -1 in (layer.ints(2) or ()))  # fmt: skip


@difference(
    "IR964", "output_shape of unknown length",
    ("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
    "shape inference", "shape",
    does="where the length of output_shape is not known, shape inference leaves out the spatial axes",
    example=layer_xml("ConvolutionBackpropData-1", "", None, None, "I64[-1]"),
    repair="Give the input output_shape a static length: the number of spatial axes.",
)  # fmt: skip
def _unknown_length(layer: ExaminedLayer) -> bool:
    shape = layer.sizes(2)
    return layer.has(2) and layer.value(2) is None and (shape is None or not isinstance(shape[0], int))


@difference(
    "IR965", "empty last bag", ("EmbeddingBagOffsetsSum", "EmbeddingBagOffsets"), "CPU plugin", "fails",
    does="the CPU plugin fails where the last bag is empty; the specification has the default value there",
    example=layer_xml("EmbeddingBagOffsetsSum-3"),
    repair="Make sure that the last bag has an index.",
)  # fmt: skip
def _empty_bag(layer: ExaminedLayer) -> bool:
    offsets, indices = layer.ints(2), layer.shape(1)
    return offsets is None or indices is None or (bool(offsets) and offsets[-1] >= indices[0])


@difference(
    "IR966", "padding of a whole window", ("AvgPool",), "reader", "fails",
    does="the reader refuses padding of the size of the kernel or more with exclude-pad",
    example=layer_xml("AvgPool-1", 'kernel="2, 2" pads_begin="0, 0" pads_end="2, 2" exclude-pad="true"'),
    repair="Use less padding, or pad with a Pad.",
)  # fmt: skip
def _padded_window(layer: ExaminedLayer) -> bool:
    attributes = layer.attributes
    if attributes is None or attributes.auto_pad != "explicit" or not layer["exclude_pad"]:
        return False
    rank = len(attributes.kernel)
    dilations = getattr(attributes, "dilations", ()) or (1,) * rank
    extents = [dilation * (size - 1) + 1 for size, dilation in zip(attributes.kernel, dilations, strict=False)]
    pairs = [pair for pads in (attributes.pads_begin, attributes.pads_end) for pair in zip(pads, extents, strict=False)]
    return any(pad >= extent for pad, extent in pairs)


difference(
    "IR967", "operation of irexec", (), "reader", "fails",
    does="OpenVINO has no such operation: irexec runs it, OpenVINO does not read the model",
    example='<layer type="ConvTranspose" version="onednn"/>',
    repair="Convert the model without it, or write the layer in OpenVINO's operations, if OpenVINO is to run it.",
)(lambda layer: isinstance(layer.definition.since, str))  # fmt: skip


@difference(
    "IR975", "strings refused",
    (
        "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "Select", "Broadcast", "Tile",
        "GatherElements", "GatherND", "ScatterElementsUpdate", "ScatterNDUpdate", "Roll", "ReverseSequence", "Unique",
        "TopK",
    ),
    "CPU plugin", "fails",
    does="the CPU plugin does not compile this operation on strings",
    example=layer_xml("Equal-1", "", "STRING", "STRING"),
    repair="Compare and select strings outside of the model.",
)  # fmt: skip
def _strings(layer: ExaminedLayer) -> bool:
    return "string" in map(layer.element, range(len(layer.node.inputs)))


difference(
    "IR976", "axis of unique elements that is computed", ("Unique",), "reader", "fails",
    does="the reader refuses an axis that is not a Constant, also one that is computed from constants",
    example=layer_xml("Parameter-1", 'element_type="i64" shape=""', name="axis") + "\n"
    + layer_xml("Unique-10", name="unique"),
    repair="Make the axis a Constant, with fold if it is computed from constants.",
)(lambda layer: layer.has(1) and layer.constant(1) is None)  # fmt: skip


_DIVIDED = {
    "Divide": {"i16", "i32", "i64", "u16", "u32", "u64"},
    "Mod": {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"},
    "FloorMod": {"u8", "u32", "u64"},
}
"""Element types of which constant folding fails; of the others it gives a value."""


@difference(
    "IR977", "constant integer divided by zero", tuple(_DIVIDED), "constant folding", "fails",
    does="constant folding fails where a constant integer is divided by 0, or ends the process, and so the model is "
    "not compiled",
    example=layer_xml("Const-1", 'element_type="i32" shape=""', name="zero") + "\n"
    + layer_xml("Divide-1", name="quotient"),
    repair="Make the divisor 1 where it is 0, and select another value there.",
)  # fmt: skip
def _constant_by_zero(layer: ExaminedLayer) -> bool:
    if layer.element() not in _DIVIDED[layer.node.type] or 0 in (layer.result() or ()):
        return False
    return 0 in (layer.ints(1) or ()) and (layer.value(0) is not None or layer.is_constant(0))


difference(
    "IR978", "image of unknown rank", ("Col2Im",), "reader", "fails",
    does="the reader refuses output_size and kernel_size of unknown length, although they have 2 elements",
    example=layer_xml("Col2Im-15", "", None, "I64[-1]"),
    repair="Give both inputs the static shape 2.",
)(lambda layer: any(shape is not None and not is_static(shape) for shape in map(layer.sizes, (1, 2))))  # fmt: skip


_BIASES = {"LSTMCell": 5, "GRUCell": 4, "RNNCell": 4}


@difference(
    "IR979", "cell without biases", tuple(_BIASES), "reader", "fails",
    does="the reader refuses a cell without the input B, which is optional in the specification",
    example=layer_xml("RNNCell-1", 'hidden_size="4"', "", "", "", ""),
    repair="Add an input B of zeros.",
)  # fmt: skip
def _without_biases(layer: ExaminedLayer) -> bool:
    definition = layer.definition
    return not layer.has(_BIASES[definition.type]) and (definition.type, definition.since) != ("LSTMCell", 1)


@difference(
    "IR982", "empty list refused",
    ("Unsqueeze", "Pad", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogicalAnd", "ReduceLogicalOr"),
    "CPU plugin", "fails",
    does="the CPU plugin does not compile an empty list of axes for Unsqueeze, or for a reduction with "
    "keep_dims=false, and empty pads of a scalar, which all change nothing in the shape",
    example=layer_xml("Unsqueeze-1", "", "[2]", "[0]"),
    repair="Remove the layer; of a reduction write keep_dims=true.",
)  # fmt: skip
def _empty_list(layer: ExaminedLayer) -> bool:
    return layer.shape(1) == (0,) and not (layer.definition.type.startswith("Reduce") and layer["keep_dims"])


difference(
    "IR990", "pooling without dilations", ("AvgPool",), "CPU plugin", "fails", since="2025.3",
    does="the CPU plugin ends the process for AvgPool of version 16 without dilations, which are optional in the "
    "specification",
    example=layer_xml("AvgPool-16", 'kernel="2" strides="1" pads_begin="0" pads_end="0" exclude-pad="true"'),
    repair="Write dilations of 1, or version 14.",
)(lambda layer: layer.definition.since == 16 and not layer["dilations"])  # fmt: skip


difference(
    "IR983", "compressed 1x1 convolution of a part", ("Reshape", "Transpose"), "CPU plugin", "fails", since="2026.4",
    does="the CPU plugin does not compile a Reshape or Transpose of a 1x1 convolution that has compressed weights and "
    "reads an output of a layer with several outputs, such as VariadicSplit",
    example=layer_xml("VariadicSplit-1", name="part") + "\n"
    + layer_xml("Convolution-1", name="conv") + "\n"
    + layer_xml("Transpose-1", name="moved"),
    repair="Leave the weights of the convolution as they are: irexec edit --compress int8 --keep LAYER.",
)(lambda layer: refused_convolution(layer.node) is not None)  # fmt: skip


def refused_convolution(node: Node) -> Node | None:
    """The compressed 1x1 convolution because of which OpenVINO 2026.4 does not compile a Reshape or Transpose.

    Its transformation to a MatMul takes the layer that makes the data for the tensor, which is one of several. Source:
    openvino ``convert_weight_compressed_conv1x1_to_matmul.cpp``; an output of Split did not fail.
    """
    source = node.inputs[0] if node.type in ("Reshape", "Transpose") and node.inputs else None
    if source is not None and source.node.type == "Add":
        source = next((one for one in source.node.inputs if one is not None and one.node.constant is None), None)
    if source is None or source.node.type != "Convolution" or len(source.node.inputs) < 2:
        return None
    data, weights = source.node.inputs[:2]
    if data is None or len(data.node.outputs) < 2 or data.node.type == "Split":
        return None
    constant, _, _ = decompressed(weights)
    if constant is None or constant.element.name not in ("i8", "u8", "i4", "u4"):
        return None
    return source.node if tuple(constant.shape[-2:]) == (1, 1) else None


@difference(
    "IR991", "slices that are computed", ("SliceScatter",), "CPU plugin", "undefined values", since="2024.5",
    does="in static shapes the CPU plugin reads start, stop, step and axes once, before they are computed, and writes "
    "to other elements or beyond its memory",
    example=layer_xml("Parameter-1", 'element_type="i64" shape="1"', name="start") + "\n"
    + layer_xml("SliceScatter-15", name="written"),
    repair="Make start, stop, step and axes constants, or write a ScatterUpdate of a Range.",
)  # fmt: skip
def _computed_slice(layer: ExaminedLayer) -> bool:
    has_static_shapes = layer.shape(0) is not None and layer.shape(1) is not None
    return has_static_shapes and any(layer.has(i) and layer.value(i) is None for i in (2, 3, 4, 5))


def _entries(layer: ExaminedLayer) -> tuple[int, int, int, int]:
    """The number of entries of a StridedSlice, of its new axes, of its removed axes, and 1 if there is an ellipsis."""
    shape = layer.shape(1)
    count = 0 if shape is None else shape[0]
    masks = (layer[name] or () for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"))
    new, gone, rest = (sum(map(bool, mask[:count])) for mask in masks)
    return count, new, gone, rest


@difference(
    "IR950", "new axis beside a removed one", ("StridedSlice",), "CPU plugin", "undefined values",
    does="with a new axis and a removed one, as in x[1, None], the CPU plugin gives wrong elements and reads beyond "
    "its memory where axes follow that have no entry",
    example=layer_xml("StridedSlice-1", 'begin_mask="0,0" end_mask="0,0" new_axis_mask="0,1" shrink_axis_mask="1,0"',
        "[4,5]", "I64[2]"),
    repair="Write an entry for each axis, such as x[1, None, :], or an Unsqueeze behind the slice.",
)  # fmt: skip
def _new_beside_removed(layer: ExaminedLayer) -> bool:
    (count, new, gone, rest), shape = _entries(layer), layer.sizes()
    return bool(new and gone and not rest) and (shape is None or count - new < len(shape))


@difference(
    "IR910", "new axes without a slice", ("StridedSlice",), "CPU plugin", "fails",
    does="in static shapes the CPU plugin does not run new axes whose bounds are computed, unless another entry "
    "slices an axis",
    example=layer_xml("Parameter-1", 'element_type="i64" shape="1"', name="begin") + "\n"
    + layer_xml("StridedSlice-1", 'begin_mask="0" end_mask="0" new_axis_mask="1"'),
    repair="Write an Unsqueeze.",
)  # fmt: skip
def _new_axes_alone(layer: ExaminedLayer) -> bool:
    count, *others = _entries(layer)
    is_computed = any(layer.has(i) and layer.value(i) is None for i in (1, 2, 3))
    return layer.shape() is not None and is_computed and bool(others[0]) and sum(others) == count


@difference(
    "IR993", "batches of one slice", ("Gather",), "CPU plugin", "undefined values",
    does="with batch_dims the CPU plugin reads beside the data and the indices, which may end the process, where all "
    "axes before the gathered one have size 1",
    example=layer_xml("Gather-8", 'batch_dims="1"', "[1,4]", "I32[1,2]"),
    repair="Write batch_dims of 0, and Reshape the indices.",
)  # fmt: skip
def _one_slice(layer: ExaminedLayer) -> bool:
    shape, axes = layer.shape(), layer.ints(2)
    if not layer["batch_dims"] or not shape or axes is None or (layer.is_constant(0) and layer.is_constant(1)):
        return False
    return all(size == 1 for size in shape[: axes[0] % len(shape)])


difference(
    "IR984", "moved values of a few bits", MOVES, "CPU plugin", "undefined values",
    does="the CPU plugin gives wrong values where it gathers, slices, joins, splits, pads or repeats data of u1, u2, "
    "u3, u6, nf4 or f4e2m1, and writes beyond its memory, which may end the process; u4 and i4 are right",
    example=layer_xml("Const-1", 'element_type="f4e2m1" shape="6,32" offset="0" size="96"', name="codes") + "\n"
    + layer_xml("Gather-8", name="chosen"),
    repair="Put a Convert to a type of 8 bits or more before the layer.",
)(lambda layer: layer.element() in NOT_MOVED)  # fmt: skip


difference(
    "IR980", "element type of sizes refused", ("Interpolate",), "CPU plugin", "fails",
    does="the CPU plugin compiles version 1 with sizes of i32, i64, u32 and u64 alone",
    example=layer_xml("Interpolate-1", "", "FP32", "I8[2]"),
    repair="Convert the sizes to i64.",
)(lambda layer: layer.definition.since == 1 and layer.element(1) not in ("", "i32", "i64", "u32", "u64"))  # fmt: skip


difference(
    "IR968", "boxes counted statically", ("NonMaxSuppression",), "shape inference", "shape",
    does="before version 5 shape inference has a static number of boxes, and the model runs with as many as are "
    "selected",
    example=layer_xml("NonMaxSuppression-1"),
    repair="Use version 5 or 9, which say how many boxes are selected.",
)(lambda layer: layer.definition.since in (1, 3, 4))  # fmt: skip


@difference(
    "IR969", "empty range", ("Range",), "CPU plugin", "shape",
    does="the CPU plugin takes the distance from start to stop without its sign: where step leads away from stop, "
    "the result has elements, and none in the specification",
    example=layer_xml("Range-4", 'output_type="i64"'),
    repair="Bound stop by start with a Maximum, or a Minimum where step is negative.",
)  # fmt: skip
def _empty_range(layer: ExaminedLayer) -> bool:
    if all(layer.value(i) is not None for i in range(3)):
        # Constant folding has the right result.
        return False
    if layer.value(1) is None and all(layer.is_computed_from_sizes(i) for i in range(2)):
        # A range from one length of a sequence to a longer one, as converters write it.
        return False
    start, stop, step = map(layer.bounds, range(3))
    return (step[1] > 0 and stop[0] < start[1]) or (step[0] < 0 and stop[1] > start[0])
