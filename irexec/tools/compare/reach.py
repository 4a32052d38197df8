"""The elements of a differing tensor that each layer in front of it reaches.

A may have one Constant where B has many layers, and then no tensor tells these layers apart. But if only some elements
differ, the fault lies in a layer that reaches these elements, and rather in a layer that reaches no others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.ir.graph import Node, Value
from irexec.tools.compare.part_of_b import PartOfB
from irexec.tools.compare.reordering import MOVES
from irexec.tools.compare.rows import fitted, noisy

_UNCHANGED, _DIFFERENT = 1e-6, 1e-4
"""Maximum change of an element that is not reached, and minimum difference of one that differs, in root mean squares
of the tensor."""


def reaches(part: PartOfB) -> dict[Node, float]:
    """Fractions of the elements of the tensor, by the layers that reach these elements and all differing ones.

    A Constant counts for the layers that read it. Layers that only move elements are left out, and so are layers
    without floating-point tensors. Empty if all elements differ.
    """
    own = part.own
    if own is None or own.dtype.kind != "f":
        return {}
    expected, own = fitted(part.pair, part.expected, own)
    if own.shape != expected.shape:
        return {}
    differ = _differ(own, expected, _DIFFERENT)
    if differ.all():
        return {}
    found: dict[Node, float] = {}
    arrays = part.inner([value for node in part.nodes for value in node.outputs if _is_float(value)])
    for value, array in arrays.items():
        for node in _blamed(part, value):
            changed = part.computed({value: noisy(array)}) if part.left > 0 else None
            if changed is None or changed.size != own.size:
                continue
            reached = _differ(changed.reshape(own.shape), own, _UNCHANGED)
            if reached[differ].all():
                found[node] = min(found.get(node, 1.0), float(reached.mean()))
    return found


def _blamed(part: PartOfB, value: Value) -> Iterator[Node]:
    """The layers for which a tensor counts."""
    nodes = [node for node in part.nodes if value in node.inputs] if value.node.constant is not None else [value.node]
    yield from (node for node in nodes if node.type not in MOVES)


def _differ(one: np.ndarray, other: np.ndarray, rtol: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(np.mean(np.square(other, dtype=np.float64)))
        same = (one == other) | (np.abs(one - other) <= rtol * (scale + np.abs(other)))
    return ~same


def _is_float(value: Value) -> bool:
    return value.fact is not None and value.fact.element is not None and value.fact.element.is_float
