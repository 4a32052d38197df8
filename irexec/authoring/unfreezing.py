"""Repairing constants that keep an input from having another size: patterns of Reshape and Broadcast, and constants
with one slice for each index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Port, find_port
from irexec.analysis.shape_inference import UNKNOWN, ShapeInference
from irexec.authoring.alignment import LENGTHS, Aligned, aligned_inputs
from irexec.authoring.editing import Editing
from irexec.authoring.folding import Evaluation
from irexec.dtypes.elements import Element
from irexec.errors import InputError, NodeError
from irexec.io.annotations import layout_of
from irexec.ir.dims import PartialShape, is_static, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import needed, topological

_FACTOR = 7
"""The size of the axis is tried with this many times what it is."""


def unfreeze(editing: Editing, keys: Sequence[str | int], axis: int | None) -> None:
    """Repair what a constant blocks; see Editor.unfreeze."""
    ports = [find_port(editing.model.inputs, key) for key in keys]
    if not ports:
        raise InputError("no input is named")
    axes = {port.node: _axis(port, axis) for port in ports}
    before = needed(editing.model)
    repair = _Repair(editing, axes)
    repair.run()
    if not repair.count:
        where = ", ".join(f"axis {axes[port.node]} of input {port.name!r}" for port in ports)
        raise InputError(f"no constant blocks another size of {where}")
    editing.drop_unneeded(before)


def _axis(port: Port, axis: int | None) -> int:
    """The axis of an input that is unfrozen."""
    shape, layout = port.shape, layout_of(port.node.outputs[0])
    if not shape:
        raise InputError(f"input {port.name!r} has the shape {shape_text(shape)}: no axis can be unfrozen")
    where = (layout.find("N") if layout else 0) if axis is None else axis
    if not -len(shape) <= where < len(shape) or (axis is None and where < 0):
        raise InputError(f"input {port.name!r} has the shape {shape_text(shape)}: there is no axis {where}")
    if not isinstance(shape[where], int):
        raise InputError(f"axis {where} of input {port.name!r} has any size already: {shape_text(shape)}")
    return where % len(shape)


class _Extent(NamedTuple):
    """The part of an axis that the unfrozen size is: ``outer`` times as many elements, each ``inner`` apart."""

    outer: int = 1
    inner: int = 1


class _Repair:
    """The model inferred with other sizes of its inputs, and repaired on the way."""

    def __init__(self, editing: Editing, axes: dict[Node, int]) -> None:
        self._editing, self._axes = editing, axes
        self._walk = ShapeInference(tolerant=True)
        self._extents: dict[Value, _Extent] = {}
        self._computed = constant_layers(editing.model)
        self._evaluation = Evaluation(editing)
        self.count = 0

    def run(self) -> None:
        """Repair layers one after the other; NodeError for one that cannot be repaired."""
        before = set(self._editing.facts.inference.failures)
        for node in topological(self._editing.model)[0]:
            if node in self._axes:
                self._walk.inference.facts[node.outputs[0]] = self._tried(node)
                continue
            self._repair(node)
            self._walk.node(node)
            error = self._walk.inference.failures.get(node)
            if error is not None and node not in before:
                raise self._error(node, getattr(error, "reason", str(error)))
            self._follow(node)

    def _tried(self, parameter: Node) -> Fact:
        known, axis = self._editing.facts[parameter.outputs[0]], self._axes[parameter]
        assert known.shape is not None
        return Fact(known.element, (*known.shape[:axis], known.shape[axis] * _FACTOR, *known.shape[axis + 1 :]))

    def _error(self, failed: Node, reason: str) -> NodeError:
        constants = [repr(v.node.name) for v in failed.inputs if v is not None and v.node.constant is not None]
        why = f" with the constants {', '.join(constants)}" if constants else ""
        others = [port.name for port in self._editing.model.inputs if self._may_belong(port)]
        more = f"; unfreeze {', '.join(map(repr, others))} in the same step if the size is the same" if others else ""
        return NodeError(
            f"layer {failed.name!r} ({failed.type}){why} keeps the size and cannot be repaired: {reason}{more}",
            node=failed.name,
        )

    def _may_belong(self, port: Port) -> bool:
        """Whether another input has the same size along the same axis."""
        node, axis = next(iter(self._axes.items()))
        shape = self._editing.facts[node.outputs[0]].shape or ()
        return port.node not in self._axes and len(port.shape or ()) > axis and (port.shape or ())[axis] == shape[axis]

    def _follow(self, node: Node) -> None:
        """Note the extent in each output: that of an input where the axis is as long.

        Raises:
            NodeError: the size is a part of an axis of which the outputs are independent.
        """
        parts = [value for value in node.inputs if value is not None and self._extents.get(value, _Extent()) != (1, 1)]
        moves = [self._now(value) != self._editing.facts[value].shape for value in node.outputs]
        if parts and not any(moves) and node.type not in ("ShapeOf", "Result") and not node.type.startswith("Reduce"):
            raise self._error(node, f"the outputs are the same whatever the size of {parts[0].name!r} is")
        for value in node.outputs:
            axis = self._moved(value)
            if axis is None or value in self._extents:
                continue
            size = self._size(value, axis)
            for source in node.inputs:
                moved = None if source is None else self._moved(source)
                if source is not None and moved is not None and self._size(source, moved) == size:
                    self._extents[value] = self._extents.get(source, _Extent())
                    break

    def _moved(self, value: Value) -> int | None:
        """The only axis that has another size than before; None if there is none, or several."""
        source, now = self._editing.facts[value].shape, self._now(value)
        if source is None or now is None or len(source) != len(now):
            return None
        axes = [axis for axis, (a, b) in enumerate(zip(source, now, strict=True)) if a != b]
        return axes[0] if len(axes) == 1 else None

    def _now(self, value: Value) -> PartialShape:
        """The shape of a value with the size that is tried."""
        return self._walk.inference.facts.get(value, UNKNOWN).shape

    def _size(self, value: Value, axis: int) -> Any:
        return (self._editing.facts[value].shape or ())[axis]

    def _repair(self, node: Node) -> None:
        for index, value in enumerate(node.inputs):
            axis = None if value is None else self._moved(value)
            if value is None or axis is None:
                continue
            if node.type in ("Reshape", "Broadcast"):
                if index == 0:
                    (self._reshape if node.type == "Reshape" else self._broadcast)(node, value, axis)
                continue
            if node.type in LENGTHS and index == 0:
                self._lengths(node, LENGTHS[node.type])
            if node.type == "Gather" and index == 0:
                self._gather(node, value, axis)
            for aligned in aligned_inputs(node, index, axis, self._editing.facts):
                self._repeat(node, value, axis, aligned)

    def _reshape(self, node: Node, data: Value, axis: int) -> None:
        """Give a Reshape a pattern with which its output has as many elements as its input, whatever the size."""
        source, target = self._editing.facts[data].shape, self._editing.facts[node.outputs[0]].shape
        if not is_static(source) or not is_static(target) or 0 in source or 0 in target:
            return
        pattern = node.inputs[1]
        known = self._known(pattern)
        found = _destination(source, axis, self._extents.get(data, _Extent()), target, known or ())
        if found is None or pattern is None or known is None:
            return
        place, self._extents[node.outputs[0]] = found
        keeps = place == axis and typed_attribute(node, "special_zero") is True
        if known[place] == -1 or (known[place] == 0 and keeps):
            # The pattern is right as it is.
            return
        size: Any = 0 if keeps and target[place] == source[axis] else -1
        if size == -1 and -1 in known:
            size = self._size_of(data, axis, target[place], source[axis])
        self._replace(node, 1, self._pattern(known, place, size, pattern.node.name))

    def _broadcast(self, node: Node, data: Value, axis: int) -> None:
        """Give a Broadcast the size of its input where the constant has the old one."""
        known, rank = self._known(node.inputs[1]), len(self._editing.facts[data].shape or ())
        if known is None or typed_attribute(node, "mode") == "explicit" or axis + len(known) < rank:
            return
        place = axis + len(known) - rank
        if known[place] == self._size(data, axis):
            self._replace(node, 1, self._pattern(known, place, self._size_of(data, axis), "broadcast"))

    def _repeat(self, node: Node, data: Value, axis: int, aligned: Aligned) -> None:
        """Give a layer one slice of a constant whose slices are equal, repeated as often as the size is."""
        value, extent = node.inputs[aligned.index], self._extents.get(data, _Extent())
        size = self._size(data, axis)
        if value is None or not self._is_constant(value) or self._size(value, aligned.axis) != size:
            return
        if aligned.broadcasts and size == 1:
            return
        parameter, where = next(iter(self._axes.items()))
        frozen = self._size(parameter.outputs[0], where)
        if extent.outer * extent.inner * frozen != size or extent.outer != 1:
            return
        array = self._evaluation.array(value)
        block = array.take(range(extent.inner), aligned.axis)
        repeats = [frozen if i == aligned.axis else 1 for i in range(array.ndim)]
        if not np.array_equal(np.tile(block, repeats), array, equal_nan=array.dtype.kind == "f"):
            return
        element = self._editing.facts[value].element
        made = self._constant(block, value.node.name, element)
        if not (aligned.broadcasts and extent.inner == 1):
            made = self._emit("Tile", made, self._pattern(repeats, aligned.axis, self._unfrozen_size(), "tile"))
        self._replace(node, aligned.index, made)

    def _lengths(self, node: Node, index: int) -> None:
        """Give a recurrent sequence lengths that follow from its input, where all of them were the whole length."""
        data, lengths = node.inputs[0], node.inputs[index]
        if data is None or lengths is None or not self._is_constant(lengths):
            return
        if (self._evaluation.array(lengths) == self._size(data, 1)).all():
            batch, time = self._size_of(data, 0), self._size_of(data, 1)
            element = self._editing.facts[lengths].element
            whole = self._emit("Broadcast", time, batch)
            self._replace(node, index, self._emit("Convert", whole, destination_type=element))

    def _gather(self, node: Node, data: Value, axis: int) -> None:
        """Let constant indices into an axis of several rows, such as flattened masks, follow the number of rows."""
        indices, along, extent = node.inputs[1], self._known(node.inputs[2]), self._extents.get(data, _Extent())
        if extent.outer != 1 or along is None or indices is None or not self._is_constant(indices):
            return
        rows, inner = self._evaluation.array(indices).astype(np.int64), extent.inner
        count, rank = self._size(data, axis) // inner, len(self._editing.facts[data].shape or ())
        if count == inner == 1 or along[0] % rank != axis:
            return
        for place in (place for place, size in enumerate(rows.shape) if size == count):
            column = [-1 if i == place else 1 for i in range(rows.ndim)]
            first = rows.take([0], place)
            if np.array_equal(first + np.arange(count).reshape(column) * inner, rows) and (first < inner).all():
                self._replace(node, 1, self._emit("Add", self._starts(column, inner), first))
                return

    def _starts(self, shape: Sequence[int], step: int) -> Value:
        """The multiples of ``step``, as many as the unfrozen size, in a shape with one open size."""
        number = self._emit("Squeeze", self._unfrozen_size(), np.array([0], np.int64))
        indices = self._emit("Range", np.int64(0), number, np.int64(1), output_type="i64")
        column = self._emit("Reshape", indices, np.array(shape, np.int64), special_zero=False)
        return self._emit("Multiply", column, np.int64(step))

    def _unfrozen_size(self) -> Value:
        """The unfrozen size when the model runs, i64 of shape [1]."""
        return self._size_of(*next((node.outputs[0], axis) for node, axis in self._axes.items()))

    def _is_constant(self, value: Value) -> bool:
        return value.node.constant is not None or value.node in self._computed

    def _known(self, pattern: Value | None) -> list[int] | None:
        """The elements of a pattern that is constant."""
        if pattern is None or not self._is_constant(pattern):
            return None
        found = self._editing.facts[pattern].ints("the pattern")
        return None if found is None else list(found)

    def _pattern(self, known: Sequence[int], place: int, size: int | Value, name: str) -> Value:
        """The elements of a pattern with another one at one place."""
        if isinstance(size, int):
            return self._constant(np.array([*known[:place], size, *known[place + 1 :]], np.int64), name)
        around = (known[:place], known[place + 1 :])
        before, after = ([np.array(part, np.int64)] if part else [] for part in around)
        return self._emit("Concat", *before, size, *after, axis=0)

    def _size_of(self, value: Value, axis: int, numerator: int = 1, denominator: int = 1) -> Value:
        """The size of an axis when the model runs, times a fraction; i64 of shape [1]."""
        size = self._emit("Gather", self._emit("ShapeOf", value), np.array([axis], np.int64), np.int64(0))
        divisor = math.gcd(numerator, denominator)
        if numerator != divisor:
            size = self._emit("Multiply", size, np.array([numerator // divisor], np.int64))
        if denominator != divisor:
            size = self._emit("Divide", size, np.array([denominator // divisor], np.int64))
        return size

    def _constant(self, array: np.ndarray, name: str, element: Element | None = None) -> Value:
        made = self._editing.add.constant(array, element, f"{name}/unfrozen")
        self._walk.node(made.node)
        return made

    def _emit(self, type: str, *inputs: Any, **attributes: Any) -> Value:
        """The output of a new layer, inferred with both sizes; arrays become constants."""
        operands = [each if isinstance(each, Value) else self._constant(each, type.lower()) for each in inputs]
        made: Value = self._editing.add.emit(type, *operands, **attributes)
        self._walk.node(made.node)
        return made

    def _replace(self, node: Node, index: int, value: Value) -> None:
        node.ports[index].source = value
        self.count += 1


def _destination(
    source: tuple[int, ...], axis: int, extent: _Extent, target: tuple[int, ...], pattern: Sequence[int]
) -> tuple[int, _Extent] | None:
    """The axis of a reshaped tensor that an extent of an axis belongs to, and its extent there.

    None if it is spread over several axes.
    """
    below = extent.inner * math.prod(source[axis + 1 :])
    above = below * (source[axis] // (extent.outer * extent.inner))
    found: dict[int, _Extent] = {}
    for place, size in enumerate(target):
        stride = math.prod(target[place + 1 :])
        if below % stride == 0 and (stride * size) % above == 0:
            found[place] = _Extent(stride * size // above, below // stride)
    if not found:
        return (0, _Extent()) if above == math.prod(source) else None

    # Several axes are possible for a size of 1 alone.
    def preference(place: int) -> tuple[bool, bool, bool, bool, bool]:
        """The same axis as a whole, the axis that the pattern leaves open, a whole axis, the outermost part of one."""
        is_open = place < len(pattern) and pattern[place] == -1
        is_whole = found[place] == (1, 1)
        return is_whole and place == axis, is_open, is_whole, found[place].outer == 1, place == axis

    best = max(found, key=preference)
    return best, found[best]
