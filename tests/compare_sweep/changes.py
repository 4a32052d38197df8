"""One random change of a model: an element of a weight, or an attribute of a layer."""

from __future__ import annotations

import copy
from collections.abc import Iterator
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
    """

    model: Model
    layer: int
    text: str


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


def attribute(model: Model, rng: np.random.Generator) -> Change | None:
    """One number or truth value of one attribute of one layer is another; None if there is none."""
    made = copy.copy(model)
    nodes = list(made.walk())
    found = [(i, name, text) for i, node in enumerate(nodes) for name, text in _attributes(node)]
    if not found:
        return None
    i, name, text = found[int(rng.integers(len(found)))]
    changed = _changed(text, rng)
    if changed is None:
        return None
    nodes[i].attributes[name] = changed
    nodes[i].typed = None
    return Change(made, i, f"{name}={text} of {nodes[i].name} ({nodes[i].type}) is {changed}")


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    if node.type not in _NOT_COMPUTED:
        yield from node.attributes.items()


def _changed(text: str, rng: np.random.Generator) -> str | None:
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
        parts[i] = repr(values[i] * 1.5 + 0.1)
    else:
        parts[i] = str(int(values[i]) + int(rng.choice((-1, 1))))
    return ", ".join(parts)


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
