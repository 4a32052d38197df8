"""Quantise the activations of products with compressed weights in each run, where ``dynamic_quantization`` asks for it.

    MatMul(x, Constant (i4, u4, i8, u8) -> Convert -> [Subtract] -> Multiply -> [Reshape] -> [Convert] -> [Transpose])

becomes DynamicMatMul(x, integers, scales, zero points). It changes results, as OpenVINO's CPU plugin does by default
with groups of 32, and therefore runs before every other pass, and also where these do not run. It applies where
OpenVINO 2026.4 does so on processors with VNNI; the scales of weights are not rounded to f16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irexec.analysis.shape_inference import Inference
from irexec.backend.constants import ConstantSource
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.levels import DYNAMIC_MATMUL, THROUGH
from irexec.compile.lower import lower
from irexec.compile.passes.recognise_compressed_weights import WEIGHTS
from irexec.compile.pattern import Match, call, either, value
from irexec.compile.rewriting import Rewriting, created
from irexec.dtypes.elements import BF16, F16, F32, I4, I8, U4, U8, Element
from irexec.errors import InputError
from irexec.ir import graph as ir

MULTIPLE, LARGEST = 16, (1 << 31) // (255 * 128 * 2) // 16 * 16
"""Groups are multiples of the first number; sums of groups up to the second one fit 32 bits."""

_MIDDLES = {U8: 128}
"""Offset that makes the integers of a type signed ones of 8 bits."""

_TURNED = either(call("Transpose", WEIGHTS, value("order", constant=True)), WEIGHTS)


@dataclass(frozen=True)
class Weights:
    """Compressed weights as integers of ``columns`` rows, each of ``groups`` groups of ``group`` of them.

    Attributes:
        stored: the integers as the model has them.
        axes: axes of the stored integers, those of size 1 in front left out, that are columns, groups and positions.
        shape: the sizes of these axes.
        scale, zero: f32 (columns, groups); zero points of the integers as signed ones.
    """

    stored: ConstantSource
    axes: tuple[int, ...]
    shape: tuple[int, int, int]
    scale: np.ndarray
    zero: np.ndarray

    def integers(self) -> np.ndarray:
        """int8 (columns, depth)."""
        stored = self.stored.array()
        own = stored.reshape(stored.shape[len(stored.shape) - len(self.axes) :])
        signed = own.astype(np.int16) - _MIDDLES.get(self.stored.element, 0)
        return np.ascontiguousarray(signed.astype(np.int8).transpose(self.axes).reshape(self.shape[0], -1))


def is_group(size: int) -> bool:
    """True if rows can be quantised by groups of a size."""
    return not size % MULTIPLE and 0 < size <= LARGEST


def check_group(group: int | None) -> int:
    """The number of values of a group; 0 for None.

    Raises:
        InputError: it is not a multiple of 16 that sums in 32 bits allow.
    """
    if group is None:
        return 0
    if isinstance(group, bool) or not isinstance(group, int) or not is_group(group):
        raise InputError(
            f"dynamic_quantization is {group!r}, expected a multiple of {MULTIPLE} from {MULTIPLE} to {LARGEST}"
        )
    return group


def quantise_activations(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Rewrite each product to which it applies."""
    if not rewriting.dynamic_quantization:
        return
    for operation in graph.order():
        found = dynamic_weights(operation, rewriting.dynamic_quantization)
        if isinstance(found, Weights):
            producer = operation.inputs[0].producer
            if producer is not None and producer.type in THROUGH | {"FakeQuantize"} and _is_quantised(producer):
                found = "its data is quantised already"
        if isinstance(found, str):
            rewriting.refused(operation, found)
        elif found is not None:
            _rewrite(graph, rewriting, operation, found)


def quantised_products(model: ir.Graph, inference: Inference, group: int) -> dict[ir.Node, int]:
    """The products of a graph whose activations OpenVINO quantises by groups of this size, each with that size.

    Unlike irexec, it also quantises the values of a FakeQuantize that it computes as written, and data of f16 in f32.
    """
    blocked = inference.blocked(model)
    targets = [node.outputs[0] for node in model.nodes if node.type == "MatMul" and node not in blocked]
    order = lower(model, inference, {}, targets).order() if group else []
    return {one.node: group for one in order if isinstance(dynamic_weights(one, group, (F32, F16, BF16)), Weights)}


def dynamic_weights(product: Operation, group: int, elements: tuple[Element, ...] = (F32,)) -> Weights | str | None:
    """The weights of a product whose activations, of one of ``elements``, are quantised by groups; why they are not;
    None without compressed weights."""
    if product.type != "MatMul":
        return None
    match = next(_TURNED.match(product.inputs[1], Match()), None)
    if match is None:
        return None
    data, stored = product.inputs[0].fact, match["stored"].constant
    assert stored is not None, "it is matched as a constant"
    zero = match["zero point"].fact.element if "zero point" in match.values else None
    reason = _element_reason(stored.element, zero)
    if data.element not in elements:
        reason = f"its data is {data.element}"
    elif data.shape is None or len(data.shape) < 2:
        reason = "its data is a vector"
    return reason or _weights(product, match, stored, group)


def _element_reason(stored: Element, zero: Element | None) -> str:
    if stored not in (U4, U8, I4, I8):
        return f"its weights are {stored}"
    if zero is not None and stored in (I4, I8):
        return f"its weights are {stored} with zero points"
    if zero is not None and zero not in (U4, U8):
        return f"its zero points are {zero}"
    return ""


def _weights(product: Operation, match: Match, stored: ConstantSource, group: int) -> Weights | str:
    matrix = _without_ones(product.inputs[1].fact.static_shape, 2)
    own = _without_ones(stored.shape, 2)
    if len(matrix) != 2 or len(own) not in (2, 3):
        return "its weights are not one matrix"
    is_turned = "order" in match.values
    by_column = product.attributes["transpose_b"] != is_turned
    columns, depth = matrix if product.attributes["transpose_b"] else matrix[::-1]
    axes = ((0, 1) if by_column else (1, 0)) if len(own) == 2 else ((0, 1, 2) if by_column else (2, 0, 1))
    sizes = tuple(own[axis] for axis in axes)
    groups, each = (1, sizes[1]) if len(own) == 2 else sizes[1:]
    if sizes[0] != columns or groups * each != depth:
        return "its weights are reshaped otherwise than by groups"
    if columns < 2:
        return "its weights are one column"
    if depth < group:
        return f"its {depth} values of a row are fewer than a group of {group}"
    parts = [match[name] for name in ("scale", "zero point") if name in match.values]
    found = [_by_group(part, stored.shape, axes, (columns, groups)) for part in parts]
    if any(part is None for part in found):
        return "its weights have several scales or zero points in a group"
    if groups > 1 and each % group and any(part is not None and part[1] for part in found):
        return f"its groups of {each} weights are not a multiple of {group}"
    scale, zero = (part[0] if part is not None else None for part in (*found, None)[:2])
    assert scale is not None, "it is matched"
    middle = np.float32(_MIDDLES.get(stored.element, 0))
    zeros = np.zeros_like(scale) if zero is None else zero
    return Weights(stored, axes, (columns, groups, each), scale, zeros - middle)


def _by_group(
    part: CompileValue, whole: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, int]
) -> tuple[np.ndarray, bool] | None:
    """A parameter as f32 (columns, groups), and whether it varies with the groups; None if it varies inside of them."""
    assert part.constant is not None, "it is matched as a constant"
    array = np.asarray(part.constant.array(), np.float32)
    ranked = array.reshape((1,) * (len(whole) - array.ndim) + array.shape)
    own = ranked.reshape(ranked.shape[len(whole) - len(axes) :]).transpose(axes)
    if own.shape[-1] != 1:
        return None
    if own.ndim == 2:
        own = own[:, None]
    return np.ascontiguousarray(np.broadcast_to(own[..., 0], shape)), own.shape[1] > 1


def _without_ones(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The shape without sizes of 1 in front, of at least this rank."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def _is_quantised(producer: Operation) -> bool:
    """True if FakeQuantize made the data, perhaps moved since."""
    while producer.type in THROUGH and producer.inputs[0].producer is not None:
        producer = producer.inputs[0].producer
    return producer.type == "FakeQuantize"


def _rewrite(graph: CompileGraph, rewriting: Rewriting, product: Operation, weights: Weights) -> None:
    columns, groups, each = weights.shape
    shape = columns, groups * each

    def make() -> ConstantSource:
        return ConstantSource(I8, shape, weights.integers)

    integers = rewriting.constants.share(("activations", weights.axes, shape), (weights.stored,), make)
    inputs = [
        product.inputs[0],
        CompileValue(integers.fact, constant=integers),
        rewriting.literal(weights.scale, F32),
        rewriting.literal(weights.zero, F32),
    ]
    attributes = {
        "transpose_a": product.attributes["transpose_a"],
        "transpose_b": True,
        "group": rewriting.dynamic_quantization,
    }
    made = created(graph, DYNAMIC_MATMUL, inputs, attributes, [product])
    rewriting.replace(graph, product, made.output)
