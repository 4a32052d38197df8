"""Constants of B that A has too, with any axes: exporters transpose weights, but keep their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.constant_layers import constant_layers, leaves
from irexec.analysis.model import Model
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node

_NEAR = 1e-6
"""Maximum relative difference of sums over equal values."""


_MANY, _ROW = 16, 4
"""Minimum number of elements of a constant, and of one of its channels, that is recognised as a multiple."""
_SCALED = 1e-5
"""Maximum relative difference of sums without the factors of channels."""


class KnownConstants:
    """The constants of A, identified by sums that depend neither on the order of elements nor on factors of channels.

    Args:
        a: a model.
    """

    def __init__(self, a: Model) -> None:
        self._sums: dict[int, list[np.ndarray]] = {}
        self._scaled: dict[int, list[np.ndarray]] = {}
        self._folded: dict[int, list[np.ndarray]] = {}
        for folded in _scales_and_shifts(a):
            self._folded.setdefault(folded.size, []).append(_sums(folded))
        for node in a.walk():
            values = _values(node)
            if values is not None:
                self._sums.setdefault(values.size, []).append(_sums(values))
                self._scaled.setdefault(values.size, []).extend(_unscaled(values))

    def unknown(self, b: Model) -> dict[Node, tuple[Node, ...]]:
        """Constants of B without a counterpart in A, by the layers that read them.

        A must have another constant of as many elements. Empty if A lacks most constants of B; constants that A may
        have folded into others are left out.
        """
        looked = {node: values for node in b.walk() if (values := _values(node)) is not None}
        partners = {node: _equal(_sums(values), self._sums) for node, values in looked.items()}
        known = {id(one) for one in partners.values() if one is not None}
        if sum(one is not None for one in partners.values()) * 2 < len(looked):
            return {}
        left = {size for size, all_of_size in self._sums.items() if any(id(one) not in known for one in all_of_size)}
        suspicious = {
            node
            for node, values in looked.items()
            if partners[node] is None and values.size in left and not self._is_folded(values)
        }
        computed = constant_layers(b)
        found: dict[Node, tuple[Node, ...]] = {}
        for node in b.nodes:
            read = dict.fromkeys(leaf for value in node.inputs if value is not None for leaf in leaves(value, computed))
            if not suspicious.isdisjoint(read):
                found[node] = tuple(leaf for leaf in read if leaf in suspicious)
        return found

    def _is_folded(self, values: np.ndarray) -> bool:
        """Whether A has a constant with every channel multiplied by a factor, such as a folded scale, or layers that
        have the values together."""
        if _equal(_sums(values), self._folded) is not None:
            return True
        others = self._scaled.get(values.size, [])
        return any(np.allclose(one, other, rtol=_SCALED, atol=0) for one in _unscaled(values) for other in others)


def has_values(node: Node, arrays: Iterable[np.ndarray]) -> bool:
    """Whether a Constant has the values of one of some tensors, in any order of elements."""
    values = _values(node)
    if values is None:
        return False
    sums = _sums(values)
    return any(_are_near(_sums(array.astype(np.float64)), sums) for array in arrays if array.size == values.size)


def _are_near(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.all(np.abs(one - other) <= _NEAR * np.maximum(np.abs(other), np.abs(other[1]))))


def _equal(sums: np.ndarray, all_sums: Mapping[int, Sequence[np.ndarray]]) -> np.ndarray | None:
    """Sums of a constant with the same values."""
    return next((other for other in all_sums.get(int(sums[0]), ()) if _are_near(other, sums)), None)


def _scales_and_shifts(model: Model) -> Iterator[np.ndarray]:
    """Factors and summands of successive layers with constant operands, folded into one factor and one summand."""
    for node in model.walk():
        scale, shift = np.ones(()), np.zeros(())
        step = _step(node)
        while step is not None:
            source, factor, summand = step
            scale, shift = scale * factor, shift + scale * summand
            yield from (scale, shift)
            step = _step(source)


def _step(node: Node) -> tuple[Node, np.ndarray, np.ndarray] | None:
    """The layer in front of a sum or product with a constant, and its factor and summand; None for other layers."""
    if node.type not in ("Add", "Multiply", "Subtract", "Divide") or len(node.inputs) != 2:
        return None
    one, other = node.inputs
    if one is None or other is None:
        return None
    values = _values(other.node)
    if values is None:
        one, other, values = other, one, _values(one.node)
    is_first = node.inputs[0] is other
    if values is None or _values(one.node) is not None or (node.type == "Divide" and (is_first or not values.all())):
        return None
    if node.type == "Add":
        return one.node, np.ones(()), values
    if node.type == "Subtract":
        return one.node, np.array(-1.0 if is_first else 1.0), values if is_first else -values
    return one.node, values if node.type == "Multiply" else 1.0 / values, np.zeros(())


def _unscaled(values: np.ndarray) -> list[np.ndarray]:
    """Sums that do not change if all elements are multiplied by one factor, or the slices along an axis by factors."""
    if values.size < _MANY:
        return []
    found = []
    along = (np.moveaxis(values, axis, 0).reshape(size, -1) for axis, size in enumerate(values.shape) if size > 1)
    for slices in (values.reshape(1, -1), *along):
        rows = np.abs(slices)
        norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
        if rows.shape[1] >= _ROW and norms.all():
            rows = rows / norms
            found.append(np.array([rows.sum(), (rows**3).sum(), (rows**4).sum(), rows.max()]))
    return found


def _values(node: Node) -> np.ndarray | None:
    """Elements of a numeric Constant as f64."""
    constant = node.constant
    if constant is None or not constant.count or not (constant.element.is_float or constant.element.is_integer):
        return None
    try:
        return constant_value(constant).astype(np.float64)
    except IrexecError:
        return None


def _sums(array: np.ndarray) -> np.ndarray:
    """Figures without the order of elements: their number, norm, sum, maximum and minimum."""
    values = array.ravel()
    return np.array([values.size, np.sqrt(values @ values), values.sum(), values.max(), values.min()])
