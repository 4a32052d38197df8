"""Storing weights in fewer bits, and computing them back: as OpenVINO and NNCF write them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.portability.failures import refused_convolution
from irexec.authoring.editing import Editing
from irexec.authoring.weights import Weight, weights
from irexec.dtypes.elements import F16, F32, I4, U8, Element
from irexec.errors import InputError
from irexec.io.annotations import mark_layer
from irexec.ir.constants import Constant, constant_value
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import needed

DEFAULT_GROUP = 128
_LARGEST_F16 = float(np.finfo(np.float16).max)
_EPSILON = np.finfo(np.float32).eps


def compress(editing: Editing, mode: str, group: int, keep: Collection[Node] = ()) -> None:
    """Store weights in fewer bits, but those of the layers of ``keep``; see Editor.compress."""
    if mode not in _MODES:
        raise InputError(f"{mode!r} is not one of {', '.join(_MODES)}")
    if group < 1:
        raise InputError(f"a group of {group} weights is not possible")
    if not _MODES[mode](editing, group, keep):
        raise InputError(f"the model has no weights that {mode} compresses")


def refused(graph: Graph) -> list[Node]:
    """Convolutions that OpenVINO does not compile with compressed weights, each once."""
    found = (refused_convolution(node) for node in graph.nodes)
    return list(dict.fromkeys(node for node in found if node is not None))


def _to_f16(editing: Editing, group: int, keep: Collection[Node]) -> bool:
    kept = {value.node for node in keep for value in node.inputs if value is not None}
    found = [node for node in _f32_constants(editing) if node not in kept and _fits_f16(node.constant)]
    for node in found:
        constant, original = _constant(node), node.outputs[0]
        values = np.clip(constant_value(constant), -_LARGEST_F16, _LARGEST_F16).astype(np.float16)
        name = node.name
        stored = editing.add.raw_constant(packed(values, F16), f"{name}_compressed")
        made = editing.add.emit("Convert", stored, destination_type=F32, name=f"{name}/decompressed")
        mark_layer(made.node, "decompression")
        _replace(editing, original, made, node)
    return bool(found)


def _fits_f16(constant: Constant | None) -> bool:
    """Whether OpenVINO stores a constant as f16: a single element with a relative error of at most 1e-4; others unless
    three quarters of the elements are out of range or have one above 1e-3."""
    if constant is None or not constant.is_readable or constant.count == 0:
        return False
    values = constant_value(constant).ravel().astype(np.float64)
    with np.errstate(all="ignore"):
        stored = values.astype(np.float16).astype(np.float64)
        relative = np.where(values == 0, 0, np.abs(stored - values) / np.abs(values))
    wrong = (np.abs(values) > _LARGEST_F16) | (relative > (1e-4 if values.size == 1 else 1e-3))
    return bool(np.count_nonzero(wrong) < 0.75 * values.size)


def _f32_constants(editing: Editing) -> list[Node]:
    """Constants of f32 that are not part of the computation of shapes."""
    shape_inputs = _sources_of_shapes(editing)
    return [
        node
        for node in editing.model.nodes
        if node.constant is not None and node.constant.element is F32 and node not in shape_inputs
    ]


def _sources_of_shapes(editing: Editing) -> set[Node]:
    """Layers from which integers are computed that are read as sizes, such as scales of Interpolate."""
    found: set[Node] = set()
    waiting = [
        value.node
        for node in editing.model.nodes
        for index, value in enumerate(node.inputs)
        if value is not None and index in _SIZE_INPUTS.get(node.type, ())
    ]
    while waiting:
        node = waiting.pop()
        if node not in found and node.type != "ShapeOf":
            found.add(node)
            waiting += [value.node for value in node.inputs if value is not None]
    return found


_SIZE_INPUTS = {
    "Broadcast": (1, 2), "Gather": (2,), "Interpolate": (1, 2, 3), "OneHot": (1,),
    "Pad": (1, 2), "PriorBox": (0, 1), "PriorBoxClustered": (0, 1), "RandomUniform": (0,), "Range": (0, 1, 2),
    "Reshape": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "StridedSlice": (1, 2, 3), "Tile": (1,),
    "TopK": (1,), "Unsqueeze": (1,), "VariadicSplit": (1, 2),
}  # fmt: skip
"""Inputs of operations that are sizes, axes or counts."""


@dataclass(frozen=True)
class _Quantized:
    """Weights as integers.

    Attributes:
        element: their type.
        values: the integers, whose summed axis is divided into groups if there are any.
        scale: the f32 scale of each group or channel.
        zero_point: the integer that stands for 0; None if it is 0.
    """

    element: Element
    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None = None


def _to_int8(editing: Editing, group: int, keep: Collection[Node]) -> bool:
    return _quantize(editing, keep, lambda weight, values: asymmetric(values, weight.axes))


def _to_int4(editing: Editing, group: int, keep: Collection[Node]) -> bool:
    """Products in groups of 4 bits, but the last of them and everything else in 8 bits: as NNCF does by default."""
    products = [weight for weight in weights(editing.model) if weight.is_product]
    last = products[-1].node if products else None
    chosen = [one for one in products if one.node is not last and one.node not in keep]
    for one in chosen:
        size = _constant(one.constant).shape[one.axes[0]]
        if size % group:
            raise InputError(
                f"layer {one.node.name!r} has {size} inputs, which groups of {group} do not divide "
                f"(weights {one.constant.name!r})"
            )
    small = {one.constant for one in chosen}

    def quantized(weight: Weight, values: np.ndarray) -> _Quantized:
        if weight.constant in small:
            return symmetric(values, weight.axes[0], group)
        return asymmetric(values, weight.axes)

    return _quantize(editing, keep, quantized)


def asymmetric(values: np.ndarray, axes: tuple[int, ...]) -> _Quantized:
    """u8 with a scale and a zero point for each channel: NNCF's int8_asym."""
    lowest = np.minimum(values.min(axis=axes, keepdims=True), np.float32(0))
    highest = np.maximum(values.max(axis=axes, keepdims=True), np.float32(0))
    scale = ((highest - lowest) / np.float32(255)).astype(np.float32)
    scale = np.where(np.abs(scale) < _EPSILON, _EPSILON, scale).astype(np.float32)
    zero_point = np.clip(-np.round(lowest / scale), 0, 255).astype(np.uint8)
    integers = np.clip(np.round(values / scale + zero_point.astype(np.float32)), 0, 255).astype(np.uint8)
    return _Quantized(U8, integers, scale, zero_point)


def symmetric(values: np.ndarray, axis: int, group: int) -> _Quantized:
    """i4 with a signed scale for each group along an axis: NNCF's int4_sym."""
    grouped = values.reshape(*values.shape[:axis], values.shape[axis] // group, group, *values.shape[axis + 1 :])
    lowest = np.abs(grouped.min(axis=axis + 1, keepdims=True))
    highest = grouped.max(axis=axis + 1, keepdims=True)
    scale = np.where(lowest >= highest, lowest, -highest) / np.float32(8)
    scale = np.where(np.abs(scale) < _EPSILON, _EPSILON, scale).astype(np.float32)
    return _Quantized(I4, np.clip(np.round(grouped / scale), -8, 7).astype(np.int8), scale)


def _quantize(editing: Editing, keep: Collection[Node], quantized: Callable[[Weight, np.ndarray], _Quantized]) -> bool:
    found = [weight for weight in weights(editing.model) if weight.node not in keep]
    for weight in found:
        constant = _constant(weight.constant)
        values = constant_value(constant).astype(np.float32)
        if not np.isfinite(values).all():
            raise InputError(f"the weights {weight.constant.name!r} have values that are not finite")
        made = _decompression(editing, weight, quantized(weight, values), constant.shape)
        _replace(editing, weight.value, made, weight.constant)
    return bool(found)


def _decompression(editing: Editing, weight: Weight, quantized: _Quantized, shape: tuple[int, ...]) -> Value:
    """Layers that compute the weights: Constant, Convert, Subtract, Multiply, Reshape, Convert."""
    add, name = editing.add, weight.constant.name
    stored = add.raw_constant(packed(quantized.values, quantized.element), f"{name}/compressed")
    value = add.emit("Convert", stored, destination_type=F16, name=f"{name}/convert")
    if quantized.zero_point is not None:
        zero = add.raw_constant(packed(quantized.zero_point, U8), f"{name}/zero_point")
        zero = add.emit("Convert", zero, destination_type=F16, name=f"{name}/zero_point/convert")
        value = add.emit("Subtract", value, zero, name=f"{name}/zero_point/subtract")
    scale = add.raw_constant(packed(quantized.scale.astype(np.float16), F16), f"{name}/scale")
    value = add.emit("Multiply", value, scale, name=f"{name}/fq_weights")
    if quantized.values.shape != shape:
        value = add.emit("Reshape", value, np.array(shape, np.int64), special_zero=False, name=f"{name}/reshape")
    element = editing.facts[weight.value].element
    return value if element is F16 else add.emit("Convert", value, destination_type=element, name=f"{name}/f32")


def _replace(editing: Editing, old: Value, new: Value, constant: Node) -> None:
    """Readers of weights read those that are computed, and the constant goes if nothing else reads it."""
    before = needed(editing.model)
    editing.replace_uses(old, new)
    editing.move_names(old, new)
    if constant in editing.drop_unneeded(before):
        new.node.name = constant.name


def _constant(node: Node) -> Constant:
    assert node.constant is not None
    return node.constant


_MODES: dict[str, Callable[[Editing, int, Collection[Node]], bool]] = {
    "f16": _to_f16,
    "int8": _to_int8,
    "int4": _to_int4,
}
"""The modes, each with the function that compresses; False if there is nothing to compress."""
