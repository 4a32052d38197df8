"""The operations of OpenVINO's CPU plugin as published ones.

Source: openvinotoolkit/openvino: src/common/transformations/include/ov_ops, src/plugins/intel_cpu/src/transformations
and src/common/snippets. RMS and RoPE stay as they are: irexec computes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import BOOLEAN, F32, Element, element
from irexec.errors import UnsupportedError
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import topological

Operand = Value | None
Rule = Callable[[Builder, Node, Sequence[Operand]], "Value | tuple[Value, ...]"]
_RULES: dict[str, Rule] = {}
_RELAXED = re.compile(r"type_relaxed_(opset\d+)")
_PLUGIN = frozenset({"ie_internal_opset", "cpu_plugin_opset", "SnippetsOpset"})
_ARITHMETIC = frozenset({"Add", "Subtract", "Multiply", "Divide"})
_KEPT = frozenset({"RMS", "RoPE"})


def is_published(node: Node) -> bool:
    """True if irexec computes a layer as it is."""
    return (node.version not in _PLUGIN and not _RELAXED.fullmatch(node.version)) or node.type in _KEPT


def published(graph: Graph, name: str = "") -> Builder:
    """A transformed model in published operations. Layers keep their names, and tensors theirs.

    Raises:
        UnsupportedError: the plugin has operations that are not known here; it names them.
        NodeError: a layer is not as its operation demands.
    """
    known = {*_RULES, *_KEPT, "Result", "Subgraph"}
    unknown = sorted({node.type for node in graph.walk() if node.version in _PLUGIN and node.type not in known})
    if unknown:
        raise UnsupportedError(f"the transformed model has {', '.join(unknown)}, which irexec does not know")
    builder = Builder(name)
    _fill(builder, graph, {})
    return builder


def _fill(
    builder: Builder, graph: Graph, inputs: Mapping[Node, Value], *, results: bool = True
) -> dict[Value, Operand]:
    """Add the layers of a graph, with values in place of ``inputs``; returns the value for each of its values."""
    found: dict[Value, Operand] = {}
    for node in topological(graph)[0]:
        arriving = [None if value is None else found[value] for value in node.inputs]
        if node in inputs:
            found[node.outputs[0]] = inputs[node]
        elif node.type == "Parameter":
            fact = node.outputs[0].fact
            if fact is None or fact.element is None:
                raise UnsupportedError(f"the element type of input {node.name!r} is not known")
            found[node.outputs[0]] = builder.parameter(fact.element, fact.shape, node.name, node.outputs[0].names)
        elif node.type == "Constant":
            # One without a type stands for an input that is left out.
            is_typed = node.attributes.get("element_type") not in ("undefined", "dynamic", None)
            constant, names = node.constant if is_typed else None, node.outputs[0].names
            found[node.outputs[0]] = None if constant is None else builder.raw_constant(constant, node.name, names)
        elif node.type != "Result":
            made = _layer(builder, node, arriving)
            for value, new in zip(node.outputs, made, strict=False):
                found[value] = new
                new.names = list(dict.fromkeys([*value.names, *new.names]))
    # In the order of the outputs, which is that of the file.
    for node in graph.results if results else ():
        source = None if node.inputs[0] is None else found[node.inputs[0]]
        if source is not None:
            builder.result(source, node.name)
    return found


def _layer(builder: Builder, node: Node, inputs: Sequence[Operand]) -> tuple[Value, ...]:
    relaxed = _RELAXED.fullmatch(node.version)
    if node.type == "Subgraph":
        return _inlined(builder, node, inputs)
    if node.version in _PLUGIN and node.type not in _KEPT:
        made = as_tuple(_RULES[node.type](builder, node, inputs))
        builder.rename(made[0].node, node.name)
        return made
    copy = replace(node, version=relaxed[1] if relaxed else node.version, attributes=dict(node.attributes))
    computed = _types(copy.attributes.pop("input_data_types", ""))
    ended = _types(copy.attributes.pop("output_data_types", ""))
    copy.attributes.pop("type_relax", None)
    if node.type in _ARITHMETIC and not computed and ended and ended[0] is not None and ended[0].is_float:
        # Levels and their zero point: of a result in f32, both are f32.
        computed = [ended[0]] * len(inputs)
    values = [_as(builder, value, kind) for value, kind in zip_longest(inputs, computed) if value is not None]
    if node.bodies:
        copy = replace(copy, bodies={key: _body(builder, body) for key, body in node.bodies.items()})
    outputs = builder.clone_node(copy, *values)
    return tuple(_ended(builder, value, kind) for value, kind in zip_longest(outputs, ended) if value is not None)


def _types(text: str) -> list[Element | None]:
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    return [None if name in ("undefined", "dynamic", "") else element(name) for name in names]


def _ended(builder: Builder, value: Value, element: Element | None) -> Value:
    """A result in the type that its layer was given: levels are rounded to the nearest, and kept in their range."""
    if element is None or not element.is_integer or not _is_float(builder, value):
        return _as(builder, value, element)
    low, high = element.limits
    rounded = builder.emit("Round", value, mode="half_to_even")
    return _as(builder, builder.emit("Clamp", rounded, min=float(low), max=float(high)), element)


def _as(builder: Builder, value: Value, element: Element | None) -> Value:
    """The value in another element type; None keeps its own."""
    if element is None or builder.fact(value).element is element:
        return value
    converted: Value = builder.emit("Convert", value, destination_type=element)
    return converted


def _body(builder: Builder, body: Body) -> Body:
    """The body of a loop or branch in published operations, whose port maps follow the new ids."""
    inner = Builder(body.graph.name, inside=builder)
    _fill(inner, body.graph, {})
    old, new = (
        [end.id for kind in ("Parameter", "Result") for end in graph.nodes if end.type == kind]
        for graph in (body.graph, inner.graph)
    )
    number = dict(zip(old, new, strict=True))
    maps = [replace(entry, internal=number[entry.internal]) for entry in body.port_maps]
    edges = [replace(edge, source=number[edge.source], target=number[edge.target]) for edge in body.back_edges]
    return Body(inner.graph, maps, edges)


def _inlined(builder: Builder, node: Node, inputs: Sequence[Operand]) -> tuple[Value, ...]:
    """The layers of a Subgraph, which the plugin compiles as one kernel."""
    body = node.bodies["body"]
    by_id = {inner.id: inner for inner in body.graph.nodes}
    entering: dict[Node, Value] = {}
    leaving: dict[int, Value] = {}
    for entry in body.port_maps:
        if entry.kind == "input":
            index = node.input_index(entry.external)
            value = None if index is None else inputs[index]
            if value is None:
                raise UnsupportedError(f"layer {node.name!r} (Subgraph) has no input {entry.external}")
            entering[by_id[entry.internal]] = value
    made = _fill(builder, body.graph, entering, results=False)
    for entry in body.port_maps:
        if entry.kind == "output":
            source, position = by_id[entry.internal].inputs[0], node.output_index(entry.external)
            value = None if source is None else made[source]
            if value is not None and position is not None:
                leaving[position] = value
    return tuple(leaving[i] for i in range(len(node.outputs)))


def _rule(*types: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(types, rule))
        return rule

    return register


def _inputs(node: Node, inputs: Sequence[Operand], required: int, optional: int = 0) -> list[Any]:
    """The first inputs of a layer; None for an optional one that is left out."""
    first = [*inputs, *[None] * (required + optional)][: required + optional]
    if None in first[:required]:
        raise UnsupportedError(f"layer {node.name!r} ({node.type}) has no input {first.index(None)}")
    return first


def _output_type(builder: Builder, node: Node, value: Value) -> Value:
    names = _types(node.attributes.get("output_type", node.attributes.get("out-type", "")))
    return _as(builder, value, names[0] if names else None)


def _is_float(builder: Builder, value: Value) -> bool:
    kind = builder.fact(value).element
    return kind is not None and kind.is_float


def _float(builder: Builder, value: Value) -> Element:
    kind = builder.fact(value).element
    return kind if kind is not None and kind.is_float else F32


def _then(builder: Builder, value: Value, **operands: Value | float | None) -> Value:
    """The value after arithmetic with operands that are not left out, each in the type of the value before it."""
    for type, operand in operands.items():
        kind = builder.fact(value).element
        if isinstance(operand, Value):
            value = builder.emit(type, value, _as(builder, operand, kind))
        elif operand is not None:
            value = builder.emit(type, value, builder.constant(operand, kind))
    return value


@_rule("FullyConnected", "FullyConnectedBiased", "FullyConnectedCompressed", "FullyConnectedQuantizedLegacy")
def _fully_connected(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Value:
    """Compressed weights have a scale; that of levels comes after the product and its bias."""
    data, weights, bias, scale, zero = _inputs(node, inputs, 2, 3)
    kind = _float(builder, data)
    if node.type == "FullyConnectedCompressed":
        weights = _decompressed(builder, weights, scale, zero, kind)
    product = builder.emit("MatMul", _as(builder, data, kind), _as(builder, weights, kind), transpose_b=True)
    product = _output_type(builder, node, _then(builder, product, Add=bias))
    is_of_levels = node.type == "FullyConnectedQuantizedLegacy"
    return _then(builder, product, Subtract=zero, Multiply=scale) if is_of_levels else product


def _decompressed(builder: Builder, weights: Value, scale: Operand, zero: Operand, kind: Element) -> Value:
    """Weights times their scales: a scale for each row, or for each group of a row."""
    rows, scales = builder.fact(weights).static_shape, () if scale is None else builder.fact(scale).static_shape
    groups = scales[-1] if len(scales) == len(rows) and scales[-1] not in (1, rows[-1]) else 0
    value = _as(builder, weights, kind)
    if groups:
        value = builder.emit("Reshape", value, [*rows[:-1], groups, rows[-1] // groups], special_zero=False)
    for type, operand in (("Subtract", zero), ("Multiply", scale)):
        if operand is not None:
            factor = _as(builder, operand, kind)
            if groups and builder.fact(factor).rank == len(rows):
                factor = builder.emit("Unsqueeze", factor, [-1])
            value = builder.emit(type, value, factor)
    if groups:
        value = builder.emit("Reshape", value, list(rows), special_zero=False)
    return value


@_rule("GatherCompressed")
def _gather(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Any:
    weights, indices, axis, scale, zero = _inputs(node, inputs, 3, 2)
    fact = node.outputs[0].fact
    kind = F32 if fact is None or fact.element is None else fact.element
    table = _decompressed(builder, weights, scale, zero, kind)
    return builder.emit("Gather", table, indices, axis, batch_dims=int(node.attributes.get("batch_dims", "0")))


@_rule("PowerStatic")
def _power(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Value:
    """(x * scale + shift) ** power."""
    (data,) = _inputs(node, inputs, 1)
    value = _as(builder, data, _float(builder, data))
    named = (("Multiply", "scale", 1.0), ("Add", "shift", 0.0), ("Power", "power", 1.0))
    numbers = {type: float(node.attributes.get(name, neutral)) for type, name, neutral in named}
    steps = {type: numbers[type] for type, _, neutral in named if numbers[type] != neutral}
    if value is data and not steps:
        steps = {"Multiply": 1.0}
    return _output_type(builder, node, _then(builder, value, **steps))


@_rule("SwishCPU")
def _swish(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Any:
    (value,), beta = _inputs(node, inputs, 1), float(node.attributes.get("alpha", 1))
    return builder.emit("Swish", value) if beta == 1 else _then(builder, value, Swish=beta)


@_rule("LeakyRelu")
def _leaky(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Value:
    (value,), slope = _inputs(node, inputs, 1), float(node.attributes["negative_slope"])
    return _output_type(builder, node, _then(builder, value, PRelu=slope))


@_rule("ConvertSaturation", "ConvertTruncation")
def _convert(builder: Builder, node: Node, inputs: Sequence[Operand]) -> Value:
    """ConvertSaturation rounds to the nearest integer, ties to even, and keeps to the limits of the type."""
    (value,), target = _inputs(node, inputs, 1), element(node.attributes["destination_type"])
    return _ended(builder, value, target) if node.type == "ConvertSaturation" else _as(builder, value, target)


@_rule("ScaledDotProductAttentionWithKVCache")
def _attention(builder: Builder, node: Node, inputs: Sequence[Operand]) -> tuple[Value, ...]:
    """Attention to past and new tokens; the results beside it are the new caches.

    The last three inputs are the index of beams, the past keys and the past values.
    """
    flags = {key.removeprefix("config."): text for key, text in node.attributes.items()}
    axes = [int(part) for part in flags.get("permute_axes", "").split(",") if part.strip()]
    (query, key, value), others, (beams, *pasts) = inputs[:3], inputs[3:-3], inputs[-3:]
    caches = []
    for new, past in ((key, pasts[0]), (value, pasts[1])):
        if new is None or past is None:
            raise UnsupportedError(f"layer {node.name!r} ({node.type}) has no cache")
        chosen = past if beams is None else builder.emit("Gather", past, beams, builder.constant(0, "i64"))
        new_tokens = _as(builder, new, builder.fact(past).element)
        caches.append(builder.emit("Concat", chosen, new_tokens, axis=axes[2] if axes else 2))
    if query is None:
        raise UnsupportedError(f"layer {node.name!r} ({node.type}) has no query")
    kind = builder.fact(query).element
    heads = [query, *(_as(builder, cache, kind) for cache in caches)]
    if axes:
        heads = [builder.emit("Transpose", one, axes) for one in heads]
    heads = [heads[0], *(_repeated(builder, one, heads[0]) for one in heads[1:])]
    mask, scale = _inputs(node, others, 0, 2)
    if mask is not None and not _is_float(builder, mask):
        mask = _as(builder, mask, BOOLEAN)
    causal = "true" in (flags.get("is_causal"), flags.get("fuse_causal_attn"))
    found = builder.emit("ScaledDotProductAttention", *heads, mask, scale, causal=causal)
    if flags.get("output_BLHxS") == "true":
        found = builder.emit("Transpose", found, [0, 2, 1, 3])
        found = builder.emit("Reshape", found, [0, 0, -1], special_zero=True)
    return (found, *caches)


def _repeated(builder: Builder, value: Value, query: Value) -> Value:
    """Heads of keys or values, each as many times as groups of heads of the query read it."""
    sizes, wanted = (builder.fact(one).shape for one in (value, query))
    count, total = (None, None) if sizes is None or wanted is None else (sizes[1], wanted[1])
    if not isinstance(count, int) or not isinstance(total, int) or count == total:
        return value
    apart = builder.emit("Unsqueeze", value, [2])
    spread = builder.emit("Tile", apart, [1, 1, total // count, 1, 1])
    rows = builder.emit("ShapeOf", value, output_type="i64")
    first, *last = (builder.emit("Gather", rows, axes, 0) for axes in ([0], [2, 3]))
    shape = builder.emit("Concat", first, [total], *last, axis=0)
    made: Value = builder.emit("Reshape", spread, shape, special_zero=False)
    return made
