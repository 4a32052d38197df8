"""One random change of a model: a weight, an attribute, operands that change places, a layer that is left out, a constant in f16."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np

from irexec import Model
from irexec.analysis.builder import packed
from irexec.ir.constants import constant_value
from irexec.ir.graph import Graph, Node

# What these say is not what a layer computes with; texts such as modes are left alone.
_NOT_COMPUTED = ("Parameter", "Constant", "Result", "ReadValue", "Assign")
_SMALL_INTEGERS = ("i4", "u4", "i8", "u8")


@dataclass(frozen=True)
class Change:
    """A changed copy of a model.

    Attributes:
        model: the copy.
        layer: the index of the changed layer in ``model.walk()``.
        text: what was changed.
        is_missing: whether the layer is the one in front of one that was left out.
    """

    model: Model
    layer: int
    text: str
    is_missing: bool = False


def weight(model: Model, rng: np.random.Generator) -> Change:
    """One element of one weight is another by more than the largest of all."""
    made = copy.copy(model)
    nodes = list(made.walk())
    indices = [i for i, node in enumerate(nodes) if node.constant is not None and _is_weight(node)]
    i = int(rng.choice(indices))
    constant = nodes[i].constant
    assert constant is not None
    values = constant_value(constant).copy()
    place = int(rng.integers(values.size))
    if constant.element.is_float:
        values.flat[place] += np.asarray((1 + rng.random()) * max(float(np.abs(values).max()), 0.1), values.dtype)
    else:
        low, high = int(values.min()), int(values.max())
        values.flat[place] = low if int(values.flat[place]) * 2 > low + high else high
    nodes[i].constant = packed(values, constant.element)
    return Change(made, i, f"element {place} of {nodes[i].name}")


def _is_weight(node: Node) -> bool:
    assert node.constant is not None
    element, size = node.constant.element, int(np.prod(node.constant.shape, dtype=np.int64))
    return size > 0 and (element.is_float or (element.name in _SMALL_INTEGERS and size > 1))


def attribute(
    model: Model, rng: np.random.Generator, names: Container[str] | None = None, times: float = 1.5
) -> Change | None:
    """One number or truth value of one attribute of one layer is another; None if there is none.

    Args:
        model: is not changed.
        rng: chooses.
        names: of the attributes; any unless given.
        times: the factor of a floating-point value.
    """
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [
        (i, name, text)
        for i, node in enumerate(nodes)
        for name, text in _attributes(node)
        if names is None or name in names
    ]
    if not found:
        return None
    i, name, text = found[int(rng.integers(len(found)))]
    changed = _changed(text, rng, times)
    if changed is None:
        return None
    nodes[i].attributes[name] = changed
    nodes[i].typed = None
    return Change(made, i, f"{name}={text} of {nodes[i].name} ({nodes[i].type}) is {changed}")


def pad(model: Model, rng: np.random.Generator) -> Change | None:
    """One pad of one layer is another by 1; None if there is none."""
    return attribute(model, rng, ("pads_begin", "pads_end"))


def axis(model: Model, rng: np.random.Generator) -> Change | None:
    """One axis of one layer is another by 1, or two axes of a Transpose change places; None if there is none."""
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [
        i
        for i, node in enumerate(nodes)
        if (node.type.startswith("Reduce") or node.type in ("Transpose", "Gather"))
        and (source := node.inputs[-1]) is not None
        and source.node.constant is not None
    ]
    if not found or rng.random() < 0.4:
        return attribute(model, rng, ("axis", "axes"))
    node = nodes[int(rng.choice(found))]
    source = node.inputs[-1]
    assert source is not None and source.node.constant is not None
    values = constant_value(source.node.constant).copy()
    i = int(rng.integers(values.size))
    if node.type == "Transpose":
        j = int(rng.integers(values.size))
        values[[i, j]] = values[[j, i]]
    else:
        values.flat[i] += int(rng.choice((-1, 1)))
    fresh = source.node.detached()
    fresh.id, fresh.name = max(one.id for one in nodes) + 1, "changed"
    fresh.constant = packed(values, source.node.constant.element)
    made.nodes.append(fresh)
    node.ports[-1].source = fresh.outputs[0]
    layer = list(made.walk()).index(node)
    return Change(made, layer, f"axes of {node.name} ({node.type}) are {values.tolist()}")


def epsilon(model: Model, rng: np.random.Generator) -> Change | None:
    """One small positive constant, or one epsilon of an attribute, is a thousand times as large; None if there is none."""
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [i for i, node in enumerate(nodes) if node.constant is not None and _is_epsilon(node)]
    if not found or rng.random() < 0.5:
        return attribute(model, rng, ("eps", "epsilon"), 1000.0)
    i = int(rng.choice(found))
    constant = nodes[i].constant
    assert constant is not None
    nodes[i].constant = packed(constant_value(constant) * np.float32(1000), constant.element)
    return Change(made, i, f"{nodes[i].name} is a thousand times as large")


def _is_epsilon(node: Node) -> bool:
    constant = node.constant
    if constant is None or constant.element.name != "f32" or constant.count != 1:
        return False
    return 0.0 < float(constant_value(constant).flat[0]) <= 1e-4


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    if node.type not in _NOT_COMPUTED:
        yield from node.attributes.items()


def _changed(text: str, rng: np.random.Generator, times: float) -> str | None:
    lower = text.strip().lower()
    if lower in ("true", "false"):
        return "false" if lower == "true" else "true"
    parts = [part.strip() for part in text.split(",")]
    try:
        values = [float(part) for part in parts]
    except ValueError:
        return None
    i = int(rng.integers(len(values)))
    if "." in parts[i] or "e" in parts[i].lower():
        parts[i] = repr(values[i] * times + (0.1 if times < 10 else 0.0))
    else:
        parts[i] = str(int(values[i]) + int(rng.choice((-1, 1))))
    return ", ".join(parts)


def swapped(model: Model, rng: np.random.Generator) -> Change | None:
    """Two inputs of a layer are exchanged; None if no layer makes another model of it."""
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [
        i for i, node in enumerate(nodes) if node.type in ("Subtract", "Divide", "Power", "MatMul", "Concat", "Select")
    ]
    if not found:
        return None
    i = int(rng.choice(found))
    ports = nodes[i].ports[-2:]
    ports[0].source, ports[1].source = ports[1].source, ports[0].source
    return Change(made, i, f"two inputs of {nodes[i].name} ({nodes[i].type}) have changed places")


def missing(model: Model, rng: np.random.Generator) -> Change | None:
    """A layer is left out whose output has the shape of its first input; None if there is none."""
    made = copy.copy(model)
    nodes = made.nodes
    found = [
        node for node in nodes if node.type not in _NOT_COMPUTED and len(node.outputs) == 1 and _is_bypassable(node)
    ]
    if not found:
        return None
    node = found[int(rng.integers(len(found)))]
    source = node.inputs[0]
    assert source is not None
    for other in nodes:
        for port in other.ports:
            if port.source is node.outputs[0]:
                port.source = source
    nodes.remove(node)
    return Change(made, list(made.walk()).index(source.node), f"{node.name} ({node.type}) is left out", is_missing=True)


def _is_bypassable(node: Node) -> bool:
    source = node.inputs[0] if node.inputs else None
    if source is None or source.fact is None or source.node.type == "Constant":
        return False
    return node.outputs[0].fact == source.fact and node.type not in ("Convert", "Result")


def rounded(model: Model, rng: np.random.Generator) -> Change | None:
    """The elements of one weight are rounded to eight bits; None if there is none."""
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [
        i
        for i, node in enumerate(nodes)
        if node.constant is not None and _is_weight(node) and node.constant.element.name == "f32"
    ]
    if not found:
        return None
    i = int(rng.choice(found))
    constant = nodes[i].constant
    assert constant is not None
    values = constant_value(constant)
    step = float(np.abs(values).max()) / 127 or 1.0
    nodes[i].constant = packed((np.rint(values / step) * step).astype(np.float32), constant.element)
    return Change(made, i, f"{nodes[i].name} is rounded to 8 bits")


def rename(model: Model, rng: np.random.Generator) -> Model:
    """Give every layer another name and place, and the outer ones another id; the order of inputs and results stays."""
    graphs: list[Graph] = [model, *(body.graph for node in model.walk() for body in node.bodies.values())]
    number = 0
    for graph in graphs:
        for node in graph.nodes:
            node.name = f"layer{number}"
            number += 1
            for value in node.outputs:
                value.names = []
        _shuffle(graph, rng)
    for node, other in zip(model.nodes, rng.permutation(len(model.nodes)).tolist(), strict=True):
        node.id = 1000 + int(other)
    return model


def _shuffle(graph: Graph, rng: np.random.Generator) -> None:
    order = rng.permutation(len(graph.nodes)).tolist()
    shuffled = [graph.nodes[i] for i in order]
    for kind in ("Parameter", "Result"):
        kept = iter([node for node in graph.nodes if node.type == kind])
        shuffled = [next(kept) if node.type == kind else node for node in shuffled]
    graph.nodes = shuffled
