"""Corrections: single changes of one layer with which a tensor of B that differs becomes A's.

Several layers may lie between the last tensors that agree and the first that differs, for example since A has other
layers there. Each of them is changed on trial, and the part of B is computed from A's tensors. A change that gives
A's tensor tells the layer at fault from the others: its inputs exchanged, another attribute, a constant of A, or a
tensor of A where B lacks a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model
from irexec.ir.graph import Node, Value
from irexec.tools.compare.edits import Edit, Theirs, edits, edits_of_sizes, is_integer
from irexec.tools.compare.part_of_b import PartOfB
from irexec.tools.compare.reordering import MOVES
from irexec.tools.compare.rows import is_varied

_GIVEN = ("Parameter", "Constant")


def corrections(part: PartOfB, a: Model, b: Model) -> dict[Node, str]:
    """The layers with a correction in topological order, and the corrections as texts that follow "with".

    Args:
        part: the layers that may be at fault, and others in front of the tensor that differs.
        a, b: both models.
    """
    if not is_varied(part.expected):
        return {}
    of_a, of_b = constant_layers(a), constant_layers(b)
    theirs = _theirs(part, of_a)
    found = _edited(part, lambda node: edits(node, theirs, of_b)) | _with_tensors_of_a(part, of_a)
    if not found:
        sizes = _sizes(part)
        found = _edited(part, lambda node: edits_of_sizes(node, sizes))
    return {node: found[node] for node in part.nodes if node in found}


def _edited(part: PartOfB, edits_of: Callable[[Node], Iterator[Edit]]) -> dict[Node, str]:
    """The layers for which a change gives A's tensor; the last layers are tried first."""
    found: dict[Node, str] = {}
    for node in reversed(part.nodes):
        for edit in edits_of(node):
            if part.left <= 0:
                return found
            if part.agrees(part.computed(edit=edit)):
                found[node] = edit.text
                break
    return found


def _sizes(part: PartOfB) -> dict[Value, np.ndarray]:
    """Computed integers inside the part, such as the sizes of tensors."""
    values = [value for node in part.nodes if node.type != "Constant" for value in node.outputs if is_integer(value)]
    return part.inner(values)


def _theirs(part: PartOfB, constant: set[Node]) -> Theirs:
    floats: dict[float, None] = {}
    arrays: dict[str, np.ndarray] = {}
    for node in dict.fromkeys(value.node for value in (part.pair.a, *part.region) if isinstance(value, Value)):
        floats |= dict.fromkeys(_floats(node))
    for value in part.region:
        array = part.of_a(value)
        if array.dtype.kind == "f" and (value.node.constant is not None or value.node in constant):
            arrays[value.name] = array
            floats |= dict.fromkeys(array.ravel().tolist() if array.size == 1 else [])
    return Theirs(tuple(floats), tuple(arrays.items()))


def _floats(node: Node) -> Iterator[float]:
    """Floating-point attributes of a layer."""
    for text in node.attributes.values():
        for part in text.split(","):
            try:
                number = float(part)
            except ValueError:
                continue
            if not part.strip().lstrip("-").isdigit():
                yield number


def _with_tensors_of_a(part: PartOfB, constant: set[Node]) -> dict[Node, str]:
    """The layers that give A's tensor if they read another tensor of A: B lacks a layer of A in front of them.

    Layers that only move elements may stand on either side of the missing layer.
    """
    computed = [value for value in part.region if value.node.type not in _GIVEN and value.node not in constant]
    found: dict[Node, str] = {}
    for first in part.inputs:
        other = next((one for one in computed if _is_missing(part, one, first)), None)
        waiting = [] if other is None else [first]
        for value in waiting:
            if other is not None and (value is first or _is_missing(part, other, value)):
                readers = [node for node in part.nodes if value in node.inputs and node.type != "ShapeOf"]
                found |= dict.fromkeys(readers, f"A's {other.name!r} in place of {value.name!r}")
                waiting += [node.outputs[0] for node in readers if node.type in MOVES]
    return found


def _is_missing(part: PartOfB, other: Value, value: Value) -> bool:
    """Whether a tensor of A in place of one of B gives A's tensor, and a layer that reads it changes its elements.

    A sum with a mask of zeros tells nothing.
    """
    array, own = part.of_a(other), part.given(value) if value in part.inputs else part.inner([value])[value]
    if array.size != own.size or array.dtype != own.dtype or part.left <= 0:
        return False
    changed = {value: array.reshape(own.shape)}
    if not part.agrees(part.computed(changed)):
        return False
    readers = _readers(value, part.nodes)
    outputs = part.inner([node.outputs[0] for node in readers], changed).values()
    return not readers or any(not np.array_equal(np.unique(one), np.unique(array)) for one in outputs)


def _readers(value: Value, nodes: Sequence[Node]) -> list[Node]:
    """The layers that read a value, also behind layers that only move its elements."""
    readers = [node for node in nodes if value in node.inputs and node.type != "ShapeOf"]
    behind = [one for node in readers if node.type in MOVES for one in _readers(node.outputs[0], nodes)]
    return [node for node in readers if node.type not in MOVES] + behind
