"""Weights: which constants they are, and their storage in fewer bits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.builder import packed
from irexec.analysis.portability.failures import refused_convolution
from irexec.authoring.editing import Editing
from irexec.dtypes.elements import BF16, F4E2M1, F8E4M3, F8E8M0, F16, F32, F64, I4, I8, NF4, U4, U8, Element
from irexec.errors import InputError
from irexec.io.payload import mark_layer
from irexec.ir.constants import Constant, constant_value
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import needed
from irexec.messages import amount

_FLOATS = (F16, BF16, F32, F64)
_CHANNELS = {
    "Convolution": (0,),
    "ConvolutionBackpropData": (1,),
    "GroupConvolution": (0, 1),
    "GroupConvolutionBackpropData": (0, 2),
}
"""Axes of the weights of convolutions along which the outputs lie."""


@dataclass(frozen=True)
class Weight:
    """The weights of a layer.

    Attributes:
        node: the layer.
        value: its input: the Constant's output, or that of a Convert of the Constant.
        constant: the Constant, of floats.
        axes: the axes over which the layer sums.
    """

    node: Node
    value: Value
    constant: Node
    axes: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """Whether it is a matrix of a MatMul."""
        return self.node.type == "MatMul"


def weights(graph: Graph) -> Iterator[Weight]:
    """The weights of products, convolutions and embeddings in the order of the layers, shared ones once."""
    seen: set[Node] = set()
    for node in graph.nodes:
        found = _of(node)
        if found is not None and found.constant not in seen:
            seen.add(found.constant)
            yield found


def _of(node: Node) -> Weight | None:
    if node.type == "MatMul":
        transposed = [typed_attribute(node, name) is True for name in ("transpose_a", "transpose_b")]
        sides = [
            _weight(node, 0, lambda rank: [rank - (2 if transposed[0] else 1)]),
            _weight(node, 1, lambda rank: [rank - (1 if transposed[1] else 2)]),
        ]
        found = [side for side in sides if side is not None]
        # A product of two constants has no weights.
        return found[0] if len(found) == 1 else None
    if node.type in _CHANNELS:
        return _weight(node, 1, lambda rank: [axis for axis in range(rank) if axis not in _CHANNELS[node.type]])
    if node.type == "Gather":
        return _weight(node, 0, lambda rank: list(range(1, rank)))
    return None


def _weight(node: Node, index: int, axes: Callable[[int], Sequence[int]]) -> Weight | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    constant = value.node
    if constant.type == "Convert" and constant.inputs and constant.inputs[0] is not None:
        constant = constant.inputs[0].node
    held = constant.constant
    if held is None or held.element not in _FLOATS or len(held.shape) < 2 or held.count == 0 or not held.is_readable:
        return None
    return Weight(node, value, constant, tuple(axes(len(held.shape))))


DEFAULT_GROUP = 128
_LARGEST_F16 = float(np.finfo(np.float16).max)
_EPSILON = np.finfo(np.float32).eps


def compress(editing: Editing, mode: str, group: int | None, keep: Collection[Node] = ()) -> list[str]:
    """Store weights in fewer bits, but those of the layers of ``keep``; see Editor.compress. Returns notes."""
    if mode not in MODES:
        raise InputError(f"{mode!r} is not one of {', '.join(MODES)}")
    if group is not None and group < 1:
        raise InputError(f"a group of {group} weights is not possible")
    before = _bytes(editing)
    if mode == "f16":
        notes: list[str] = []
        stored = {"f16": _to_f16(editing, keep)}
    else:
        notes, stored = _quantize(editing, FORMATS[mode], group, keep)
    if not any(stored.values()):
        raise InputError(f"the model has no weights that {mode} compresses")
    counts = ", ".join(f"{name} {count}" for name, count in stored.items())
    sizes = f"{amount(before)} -> {amount(_bytes(editing))}"
    kept = sum(mode != "f16" or _constant(weight.constant).element is not F16 for weight in weights(editing.model))
    return [f"constants {sizes}; weights: {counts}, kept {kept}", *notes]


def _bytes(editing: Editing) -> int:
    return sum(node.constant.size for node in editing.model.nodes if node.constant is not None)


def refused(graph: Graph) -> list[Node]:
    """Convolutions that OpenVINO does not compile with compressed weights, each once."""
    found = (refused_convolution(node) for node in graph.nodes)
    return list(dict.fromkeys(node for node in found if node is not None))


def _to_f16(editing: Editing, keep: Collection[Node]) -> int:
    """Store constants as f16; their number."""
    kept = {value.node for node in keep for value in node.inputs if value is not None} | _sources_of_shapes(editing)
    found = [node for node in editing.model.nodes if node not in kept and _fits_f16(node.constant)]
    for node in found:
        values = np.clip(constant_value(_constant(node)), -_LARGEST_F16, _LARGEST_F16).astype(np.float16)
        stored = editing.add.raw_constant(packed(values, F16), f"{node.name}_compressed")
        made = editing.add.emit("Convert", stored, destination_type=F32, name=f"{node.name}/decompressed")
        mark_layer(made.node, "decompression")
        _replace(editing, node.outputs[0], made, node)
    return len(found)


def _fits_f16(constant: Constant | None) -> bool:
    """Whether OpenVINO stores a constant of f32 as f16: a single element with a relative error of at most 1e-4; others
    unless three quarters of the elements are out of range or have one above 1e-3."""
    if constant is None or constant.element is not F32 or not constant.is_readable or constant.count == 0:
        return False
    values = constant_value(constant).ravel().astype(np.float64)
    with np.errstate(all="ignore"):
        stored = values.astype(np.float16).astype(np.float64)
        relative = np.where(values == 0, 0, np.abs(stored - values) / np.abs(values))
    wrong = (np.abs(values) > _LARGEST_F16) | (relative > (1e-4 if values.size == 1 else 1e-3))
    return bool(np.count_nonzero(wrong) < 0.75 * values.size)


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
class Quantized:
    """Weights in few bits.

    Attributes:
        values: numbers of the element type of the format, whose summed axis is divided into groups if there are any.
        scale: the f32 scale of each group or channel.
        zero_point: the integer that stands for 0; None if it is 0.
    """

    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None = None


@dataclass(frozen=True)
class Format:
    """How weights are stored.

    Attributes:
        name: for messages.
        element: the element type that is stored.
        quantize: computes numbers of the type from weights and the axes over which scales are shared.
        group: number of weights of a product that share a scale by default; None: those of a channel, of every layer.
        scale: the element type of the scales.
        codebook: the numbers for which indices of the type stand; empty if the numbers are stored themselves.
    """

    name: str
    element: Element
    quantize: Callable[[np.ndarray, tuple[int, ...], Format], Quantized]
    group: int | None = DEFAULT_GROUP
    scale: Element = F16
    codebook: tuple[float, ...] = ()


def asymmetric(values: np.ndarray, axes: tuple[int, ...], format: Format) -> Quantized:
    """Unsigned integers with a scale and a zero point for each channel or group."""
    levels = np.float32(2**format.element.bits - 1)
    lowest = np.minimum(values.min(axis=axes, keepdims=True), np.float32(0))
    highest = np.maximum(values.max(axis=axes, keepdims=True), np.float32(0))
    scale = _not_zero((highest - lowest) / levels)
    zero_point = np.clip(-np.round(lowest / scale), 0, levels).astype(np.uint8)
    integers = np.clip(np.round(values / scale + zero_point.astype(np.float32)), 0, levels).astype(np.uint8)
    return Quantized(integers, scale, zero_point)


def symmetric(values: np.ndarray, axes: tuple[int, ...], format: Format) -> Quantized:
    """Signed integers with a signed scale, so that the largest weight is the least integer."""
    half = 2 ** (format.element.bits - 1)
    lowest = np.abs(values.min(axis=axes, keepdims=True))
    highest = values.max(axis=axes, keepdims=True)
    scale = _not_zero(np.where(lowest >= highest, lowest, -highest) / np.float32(half))
    return Quantized(np.clip(np.round(values / scale), -half, half - 1).astype(np.int8), scale)


def floating(values: np.ndarray, axes: tuple[int, ...], format: Format) -> Quantized:
    """Numbers of a small type of floats, or indices of a codebook, the largest weight as the largest number.

    Scales of f8e8m0 are the next power of two that is not smaller.
    """
    largest = np.float32(max(map(abs, format.codebook)) if format.codebook else _LARGEST[format.element])
    scale = _not_zero(np.abs(values).max(axis=axes, keepdims=True) / largest)
    if format.scale is F8E8M0:
        scale = np.exp2(np.clip(np.ceil(np.log2(scale)), -127, 127))
    numbers = (values / scale).astype(np.float32)
    if format.codebook:
        book = np.array(format.codebook, np.float32)
        numbers = np.searchsorted((book[1:] + book[:-1]) / 2, numbers).astype(np.uint8)
    return Quantized(numbers, scale)


def _not_zero(scale: np.ndarray) -> np.ndarray:
    return np.where(np.abs(scale) < _EPSILON, _EPSILON, scale).astype(np.float32)


_LARGEST = {NF4: 1.0, F4E2M1: 6.0, F8E4M3: 448.0}
_CB4 = (
    -3.5, -2.5, -1.875, -1.375, -1.0, -0.625, -0.3125, 0.0, 0.28125, 0.5625, 0.875, 1.125, 1.5, 2.0, 2.5, 3.5,
)  # fmt: skip
_INT8 = Format("int8", U8, asymmetric, None)
FORMATS = {
    "int8": _INT8,
    "int8_sym": Format("int8_sym", I8, symmetric, None),
    "int4": Format("int4", I4, symmetric),
    "int4_asym": Format("int4_asym", U4, asymmetric),
    "nf4": Format("nf4", NF4, floating),
    "cb4": Format("cb4", U4, floating, codebook=_CB4),
    "fp4": Format("fp4", F4E2M1, floating),
    "mxfp4": Format("mxfp4", F4E2M1, floating, 32, F8E8M0),
    "fp8_e4m3": Format("fp8_e4m3", F8E4M3, floating),
    "mxfp8_e4m3": Format("mxfp8_e4m3", F8E4M3, floating, 32, F8E8M0),
}
"""NNCF's modes that need no data, by their names there, but for int8 (int8_asym) and int4 (int4_sym)."""
MODES = ("f16", *FORMATS)


def _quantize(
    editing: Editing, format: Format, group: int | None, keep: Collection[Node]
) -> tuple[list[str], dict[str, int]]:
    """Store weights in a format. One with groups is for products, all but the last of them, as in NNCF; everything
    else, and a product that groups do not divide, has 8 bits.

    Returns:
        Sentences about products that groups do not divide, and the number of weights in each format.
    """
    found = [weight for weight in weights(editing.model) if weight.node not in keep]
    grouped = {weight.constant for weight in found if weight.is_product} if format.group else set()
    products = [weight for weight in weights(editing.model) if weight.is_product]
    if products:
        grouped.discard(products[-1].constant)
    group = group or format.group
    notes, stored = [], dict.fromkeys((format.name,) if format.group is None else (format.name, _INT8.name), 0)
    for weight in found:
        constant = _constant(weight.constant)
        values = constant_value(constant).astype(np.float32)
        if not np.isfinite(values).all():
            raise InputError(f"the weights {weight.constant.name!r} have values that are not finite")
        chosen, axes = format if format.group is None else _INT8, weight.axes
        if weight.constant in grouped:
            assert group is not None
            axis, size = axes[0], values.shape[axes[0]]
            if size % group:
                notes.append(f"{weight.node.name!r} in int8: groups of {group} do not divide its {size} inputs")
            else:
                values = values.reshape(*values.shape[:axis], size // group, group, *values.shape[axis + 1 :])
                chosen, axes = format, (axis + 1,)
        stored[chosen.name] += 1
        made = _decompression(editing, weight, chosen, chosen.quantize(values, axes, chosen), constant.shape)
        _replace(editing, weight.value, made, weight.constant)
    return notes, stored


def _decompression(
    editing: Editing, weight: Weight, format: Format, quantized: Quantized, shape: tuple[int, ...]
) -> Value:
    """Layers that compute the weights: Constant, Convert, Subtract, Multiply, Reshape, Convert; or Gather."""
    add, name = editing.add, weight.constant.name
    stored = add.raw_constant(packed(quantized.values, format.element), f"{name}/compressed")
    if format.codebook:
        book = add.raw_constant(packed(np.array(format.codebook, np.float32), F8E4M3), f"{name}/codebook")
        book = add.emit("Convert", book, destination_type=F16, name=f"{name}/codebook/convert")
        indices = add.emit("Convert", stored, destination_type=U8, name=f"{name}/indices")
        value = add.emit("Gather", book, indices, np.int64(0), name=f"{name}/convert")
    else:
        value = add.emit("Convert", stored, destination_type=F16, name=f"{name}/convert")
    if quantized.zero_point is not None:
        zero = add.raw_constant(packed(quantized.zero_point, format.element), f"{name}/zero_point")
        zero = add.emit("Convert", zero, destination_type=F16, name=f"{name}/zero_point/convert")
        value = add.emit("Subtract", value, zero, name=f"{name}/zero_point/subtract")
    scale = add.raw_constant(packed(quantized.scale.astype(format.scale.carrier), format.scale), f"{name}/scale")
    if format.scale is not F16:
        scale = add.emit("Convert", scale, destination_type=F16, name=f"{name}/scale/convert")
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
