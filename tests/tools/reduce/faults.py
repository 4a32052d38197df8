"""Faults that are planted in a model: what may go wrong in a converter, an optimiser or by hand.

Each function takes a model, which it changes, and a number that picks one of the layers it fits. It returns the names of the layers
that are then to be named: the layer itself, or the one that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec import Model
from irexec.analysis.builder import packed
from irexec.analysis.constant_layers import constant_layers
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node

Fault = Callable[[Model, int], set[str]]


def _computed(model: Model) -> list[Node]:
    constant = constant_layers(model)
    return [node for node in model.nodes if node.inputs and node.outputs and node not in constant]


def _picked(nodes: Sequence[Node], number: int) -> Node:
    return nodes[number % len(nodes)]


def _weighted(model: Model, smallest: int) -> list[tuple[Node, Node]]:
    """The layers that read a constant of f32, each with it."""
    return [
        (node, value.node)
        for node in _computed(model)
        for value in node.inputs
        if value is not None and value.node.constant is not None and str(value.node.constant.element) == "f32"
        if math.prod(value.node.constant.shape) >= smallest
    ]


def _replace(node: Node, array: np.ndarray) -> None:
    assert node.constant is not None
    node.constant = packed(array, node.constant.element)


def _readers(model: Model, constant: Node) -> set[str]:
    return {node.name for node in model.nodes for value in node.inputs if value is not None and value.node is constant}


def weight(model: Model, number: int) -> set[str]:
    """One row of a weight is another one."""
    found = _weighted(model, 16)
    _, constant = found[number % len(found)]
    assert constant.constant is not None
    array = constant_value(constant.constant).copy()
    array.reshape(-1)[: max(1, array.size // 8)] += np.float32(0.5)
    _replace(constant, array)
    return _readers(model, constant)


def rounded(model: Model, number: int) -> set[str]:
    """A weight in seven bits."""
    found = _weighted(model, 16)
    _, constant = found[number % len(found)]
    assert constant.constant is not None
    array = constant_value(constant.constant)
    scale = np.float32(np.abs(array).max() / 63)
    _replace(constant, np.round(array / scale) * scale if scale else array)
    return _readers(model, constant)


def pad(model: Model, number: int) -> set[str]:
    """Pads at the beginning in place of the end."""
    nodes = [node for node in _computed(model) if any(_sizes(node, "pads_begin"))]
    node = _picked(nodes, number)
    begin, end = _sizes(node, "pads_begin"), _sizes(node, "pads_end")
    node.attributes["auto_pad"] = "explicit"
    node.attributes["pads_begin"] = ",".join(str(size + 1) for size in begin)
    node.attributes["pads_end"] = ",".join(str(size - 1) for size in end)
    return {node.name}


def _sizes(node: Node, name: str) -> list[int]:
    return [int(size) for size in node.attributes.get(name, "").split(",") if size.strip()]


def axis(model: Model, number: int) -> set[str]:
    """Softmax or a mean over the axis in front."""
    node = _picked([node for node in _computed(model) if node.type in ("Softmax", "LogSoftmax")], number)
    node.attributes["axis"] = "-2" if int(node.attributes.get("axis", "1")) in (-1, 3) else "1"
    return {node.name}


def epsilon(model: Model, number: int) -> set[str]:
    """Another epsilon of a normalization."""
    node = _picked([node for node in _computed(model) if {"eps", "epsilon"} & set(node.attributes)], number)
    node.attributes["eps" if "eps" in node.attributes else "epsilon"] = "0.1"
    return {node.name}


def swapped(model: Model, number: int) -> set[str]:
    """The operands of a difference, a quotient or a product of matrices."""
    nodes = [node for node in _computed(model) if node.type in ("Subtract", "Divide", "Power") or _is_square(node)]
    node = _picked(nodes, number)
    node.ports[0].source, node.ports[1].source = node.ports[1].source, node.ports[0].source
    return {node.name}


def _is_square(node: Node) -> bool:
    facts = [value.fact for value in node.inputs if value is not None]
    shapes = [fact.shape for fact in facts if fact is not None and fact.shape is not None]
    return node.type == "MatMul" and len(shapes) == 2 and shapes[0] == shapes[1] and shapes[0][-1] == shapes[0][-2]


_MISSING = (
    "Relu", "Gelu", "Swish", "HSwish", "HSigmoid", "Sigmoid", "Tanh", "Softmax", "MVN", "Clamp", "PRelu",
    "GroupNormalization",
)  # fmt: skip


def missing(model: Model, number: int) -> set[str]:
    """A layer is left out."""
    results = {value.node for node in model.results for value in node.inputs if value is not None}
    nodes = [node for node in _computed(model) if node.type in _MISSING and node not in results]
    node = _picked(nodes, number)
    for reader in model.nodes:
        for port in reader.ports:
            if port.source is node.outputs[0]:
                port.source = node.inputs[0]
    model.nodes.remove(node)
    return {node.name}


def bias(model: Model, number: int) -> set[str]:
    """The addition of a constant is left out."""
    found = [
        (node, i)
        for node in _computed(model)
        for i, value in enumerate(node.inputs)
        if node.type in ("Add", "Multiply")
        and value is not None
        and value.node.constant is not None
        and _is_large(value.node)
    ]
    node, index = found[number % len(found)]
    for reader in model.nodes:
        for port in reader.ports:
            if port.source is node.outputs[0]:
                port.source = node.inputs[1 - index]
    model.nodes.remove(node)
    return {node.name}


def _is_large(node: Node) -> bool:
    return node.constant is not None and math.prod(node.constant.shape) >= 8


_OTHERS = {
    "Relu": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Swish": "HSwish", "HSwish": "Gelu", "Gelu": "Swish",
    "Add": "Subtract",
}  # fmt: skip


def other(model: Model, number: int) -> set[str]:
    """Another function."""
    node = _picked([node for node in _computed(model) if node.type in _OTHERS], number)
    node.type = _OTHERS[node.type]
    node.version = "opset7" if node.type == "Gelu" else "opset4"
    node.attributes.clear()
    if node.type == "Gelu":
        node.attributes["approximation_mode"] = "ERF"
    return {node.name}


def extra(model: Model, number: int) -> set[str]:
    """A Sigmoid that the other does not have."""
    nodes = [node for node in _computed(model) if node.type in ("Convolution", "MatMul", "Add")]
    node = _picked(
        [node for node in nodes if (fact := node.outputs[0].fact) is not None and str(fact.element) == "f32"], number
    )
    value = node.outputs[0]
    made = Node(max(one.id for one in model.nodes) + 1, "extra", "Sigmoid", "opset1")
    fresh = type(value)(made, 0, value.fact)
    for reader in model.nodes:
        for port in reader.ports:
            if port.source is value:
                port.source = fresh
    made.ports = [type(node.ports[0])(value, value.fact)]
    made.outputs = [fresh]
    model.nodes.insert(model.nodes.index(node) + 1, made)
    return {"extra"}


FAULTS: dict[str, Fault] = {
    "weight": weight, "rounded": rounded, "pad": pad, "axis": axis, "epsilon": epsilon, "swapped": swapped, "missing": missing,
    "bias": bias, "other": other, "extra": extra,
}  # fmt: skip
