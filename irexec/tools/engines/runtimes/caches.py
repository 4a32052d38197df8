"""Caches of attention in 8 or 4 bits or in f16, as OpenVINO's CPU plugin holds them.

The rows of one token and one head have a scale and a zero point for each group of elements:
``scale = (max - min) / 255``, ``zero = -min / scale``, ``byte = round(x / scale + zero)``; 15 in 4 bits. By channel
a group is tokens of one element, and a group that is not full is computed again from its levels and the tokens that
follow. Attention reads what the cache holds, the current tokens too; only while the cache is empty it reads the keys
and values themselves. Measured with OpenVINO 2026.4: results of six steps lie within 9e-7, but for levels between two.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.model import Model
from irexec.ir.graph import Node, Value
from irexec.ir.order import values_of_copy
from irexec.schema.shape_rules import MOVES

CACHE_PRECISION = "KV_CACHE_PRECISION"
"""The property of OpenVINO's CPU plugin."""
_BITS = {"u8": 8, "uint8_t": 8, "u4": 4, "uint4_t": 4, "f16": 16, "float16": 16}
_NO_SCALE = 1e-4
"""The scale of a group whose values are all equal."""


@dataclass(frozen=True)
class CacheType:
    """How a cache holds keys or values.

    Attributes:
        bits: of a level, 4 or 8; 16 for f16.
        group: number of elements with one scale, 0 for those of a row.
        by_channel: whether a group is tokens of an element and not elements of a token.
    """

    bits: int
    group: int = 0
    by_channel: bool = False


CacheTypes = tuple[CacheType | None, CacheType | None]
"""Types of keys and of values; None for values as they are."""


def cache_types(properties: Mapping[str, str]) -> CacheTypes | None:
    """How OpenVINO is asked to hold caches; None without a request. It holds f16 only for keys and values alike."""
    both = properties.get(CACHE_PRECISION, "")
    bits = [_BITS.get(properties.get(f"{side}_CACHE_PRECISION", both).lower(), 0) for side in ("KEY", "VALUE")]
    groups = [properties.get(f"{side}_CACHE_GROUP_SIZE", "") for side in ("KEY", "VALUE")]
    by_channel = properties.get("KEY_CACHE_QUANT_MODE", "").upper() == "BY_CHANNEL"
    key, value = (
        CacheType(size, int(group) if group.isdecimal() else 0, by_channel and i == 0)
        if size in (4, 8) or bits == [16, 16] else None
        for i, (size, group) in enumerate(zip(bits, groups, strict=True))
    )  # fmt: skip
    return (key, value) if key or value else None


def has_caches(model: Model) -> bool:
    """Whether attention reads a variable to which the model appends."""
    return any(_cached(model, node) for node in model.nodes)


def with_caches(model: Model, types: CacheTypes) -> tuple[Model, dict[Value, Value]]:
    """A copy of a model whose caches of attention hold values of these types, and its values by those of the model."""
    made = copy.copy(model)
    own, graph = values_of_copy(model, made), _Graph(made.nodes)
    for node, twin in list(zip(model.nodes, made.nodes, strict=False)):
        port = _cached(model, node)
        held = types[port - 1] if port else None
        if held:
            _hold(graph, twin, held)
    return made, own


def _cached(model: Model, node: Node) -> int:
    """1 for an Assign to the keys of attention, 2 for one to its values: of a Concat of its variable and new rows."""
    source = node.inputs[0] if node.type == "Assign" and node.inputs else None
    if source is None or source.node.type != "Concat" or len(source.node.inputs) != 2:
        return 0
    return _attended(model, source) if _reads_variable(source.node.inputs[0]) else 0


def _reads_variable(value: Value | None) -> bool:
    while value is not None and value.node.type == "Gather":
        value = value.node.inputs[0]
    return value is not None and value.node.type == "ReadValue"


def _attended(model: Model, value: Value) -> int:
    """The input of ScaledDotProductAttention, keys or values, whose elements are those of a value; 0 for none."""
    readers = [(node, i) for node in model.nodes for i, read in enumerate(node.inputs) if read is value]
    ports = [i for node, i in readers if node.type == "ScaledDotProductAttention" and i in (1, 2)]
    moved = (output for node, i in readers if node.type in MOVES and i == 0 for output in node.outputs)
    return max([*ports, *(_attended(model, output) for output in moved)], default=0)


class _Graph(Adding):
    """Adds layers by type and attributes."""

    def of(self, type: str, *inputs: Value | int | list[int] | float, version: str = "opset1", **given: Any) -> Value:
        values = [one if isinstance(one, Value) else self._number(one) for one in inputs]
        layer = self.layer(type, {name: str(value) for name, value in given.items()}, values, None)
        layer.node.version = version
        return layer

    def _number(self, one: int | list[int] | float) -> Value:
        return self.constant(np.array(one, np.float32 if isinstance(one, float) else np.int64))

    def part(self, value: Value, start: Value | list[int], stop: Value | list[int], axis: int) -> Value:
        return self.of("Slice", value, start, stop, [1], [axis], version="opset8")

    def size(self, value: Value, axis: int) -> Value:
        """A vector of one size."""
        return self.of("Gather", self.of("ShapeOf", value), [axis], 0, version="opset8")


_END = np.iinfo(np.int64).max


def _hold(graph: _Graph, assign: Node, held: CacheType) -> None:
    """Let a variable hold values of a type, and attention read them unless the variable was empty."""
    joined = assign.ports[0].source
    assert joined is not None
    past, rest = (port.source for port in joined.node.ports)
    assert past is not None and rest is not None
    axis = int(joined.node.attributes["axis"])
    tokens = graph.size(past, axis)
    is_empty = graph.of("Equal", tokens, 0)
    if held.by_channel:
        group = graph.of("Add", held.group, [0]) if held.group else graph.size(rest, -1)
        full = graph.of("Subtract", tokens, graph.of("FloorMod", tokens, group))
        rest = graph.of("Concat", graph.part(past, full, [_END], axis), rest, axis=axis)
        past = graph.part(past, [0], full, axis)
        values = _by_channel(graph, rest, group, axis, held.bits)
    elif held.bits == 16:
        values = graph.of("Convert", graph.of("Convert", rest, destination_type="f16"), destination_type="f32")
    elif held.group:
        shape = graph.of("ShapeOf", rest)
        rows = graph.of("Concat", graph.part(shape, [0], [-1], 0), [-1, held.group], axis=0)
        levels = _of_levels(graph, graph.of("Reshape", rest, rows, special_zero="false"), -1, held.bits)
        values = graph.of("Reshape", levels, shape, special_zero="false")
    else:
        values = _of_levels(graph, rest, -1, held.bits)
    for port, source in zip(joined.node.ports, (past, graph.of("Select", is_empty, rest, values)), strict=True):
        port.source = source
    assign.ports[0].source = graph.of("Concat", past, values, axis=axis)


def _by_channel(graph: _Graph, rows: Value, group: Value, axis: int, bits: int) -> Value:
    """Values of levels of each element over each ``group`` of tokens along ``axis``; the last one may be smaller."""
    tokens = graph.size(rows, axis)
    missing = graph.of("FloorMod", graph.of("Subtract", 0, tokens), group)
    stop = graph.of("Squeeze", graph.of("Add", tokens, missing), 0)
    positions = graph.of("Range", 0, stop, 1, version="opset4", output_type="i64")
    # The last token again until the group is full, which changes no minimum and no maximum.
    positions = graph.of("Minimum", positions, graph.of("Subtract", tokens, 1))
    padded = graph.of("Gather", rows, positions, axis, version="opset8")
    shape = graph.of("ShapeOf", padded)
    before, behind = graph.part(shape, [0], [axis], 0), graph.part(shape, [axis + 1], [_END], 0)
    blocks = graph.of("Concat", before, [-1], group, behind, axis=0)
    blocks = graph.of("Reshape", padded, blocks, special_zero="false")
    levels = _of_levels(graph, blocks, axis if axis < 0 else axis + 1, bits)
    return graph.part(graph.of("Reshape", levels, shape, special_zero="false"), [0], tokens, axis)


def _of_levels(graph: _Graph, rows: Value, axis: int, bits: int) -> Value:
    """The values of levels of 4 or 8 bits between the minimum and the maximum along an axis."""
    low, high = (graph.of(type, rows, [axis], keep_dims="true") for type in ("ReduceMin", "ReduceMax"))
    scale = graph.of("Divide", graph.of("Subtract", high, low), float(2**bits - 1))
    scale = graph.of("Select", graph.of("Equal", scale, 0.0), _NO_SCALE, scale)
    zero = graph.of("Divide", graph.of("Multiply", low, -1.0), scale)
    level = graph.of("Add", graph.of("Divide", rows, scale), zero)
    level = graph.of("Round", level, version="opset5", mode="half_to_even")
    level = graph.of("Clamp", level, min=0, max=2**bits - 1)
    return graph.of("Multiply", graph.of("Subtract", level, zero), scale)
