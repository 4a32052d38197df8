"""RotaryEmbedding, recognised from the layers that rotate pairs of elements."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.heads import are_equal, flat, is_joined, moved, shape_of_value
from converters.ir_to_onnx.recognition import constant_of, producer_of, recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F16, F32, I64
from irexec.ir.graph import Node, Value


@dataclass(frozen=True)
class _Rotation:
    """The inputs of the operator, and its attributes.

    Attributes:
        data: (batch, heads, length, size).
        cos, sin: of the angles, (batch, length, width / 2), or (positions, width / 2) with ``positions``.
        positions: of the elements, (batch, length); None if there are none.
        interleaved: whether a pair is two neighbours, not an element of each half.
        width: elements of a head that are rotated; None for all.
    """

    data: Value
    cos: Value
    sin: Value
    positions: Value | None
    interleaved: bool
    width: int | None = None


@recognises("Concat", "Reshape")
def rotary_embedding(ctx: ExportContext) -> Tensor | None:
    """RotaryEmbedding of data with an axis of heads, or of data whose heads are split and joined."""
    if not ctx.has("RotaryEmbedding"):
        return None
    found = _rotation(ctx.node)
    if found is not None:
        return _emitted(ctx, found, ctx.writer.tensor(found.data)) if _fits(ctx, found) else None
    source = moved(ctx.node.inputs[0]) if ctx.node.type == "Reshape" else None
    found = None if source is None else _rotation(source.node)
    if found is None or not _fits(ctx, found):
        return None
    data, heads = flat(ctx, found.data), shape_of_value(ctx, found.data)
    if data is None or not is_joined(ctx.facts[0].shape or (), heads, heads) or not isinstance(heads[1], int):
        return None
    return _emitted(ctx, found, data, heads[1])


def _emitted(ctx: ExportContext, found: _Rotation, data: Tensor, heads: int | None = None) -> Tensor:
    caches = [None if x is None else ctx.writer.tensor(x) for x in (found.cos, found.sin, found.positions)]
    return ctx.emit(
        "RotaryEmbedding", data, *caches, interleaved=1 if found.interleaved else None, num_heads=heads,
        rotary_embedding_dim=found.width,
    )  # fmt: skip


def _fits(ctx: ExportContext, found: _Rotation) -> bool:
    """Whether the types and shapes are those of the operator: only heads are broadcast."""
    kind, shape = ctx.element_of(found.data), shape_of_value(ctx, found.data)
    if kind not in (F32, F16) or len(shape) != 4 or any(ctx.element_of(x) is not kind for x in (found.cos, found.sin)):
        return False
    angles = [shape_of_value(ctx, x) for x in (found.cos, found.sin)]
    width = shape[3] if found.width is None else found.width
    if not isinstance(width, int) or angles[0] != angles[1] or not angles[0] or angles[0][-1] != width // 2:
        return False
    rows = angles[0][:-1]
    if found.positions is not None:
        rows = shape_of_value(ctx, found.positions) if ctx.element_of(found.positions) is I64 and len(rows) == 1 else ()
    return len(rows) == 2 and are_equal(rows[0], shape[0]) and are_equal(rows[1], shape[2])


def _rotation(node: Node) -> _Rotation | None:
    """The rotation whose result is the output of a layer; None if it is none."""
    if node.type == "Reshape":
        together = producer_of(node.inputs[0], "Concat")
        is_flat = _constant(node.inputs[1]) == [0, 0, 0, -1]
        return _of_parts(together, "4", True) if is_flat else None
    if node.type != "Concat" or node.attributes.get("axis") != "3" or len(node.inputs) != 2:
        return None
    rotated, rest = node.inputs
    split = producer_of(rest, "VariadicSplit")
    if split is None or rotated is None:
        return _of_parts(node, "3", False)
    found, sizes = _rotation(rotated.node), _constant(split.inputs[2])
    is_first = found is not None and found.data is split.outputs[0] and len(split.outputs) == 2
    if found is None or not is_first or rest is not split.outputs[1] or found.width is not None:
        return None
    data = split.inputs[0]
    is_last = _constant(split.inputs[1]) == [3] and sizes is not None and sizes[1] == -1
    return None if data is None or not is_last or sizes is None else replace(found, data=data, width=sizes[0])


def _of_parts(concat: Node | None, axis: str, interleaved: bool) -> _Rotation | None:
    """The rotation of Concat(first * cos - second * sin, first * sin + second * cos)."""
    if concat is None or concat.attributes.get("axis") != axis or len(concat.inputs) != 2:
        return None
    parts = [_without(x, "Unsqueeze", 4) for x in concat.inputs] if interleaved else list(concat.inputs)
    minus, plus = producer_of(parts[0], "Subtract"), producer_of(parts[1], "Add")
    if minus is None or plus is None:
        return None
    products = [producer_of(x, "Multiply") for x in (*minus.inputs, *plus.inputs)]
    factors = [tuple(product.inputs) for product in products if product is not None]
    first, cos = factors[0] if factors else (None, None)
    second, sin = factors[1] if len(factors) == 4 else (None, None)
    if factors != [(first, cos), (second, sin), (first, sin), (second, cos)] or None in (first, second, cos, sin):
        return None
    data, caches = _halved(first, second, interleaved), [_without(x, "Unsqueeze", 1) for x in (cos, sin)]
    if data is None or caches[0] is None or caches[1] is None:
        return None
    return _with_positions(_Rotation(data, caches[0], caches[1], None, interleaved))


def _halved(first: Value | None, second: Value | None, interleaved: bool) -> Value | None:
    """The data whose halves, or whose elements of pairs, are two values."""
    halves = [_without(x, "Squeeze", 4) for x in (first, second)] if interleaved else [first, second]
    split = producer_of(halves[0], "Split")
    if split is None or halves != split.outputs or _constant(split.inputs[1]) != [4 if interleaved else 3]:
        return None
    if not interleaved:
        return split.inputs[0]
    pairs = producer_of(split.inputs[0], "Reshape")
    return pairs.inputs[0] if pairs is not None and _constant(pairs.inputs[1]) == [0, 0, 0, -1, 2] else None


def _with_positions(found: _Rotation) -> _Rotation:
    """The rotation with the caches from which the angles of positions are gathered."""
    gathers = [producer_of(x, "Gather") for x in (found.cos, found.sin)]
    sources = [gather.inputs for gather in gathers if gather is not None and _constant(gather.inputs[2]) == [0]]
    if len(sources) != 2 or sources[0][1] is not sources[1][1]:
        return found
    cos, sin = sources[0][0], sources[1][0]
    return found if cos is None or sin is None else replace(found, cos=cos, sin=sin, positions=sources[0][1])


def _without(value: Value | None, type: str, axis: int) -> Value | None:
    """The source of an Unsqueeze or Squeeze of an axis."""
    node = producer_of(value, type)
    return node.inputs[0] if node is not None and _constant(node.inputs[1]) == [axis] else None


def _constant(value: Value | None) -> list[int] | None:
    part = constant_of(value)
    return None if part is None else [int(x) for x in np.ravel(part)]
