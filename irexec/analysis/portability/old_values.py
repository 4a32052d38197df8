"""Layers for which the CPU plugin of an older release gives other results, or fails, for some values of the inputs.

Source: the plugins themselves of 2021.4.2, 2022.3.2, 2023.3.0 and 2024.6.0, which tests.release_sweep asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from irexec.analysis.portability.difference import always
from irexec.analysis.portability.layer import KnownLayer
from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.ir import codes
from irexec.ir.dims import is_static
from irexec.ir.findings import Finding
from irexec.ir.graph import Value

_NOT_DYNAMIC = Release(2022, 1)

Condition = Callable[[KnownLayer], bool]


class _Row(NamedTuple):
    """Operations, the first release that is not known to have the remark, a condition, and the remark."""

    types: str
    until: Release
    condition: Condition
    text: str


def _computed(index: int) -> Condition:
    """The input is not a constant."""
    return lambda layer: layer.is_computed(index)


def _of_integers(layer: KnownLayer) -> bool:
    """The first input is of integers of 8 bits or more."""
    element = layer.input(0).element
    return element is not None and element.is_integer and element.bits >= 8


def _may_be_beyond_i32(layer: KnownLayer) -> bool:
    """Integers, but not those of 32 bits or more that are known and small, as half of a size is."""
    if layer.element() not in ("i32", "i64"):
        return _of_integers(layer)
    known = [layer.output(0).known, *(layer.value(i) for i in range(len(layer.node.inputs)))]
    return any(value is None or bool(((value <= -(2**31)) | (value >= 2**31)).any()) for value in known)


def _chooses_in_open_sizes(layer: KnownLayer) -> bool:
    """The condition is computed, and the sizes of an input or a result are not known."""
    sizes = [
        *map(layer.sizes, range(len(layer.node.inputs))),
        *(layer.facts[value].shape for value in layer.node.outputs),
    ]
    return layer.is_computed(0) and not all(map(is_static, sizes))


def _converts(layer: KnownLayer) -> bool:
    """To integers or booleans that may not hold the value, or from integers that i32 may not hold."""
    source, target = layer.input(0).element, layer.output(0).element
    if source is None or target is None:
        return False
    if source is target or source.kind == "boolean":
        return source.name in _LARGE
    loses_sign = source.kind == "signed" and target.kind != "signed"
    is_wider = source.is_integer and target.bits > source.bits and not loses_sign
    return source.name in _LARGE or (not target.is_float and not is_wider)


def _rounds_small_floats(layer: KnownLayer) -> bool:
    target = layer.output(0).element
    return target is not None and target.name in ("f8e4m3", "f4e2m1")


_LARGE = ("i64", "u64", "u32", "f64")


def _has_zero(index: int) -> Condition:
    """An element of the input may be 0."""

    def condition(layer: KnownLayer) -> bool:
        known = layer.value(index)
        return layer.has(index) and (known is None or not known.all())

    return condition


def _has_inexact_bounds(layer: KnownLayer) -> bool:
    """True if a bound of integers is not an integer, or not a value of i32."""
    bounds = [float(layer.node.attributes.get(name, "0")) for name in ("min", "max")]
    is_exact = all(bound.is_integer() and abs(bound) < 2**31 for bound in bounds)
    return not is_exact and _of_integers(layer)


def _may_be_nan(layer: KnownLayer) -> bool:
    boxes = layer.constant(1)
    return boxes is None or any(map(math.isnan, boxes))


def _may_be_far(layer: KnownLayer) -> bool:
    """A pixel outside of the data has the value of one inside, and is not known to be near."""
    grid = layer.constant(1)
    is_near = grid is not None and all(abs(coordinate) < _FAR for coordinate in grid)
    return layer.node.attributes.get("padding_mode", "zeros") != "zeros" and not is_near


_FAR = 1e4
"""A coordinate of a grid whose pixel i32 holds in images of up to 200000 pixels along an axis."""


def _has_a_grid_of_its_own(layer: KnownLayer) -> bool:
    return any(layer.node.attributes.get(name, "0") != "0" for name in ("h", "w"))


def _is_uneven(layer: KnownLayer) -> bool:
    """Some attribute of the windows has other numbers for the two axes."""
    names = ("strides", "dilations", "pads_begin", "pads_end")
    return any(len(set(layer.node.attributes.get(name, "").replace(" ", "").split(","))) > 1 for name in names)


def _has_computed_axes(layer: KnownLayer) -> bool:
    last = len(layer.node.inputs) - 1
    return last > 1 and layer.is_computed(last)


def _is_along_an_axis(layer: KnownLayer) -> bool:
    return len(layer.node.inputs) > 1


def _gives_no_elements(layer: KnownLayer) -> bool:
    return _is_any_empty(layer, layer.node.outputs)


def _has_no_elements(layer: KnownLayer) -> bool:
    return _is_any_empty(layer, (value for value in layer.node.inputs if value is not None))


def _is_any_empty(layer: KnownLayer, values: Iterable[Value]) -> bool:
    """Whether one of the values has an axis of size 0."""
    shapes = (layer.facts[value].shape for value in values if value in layer.facts)
    return any(shape is not None and 0 in shape for shape in shapes)


def _gives_all_boxes(layer: KnownLayer) -> bool:
    """Sizes are known, and some reader of the boxes does not cut them at the number that is given beside them."""
    boxes, count = layer.node.outputs[:2], layer.node.outputs[2:]
    readers = [reader for value in boxes for reader in layer.readers.get(value, ())]
    is_cut = all(reader.type == "StridedSlice" and [*reader.inputs[2:3]] == count for reader in readers)
    return is_static(layer.sizes()) and is_static(layer.sizes(1)) and not (count and is_cut)


def _may_select_none(layer: KnownLayer) -> bool:
    """The largest number of boxes may be 0 or less, or is not given."""
    known = layer.value(2)
    return known is None or bool((known <= 0).any())


def _of_a_scalar(layer: KnownLayer) -> bool:
    return layer.sizes() == ()


def _of_large(layer: KnownLayer) -> bool:
    return layer.element(1 if layer.node.type == "Select" else 0) in _LARGE


_OF_ELEMENTS = (
    "NonMaxSuppression MulticlassNms MatrixNms MatMul ReduceMax ReduceMin ReduceProd ReduceSum ReduceMean ReduceL1 "
    "ReduceL2 Gather Einsum Convolution BatchNormInference MVN NormalizeL2 LSTMCell GRUCell RNNCell Unique AvgPool "
    "MaxPool ScaledDotProductAttention ScatterNDUpdate SearchSorted DetectionOutput "
    "ReduceLogicalAnd ReduceLogicalOr NMSRotated LSTMSequence GRUSequence RNNSequence GenerateProposals "
    "BinaryConvolution"
)
_ARITHMETIC = "Add Subtract Multiply Convolution ConvolutionBackpropData GroupConvolution MatMul ReduceMean ReduceL2"

_ROWS = (
    _Row(
        _ARITHMETIC + " Power Mod FloorMod Divide SquaredDifference", NOT_ASKED, _may_be_beyond_i32,
        "saturates or rounds integers beyond the range of i32 or of their type, and quotients by zero",
    ),
    _Row(
        "Convert ConvertLike ConvertPromoteTypes", NOT_ASKED, _converts,
        "saturates values that the type, or i32 in place of a larger type, does not hold",
    ),
    _Row(
        "Convert ConvertLike", NOT_ASKED, _rounds_small_floats,
        "rounds values half-way between two of f8e4m3 or f4e2m1 away from the even one",
    ),
    _Row(
        "GatherND GatherElements ScatterNDUpdate ScatterElementsUpdate", NOT_ASKED, _computed(1),
        "takes indices that are counted from the end for indices outside of the data, or fails",
    ),
    _Row("Reverse", Release(2023, 0), _computed(1), "fails for axes that are counted from the end"),
    _Row(
        "Clamp", NOT_ASKED, _has_inexact_bounds,
        "rounds bounds of integers towards zero, and takes 0 for a bound that i32 does not hold",
    ),
    _Row(
        "If", NOT_ASKED, _chooses_in_open_sizes,
        "gives the result of the branch that it took first, where it takes the other one later and sizes are not known",
    ),
    _Row("LSTMSequence", NOT_ASKED, _has_zero(3), "gives zeros for a sequence of length 0"),
    _Row("GRUSequence RNNSequence", NOT_ASKED, _has_zero(2), "gives zeros for a sequence of length 0"),
    _Row(
        "ROIAlign", _NOT_DYNAMIC, lambda layer: layer.says("mode") == "max",
        "gives other maxima where no sample is above 0",
    ),
    _Row(
        "Interpolate", NOT_ASKED,
        lambda layer: layer.says("mode") == "linear" and layer.says("antialias") in ("true", "1"),
        "weighs pixels otherwise with antialias",
    ),
    _Row(
        "Interpolate", NOT_ASKED, lambda layer: layer.says("mode") == "linear" and layer.is_of_bytes(),
        "rounds a value half-way between two bytes to the even one if sizes are known",
    ),
    _Row("DeformableConvolution", _NOT_DYNAMIC, _is_uneven, "gives other values where the axes of the windows differ"),
    _Row("BinaryConvolution", NOT_ASKED, always, "takes data other than 0 and 1 for one of them"),
    _Row("Select GridSample", NOT_ASKED, _of_large, "saturates integers beyond the range of i32"),
    _Row(
        "NotEqual", _NOT_DYNAMIC, lambda layer: layer.element() == "u64",
        "saturates or cuts integers beyond the range of i32",
    ),
    _Row("Cos Sin Tan", NOT_ASKED, _of_large, "gives 0 for negative results of unsigned integers"),
    _Row("NormalizeL2", NOT_ASKED, _of_a_scalar, "fails for a scalar, or adds eps to its square"),
    _Row("Interpolate", NOT_ASKED, _has_computed_axes, "fails for axes that are counted from the end"),
    _Row("Unique", Release(2023, 0), _is_along_an_axis, "gives other values along an axis"),
    _Row(
        "NonMaxSuppression", Release(2023, 0), _gives_all_boxes,
        "gives as many boxes as may be selected, the last ones unwritten, where a layer reads them and sizes are known",
    ),
    _Row("NonMaxSuppression", NOT_ASKED, _computed(3), "suppresses boxes whose overlap is the threshold"),
    _Row(
        "NonMaxSuppression NMSRotated", NOT_ASKED, _may_select_none,
        "fails, or counts other boxes, where it may select none",
    ),
    _Row(_OF_ELEMENTS, NOT_ASKED, _has_no_elements, "fails, or gives other values, without elements"),
    _Row(
        "Broadcast IRDFT", NOT_ASKED, _gives_no_elements,
        "ends the process, or gives another shape, for a result without elements",
    ),
    _Row(
        "ShapeOf", NOT_ASKED, _of_a_scalar,
        "ends the process if the shape of a scalar, which has no elements, is an output",
    ),
    _Row(
        "MatrixNms MulticlassNms", NOT_ASKED, lambda layer: layer.says("nms_top_k") == "0",
        "ends the process, or counts other boxes, for an nms_top_k of 0",
    ),
    _Row(
        "Unique", NOT_ASKED, lambda layer: _is_along_an_axis(layer) and layer.is_of_bytes(),
        "gives other values along an axis of 8-bit integers",
    ),
    _Row("TopK", NOT_ASKED, _has_zero(1), "fails for a k of 0"),
    _Row("OneHot", NOT_ASKED, _has_zero(1), "fails for a depth of 0"),
    _Row("NonZero", NOT_ASKED, _of_a_scalar, "gives a shape of [1, 0] where a scalar is 0"),
    _Row(
        "MaxPool", NOT_ASKED, lambda layer: layer.element() == "bf16" and layer.says("auto_pad") != "valid",
        "gives infinity for a window of bf16 that lies in the padding",
    ),
    _Row("ROIPooling", NOT_ASKED, _may_be_nan, "ends the process where a box is NaN"),
    _Row(
        "GridSample", NOT_ASKED, _may_be_far,
        "takes another pixel where a coordinate is so far outside of the data that i32 does not hold it",
    ),
    _Row(
        "ExperimentalDetectronPriorGridGenerator", NOT_ASKED, _has_a_grid_of_its_own,
        "leaves the rest of the output unwritten if h and w are fewer cells than the map has",
    ),
    _Row("Tile", NOT_ASKED, lambda layer: 0 in (layer.sizes(1) or ()), "fails, or gives other values, without repeats"),
    _Row("GatherTree", NOT_ASKED, always, "does not write the beams of length 0"),
    _Row(
        "FakeQuantize", NOT_ASKED, always,
        "computes levels in f32: a value half-way between two of them may get the other one",
    ),
    _Row(
        "Proposal ExperimentalDetectronDetectionOutput GenerateProposals "
        "ExperimentalDetectronGenerateProposalsSingleImage",
        NOT_ASKED, always, "does not order boxes of equal scores by their positions",
    ),
    _Row(
        "DetectionOutput", _NOT_DYNAMIC, always,
        "takes another box of several classes of one score at the limit of keep_top_k",
    ),
    _Row(
        "ExperimentalDetectronTopKROIs", NOT_ASKED, always,
        "leaves the rest of the output unwritten if there are fewer boxes than max_rois",
    ),
    _Row("CTCLoss", NOT_ASKED, always, "gives infinity where logits are large, and fails without labels"),
    _Row("EmbeddingBagOffsetsSum EmbeddingBagOffsets", NOT_ASKED, always, "fails for an empty last bag"),
    _Row("EmbeddingBagOffsets EmbeddingBagPacked", NOT_ASKED, _of_integers, "rounds means down"),
    _Row(
        "EmbeddingBagPackedSum EmbeddingBagPacked", NOT_ASKED,
        lambda layer: not (is_static(layer.sizes()) and is_static(layer.sizes(1))), "fails for bags without indices",
    ),
)  # fmt: skip


def other_values(layer: KnownLayer, release: Release) -> Iterator[Finding]:
    """Findings about a layer that a release may compute differently, as infos."""
    for row in _ROWS:
        if release < row.until and layer.node.type in row.types.split() and row.condition(layer):
            message = f"the CPU plugin of OpenVINO {release} {row.text} ({layer.node.type})"
            yield layer.node.finding(codes.OTHER_VALUES_IN_RELEASE, message)
