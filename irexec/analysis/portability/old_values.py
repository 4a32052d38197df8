"""Layers for which the CPU plugin of an older release gives other results, or fails, for some values of the inputs.

Source: the plugins themselves of 2021.4.2, 2022.3.2, 2023.3.0 and 2024.6.0, which tests.release_sweep asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.dtypes.elements import Element
from irexec.ir import codes
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Node, Value

_NOT_DYNAMIC = Release(2022, 1)

Facts = Mapping[Value, Fact]
Condition = Callable[[Node, Facts], bool]


class _Row(NamedTuple):
    """Operations, the first release that is not known to have the remark, a condition, and the remark."""

    types: str
    until: Release
    condition: Condition
    text: str


def _element(node: Node, facts: Facts, index: int = 0) -> Element | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    fact = None if value is None else facts.get(value)
    return None if fact is None else fact.element


def _is_known(node: Node, facts: Facts, index: int) -> bool:
    value = node.inputs[index] if index < len(node.inputs) else None
    return value is None or value.node.constant is not None


def _always(node: Node, facts: Facts) -> bool:
    return True


def _computed(index: int) -> Condition:
    """The input is not a constant."""
    return lambda node, facts: not _is_known(node, facts, index)


def _of_integers(*bits: int) -> Condition:
    """The first input is of integers of so many bits."""

    def condition(node: Node, facts: Facts) -> bool:
        element = _element(node, facts)
        return element is not None and element.is_integer and element.bits in bits

    return condition


def _of(name: str) -> Condition:
    """The first input is of an element type."""

    def condition(node: Node, facts: Facts) -> bool:
        element = _element(node, facts)
        return element is not None and element.name == name

    return condition


def _converts(node: Node, facts: Facts) -> bool:
    """To integers or booleans that may not hold the value, or from integers that i32 may not hold."""
    source = _element(node, facts)
    target = facts[node.outputs[0]].element if node.outputs and node.outputs[0] in facts else None
    if source is None or target is None:
        return False
    if source is target:
        return _is_large(source)
    loses_sign = source.kind == "signed" and target.kind != "signed"
    is_wider = source.is_integer and target.bits > source.bits and not loses_sign
    return _is_large(source) or (not target.is_float and not is_wider)


def _rounds_small_floats(node: Node, facts: Facts) -> bool:
    target = facts[node.outputs[0]].element if node.outputs and node.outputs[0] in facts else None
    return target is not None and target.name in ("f8e4m3", "f4e2m1")


def _is_large(element: Element) -> bool:
    return element.name in ("i64", "u64", "u32", "f64")


def _has_zero(index: int) -> Condition:
    """An element of the input may be 0."""

    def condition(node: Node, facts: Facts) -> bool:
        value = node.inputs[index] if index < len(node.inputs) else None
        known = None if value is None or value not in facts else facts[value].known
        return value is not None and (known is None or not known.all())

    return condition


def _has_inexact_bounds(node: Node, facts: Facts) -> bool:
    """Bounds of integers that are no integers, or that i32 does not hold."""
    bounds = [float(node.attributes.get(name, "0")) for name in ("min", "max")]
    is_exact = all(bound.is_integer() and abs(bound) < 2**31 for bound in bounds)
    return not is_exact and _of_integers(8, 16, 32, 64)(node, facts)


def _pads_bf16(node: Node, facts: Facts) -> bool:
    return _of("bf16")(node, facts) and node.attributes.get("auto_pad") != "valid"


def _may_be_nan(index: int) -> Condition:
    def condition(node: Node, facts: Facts) -> bool:
        known = _constant(node, index)
        return known is None or bool(np.isnan(np.asarray(known, np.float64)).any())

    return condition


def _may_be_far(node: Node, facts: Facts) -> bool:
    """A pixel outside of the data has the value of one inside, and is not known to be near."""
    known = _constant(node, 1)
    is_near = known is not None and bool((np.abs(np.asarray(known, np.float64)) < _FAR).all())
    return node.attributes.get("padding_mode", "zeros") != "zeros" and not is_near


_FAR = 1e4
"""A coordinate of a grid whose pixel i32 holds in images of up to 200000 pixels along an axis."""


def _constant(node: Node, index: int) -> np.ndarray | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is not None and value.node.constant is not None:
        return constant_value(value.node.constant)
    return None


def _has_a_grid_of_its_own(node: Node, facts: Facts) -> bool:
    return any(node.attributes.get(name, "0") != "0" for name in ("h", "w"))


def _of_maxima(node: Node, facts: Facts) -> bool:
    return node.attributes.get("mode") == "max"


def _is_antialiased(node: Node, facts: Facts) -> bool:
    return node.attributes.get("mode") == "linear" and node.attributes.get("antialias") in ("true", "1")


def _is_uneven(node: Node, facts: Facts) -> bool:
    """Some attribute of the windows has other numbers for the two axes."""
    names = ("strides", "dilations", "pads_begin", "pads_end")
    return any(len(set(node.attributes.get(name, "").replace(" ", "").split(","))) > 1 for name in names)


def _is_of_no_repeats(node: Node, facts: Facts) -> bool:
    value = node.inputs[1] if len(node.inputs) > 1 else None
    shape = None if value is None or value not in facts else facts[value].shape
    return shape is not None and 0 in shape


def _has_computed_axes(node: Node, facts: Facts) -> bool:
    count = len(node.inputs)
    return count > 2 and not _is_known(node, facts, count - 1)


def _is_along_an_axis(node: Node, facts: Facts) -> bool:
    return len(node.inputs) > 1


def _of_bytes_along_an_axis(node: Node, facts: Facts) -> bool:
    return _is_along_an_axis(node, facts) and _of_integers(8)(node, facts)


def _keeps_none(node: Node, facts: Facts) -> bool:
    return node.attributes.get("nms_top_k") == "0"


def _gives_no_elements(node: Node, facts: Facts) -> bool:
    shapes = (facts[value].shape for value in node.outputs if value in facts)
    return any(shape is not None and 0 in shape for shape in shapes)


def _has_no_elements(node: Node, facts: Facts) -> bool:
    """Some input has an axis of size 0."""
    shapes = (facts[value].shape for value in node.inputs if value is not None and value in facts)
    return any(shape is not None and 0 in shape for shape in shapes)


def _may_select_none(node: Node, facts: Facts) -> bool:
    """The largest number of boxes may be 0 or less, or is not given."""
    value = node.inputs[2] if len(node.inputs) > 2 else None
    known = None if value is None or value not in facts else facts[value].known
    return value is None or known is None or bool((known <= 0).any())


def _of_a_scalar(node: Node, facts: Facts) -> bool:
    value = node.inputs[0] if node.inputs else None
    return value is not None and value in facts and facts[value].shape == ()


def _of_large(node: Node, facts: Facts) -> bool:
    element = _element(node, facts, 1 if node.type == "Select" else 0)
    return element is not None and _is_large(element)


_OF_ELEMENTS = (
    "NonMaxSuppression MulticlassNms MatrixNms MatMul ReduceMax ReduceMin ReduceProd ReduceSum ReduceMean ReduceL1 "
    "ReduceL2 Gather Einsum Convolution BatchNormInference MVN NormalizeL2 LSTMCell GRUCell RNNCell Unique AvgPool "
    "MaxPool ScaledDotProductAttention ScatterNDUpdate SearchSorted DetectionOutput "
    "ReduceLogicalAnd ReduceLogicalOr NMSRotated LSTMSequence GRUSequence RNNSequence GenerateProposals"
)
_ARITHMETIC = "Add Subtract Multiply Convolution ConvolutionBackpropData GroupConvolution MatMul ReduceMean ReduceL2"

_ROWS = (
    _Row(
        _ARITHMETIC + " Power Mod FloorMod Divide SquaredDifference", NOT_ASKED, _of_integers(8, 16, 32, 64),
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
    _Row("LSTMSequence", NOT_ASKED, _has_zero(3), "gives zeros for a sequence of length 0"),
    _Row("GRUSequence RNNSequence", NOT_ASKED, _has_zero(2), "gives zeros for a sequence of length 0"),
    _Row("ROIAlign", _NOT_DYNAMIC, _of_maxima, "gives other maxima where no sample is above 0"),
    _Row("Interpolate", NOT_ASKED, _is_antialiased, "weighs pixels otherwise with antialias"),
    _Row("DeformableConvolution", _NOT_DYNAMIC, _is_uneven, "gives other values where the axes of the windows differ"),
    _Row("BinaryConvolution", NOT_ASKED, _always, "takes data other than 0 and 1 for one of them"),
    _Row("Select GridSample", NOT_ASKED, _of_large, "saturates integers beyond the range of i32"),
    _Row("NotEqual", _NOT_DYNAMIC, _of("u64"), "saturates or cuts integers beyond the range of i32"),
    _Row("Cos Sin Tan", NOT_ASKED, _of_large, "gives 0 for negative results of unsigned integers"),
    _Row("NormalizeL2", NOT_ASKED, _of_a_scalar, "fails for a scalar, or adds eps to its square"),
    _Row("Interpolate", NOT_ASKED, _has_computed_axes, "fails for axes that are counted from the end"),
    _Row("Unique", Release(2023, 0), _is_along_an_axis, "gives other values along an axis"),
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
        "MatrixNms MulticlassNms", NOT_ASKED, _keeps_none,
        "ends the process, or counts other boxes, for an nms_top_k of 0",
    ),
    _Row("Unique", NOT_ASKED, _of_bytes_along_an_axis, "gives other values along an axis of 8-bit integers"),
    _Row("TopK", NOT_ASKED, _has_zero(1), "fails for a k of 0"),
    _Row("OneHot", NOT_ASKED, _has_zero(1), "fails for a depth of 0"),
    _Row("NonZero", NOT_ASKED, _of_a_scalar, "gives a shape of [1, 0] where a scalar is 0"),
    _Row("MaxPool", NOT_ASKED, _pads_bf16, "gives infinity for a window of bf16 that lies in the padding"),
    _Row("ROIPooling", NOT_ASKED, _may_be_nan(1), "ends the process where a box is NaN"),
    _Row(
        "GridSample", NOT_ASKED, _may_be_far,
        "takes another pixel where a coordinate is so far outside of the data that i32 does not hold it",
    ),
    _Row(
        "ExperimentalDetectronPriorGridGenerator", NOT_ASKED, _has_a_grid_of_its_own,
        "leaves the rest of the output unwritten if h and w are fewer cells than the map has",
    ),
    _Row("Tile", NOT_ASKED, _is_of_no_repeats, "fails, or gives other values, without repeats"),
    _Row("GatherTree", NOT_ASKED, _always, "does not write the beams of length 0"),
    _Row(
        "FakeQuantize", NOT_ASKED, _always,
        "computes levels in f32: a value half-way between two of them may get the other one",
    ),
    _Row(
        "Proposal ExperimentalDetectronDetectionOutput GenerateProposals "
        "ExperimentalDetectronGenerateProposalsSingleImage",
        NOT_ASKED, _always, "does not order boxes of equal scores by their positions",
    ),
    _Row(
        "DetectionOutput", _NOT_DYNAMIC, _always,
        "takes another box of several classes of one score at the limit of keep_top_k",
    ),
    _Row(
        "ExperimentalDetectronTopKROIs", NOT_ASKED, _always,
        "leaves the rest of the output unwritten if there are fewer boxes than max_rois",
    ),
    _Row("CTCLoss", NOT_ASKED, _always, "gives infinity where logits are large, and fails without labels"),
    _Row("EmbeddingBagOffsetsSum EmbeddingBagOffsets", NOT_ASKED, _always, "fails for an empty last bag"),
    _Row("EmbeddingBagOffsets EmbeddingBagPacked", NOT_ASKED, _of_integers(8, 16, 32, 64), "rounds means down"),
)  # fmt: skip


def other_values(node: Node, facts: Facts, release: Release) -> Iterator[Finding]:
    """Findings about a layer that a release may compute differently, as infos."""
    for row in _ROWS:
        if release < row.until and node.type in row.types.split() and row.condition(node, facts):
            message = f"the CPU plugin of OpenVINO {release} {row.text} ({node.type})"
            yield node.finding(codes.OTHER_VALUES_IN_RELEASE, message)
