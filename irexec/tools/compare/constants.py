"""Which constants of B are those of A, whatever their axes: exporters transpose weights, but keep their values."""

from __future__ import annotations

import numpy as np

from irexec.analysis.constant_layers import constant_layers, leaves
from irexec.analysis.model import Model
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node

_NEAR = 1e-6
"""The relative difference of sums over equal values, one of which may have been folded with a factor."""


class KnownConstants:
    """The constants of A, by what does not depend on the order of their elements.

    Args:
        a: a model.
    """

    def __init__(self, a: Model) -> None:
        self._sums: dict[int, list[np.ndarray]] = {}
        for node in a.walk():
            self._add(node)

    def _add(self, node: Node) -> None:
        sums = _sums(node)
        if sums is not None:
            self._sums.setdefault(int(sums[0]), []).append(sums)

    def unknown(self, b: Model) -> dict[Node, tuple[Node, ...]]:
        """For layers of B the constants that they read and that A has not, although it has another one of as many elements.

        Nothing if A lacks most of all, and nothing of constants that A may have folded into others.
        """
        looked = {node: sums for node in b.walk() if (sums := _sums(node)) is not None}
        partners = {node: self._partner(sums) for node, sums in looked.items()}
        known = {id(one) for one in partners.values() if one is not None}
        if sum(one is not None for one in partners.values()) * 2 < len(looked):
            return {}
        left = {size for size, all_of_size in self._sums.items() if any(id(one) not in known for one in all_of_size)}
        suspicious = {node for node, sums in looked.items() if partners[node] is None and int(sums[0]) in left}
        computed = constant_layers(b)
        found: dict[Node, tuple[Node, ...]] = {}
        for node in b.nodes:
            read = dict.fromkeys(leaf for value in node.inputs if value is not None for leaf in leaves(value, computed))
            if not suspicious.isdisjoint(read):
                found[node] = tuple(leaf for leaf in read if leaf in suspicious)
        return found

    def _partner(self, sums: np.ndarray) -> np.ndarray | None:
        """The sums of a constant of A with the same values."""
        near = _NEAR * np.maximum(np.abs(sums), np.abs(sums[1]))
        return next((other for other in self._sums.get(int(sums[0]), ()) if np.all(np.abs(other - sums) <= near)), None)


def _sums(node: Node) -> np.ndarray | None:
    """The number of elements, and sums that do not depend on their order: the root of that of squares, the sum, the extremes."""
    constant = node.constant
    if constant is None or not constant.count or not (constant.element.is_float or constant.element.is_integer):
        return None
    try:
        values = constant_value(constant).astype(np.float64).ravel()
    except IrexecError:
        return None
    return np.array([values.size, np.sqrt(values @ values), values.sum(), values.max(), values.min()])
