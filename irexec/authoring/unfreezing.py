"""Repairing constants that keep an input from having another size: patterns of Reshape and Broadcast, and constants
with one slice for each index."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Port, find_port
from irexec.analysis.shape_inference import UNKNOWN, ShapeInference
from irexec.authoring.editing import Editing
from irexec.authoring.optimizing import Evaluation
from irexec.authoring.state import Facts
from irexec.dtypes.elements import Element
from irexec.errors import InputError, NodeError, UnsupportedError
from irexec.io.payload import layout_of
from irexec.ir.dims import PartialShape, is_static, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import needed, topological
from irexec.schema.registry import resolve

_FACTOR = 7
"""The size of the axis is tried with this many times what it is."""


class AddedLayers:
    """Adds layers to a model, each inferred with the size that the model has and with the one that is tried.

    Args:
        axes: the inputs with the unfrozen axis of each.

    Attributes:
        walk: the shape inference with the tried size.
        made: the layers that were added, without Constants.
    """

    def __init__(self, editing: Editing, axes: Mapping[Node, int]) -> None:
        self._editing, self._axes = editing, axes
        self.walk = ShapeInference(tolerant=True)
        self.made: set[Node] = set()

    def constant(self, array: np.ndarray, name: str, element: Element | None = None) -> Value:
        """The output of a new Constant, whose name begins with ``name``."""
        made = self._editing.add.constant(array, element, f"{name}/unfrozen")
        self.walk.node(made.node)
        return made

    def emit(self, type: str, *inputs: Any, **attributes: Any) -> Value:
        """The output of a new layer; arrays become constants."""
        operands = [each if isinstance(each, Value) else self.constant(each, type.lower()) for each in inputs]
        made: Value = self._editing.add.emit(type, *operands, **attributes)
        self.made.add(made.node)
        self.walk.node(made.node)
        return made

    def vector(self, elements: Sequence[int], place: int, size: int | Value, name: str) -> Value:
        """Integers with another one at one place."""
        if isinstance(size, int):
            return self.constant(np.array([*elements[:place], size, *elements[place + 1 :]], np.int64), name)
        around = (elements[:place], elements[place + 1 :])
        before, after = ([np.array(part, np.int64)] if part else [] for part in around)
        return self.emit("Concat", *before, size, *after, axis=0)

    def size_of(self, value: Value, axis: int, numerator: int = 1, denominator: int = 1) -> Value:
        """The size of an axis when the model runs, times a fraction; i64 of shape [1]."""
        size = self.emit("Gather", self.emit("ShapeOf", value), np.array([axis], np.int64), np.int64(0))
        divisor = math.gcd(numerator, denominator)
        if numerator != divisor:
            size = self.emit("Multiply", size, np.array([numerator // divisor], np.int64))
        if denominator != divisor:
            size = self.emit("Divide", size, np.array([denominator // divisor], np.int64))
        return size

    def unfrozen_size(self) -> Value:
        """The unfrozen size when the model runs, i64 of shape [1]."""
        return self.size_of(*next((node.outputs[0], axis) for node, axis in self._axes.items()))

    def starts(self, shape: Sequence[int], step: int) -> Value:
        """The multiples of ``step``, as many as the unfrozen size, in a shape with one open size."""
        number = self.emit("Squeeze", self.unfrozen_size(), np.array([0], np.int64))
        indices = self.emit("Range", np.int64(0), number, np.int64(1), output_type="i64")
        column = self.emit("Reshape", indices, np.array(shape, np.int64), special_zero=False)
        return self.emit("Multiply", column, np.int64(step))


LENGTHS: Mapping[str, int] = {"LSTMSequence": 3, "GRUSequence": 2, "RNNSequence": 2}
"""The input of a recurrent sequence that has the length of each sequence."""
_BATCHES: Mapping[str, tuple[int, ...]] = {
    "LSTMSequence": (1, 2, 3), "GRUSequence": (1, 2), "RNNSequence": (1, 2),
    "LSTMCell": (1, 2), "GRUCell": (1,), "RNNCell": (1,),
    "GridSample": (1,), "DeformableConvolution": (1, 3),
}  # fmt: skip
"""The inputs whose first axis is the batch, as that of the first input is."""
_PRODUCTS = ("MatMul", "ScaledDotProductAttention")


@dataclass(frozen=True)
class Aligned:
    """An axis of an input.

    Attributes:
        index: of the input.
        axis: the axis.
        broadcasts: whether a size of 1 is as good as that of the other input.
    """

    index: int
    axis: int
    broadcasts: bool


def aligned_inputs(node: Node, index: int, axis: int, facts: Facts) -> Iterator[Aligned]:
    """The axes of other inputs of a layer that must have the size of an axis of the input at ``index``."""
    shapes = [None if value is None else facts[value].shape for value in node.inputs]
    if node.type == "Gather":
        yield from _selected_states(node, index, shapes[0], facts)
        return
    rank = len(shapes[index] or ())
    broadcasts = _broadcasts(node, axis - rank)
    for other, shape in enumerate(shapes):
        if other == index or shape is None:
            continue
        if broadcasts and axis + len(shape) >= rank:
            yield Aligned(other, axis + len(shape) - rank, True)
        elif (
            node.type in ("Concat", "GatherElements")
            and len(shape) == rank
            and axis != typed_attribute(node, "axis") % rank
        ):
            yield Aligned(other, axis, False)
        elif index == axis == 0 and other in _BATCHES.get(node.type, ()):
            yield Aligned(other, 0, False)


def _selected_states(node: Node, index: int, shape: PartialShape, facts: Facts) -> Iterator[Aligned]:
    """The axis along which a Gather selects rows of a variable, such as those of beams; there are as many."""
    variable, axis = node.inputs[0], node.inputs[2]
    if index != 1 or variable is None or variable.node.type != "ReadValue" or axis is None or shape is None:
        return
    known = facts[axis].known
    if known is not None and known.size == 1:
        yield Aligned(0, int(known.item()) % len(shape), False)


def _broadcasts(node: Node, axis: int) -> bool:
    """Whether inputs are aligned at their last axes and broadcast along an axis, which is counted from the end."""
    if node.type in _PRODUCTS:
        return axis < -2
    try:
        has_mode = "auto_broadcast" in resolve(node.type, node.version).by_name
    except UnsupportedError:
        return False
    return has_mode and typed_attribute(node, "auto_broadcast") == "numpy"


def unfreeze(editing: Editing, keys: Sequence[str | int], axis: int | None) -> list[str]:
    """Repair what a constant blocks; see Editor.unfreeze. Returns a sentence for each layer that keeps its shapes."""
    ports = [find_port(editing.model.inputs, key) for key in keys]
    if not ports:
        raise InputError("no input is named")
    axes = {port.node: _axis(port, axis) for port in ports}
    before = needed(editing.model)
    repair = _Repair(editing, axes)
    repair.run()
    where = ", ".join(f"axis {axes[port.node]} of input {port.name!r}" for port in ports)
    kept = [f"{text}, whatever the size of {where} is" for text in repair.kept()]
    if not repair.count:
        raise InputError("; ".join([f"no constant blocks another size of {where}", *kept]))
    editing.drop_unneeded(before)
    return kept


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
        self._new = AddedLayers(editing, axes)
        self._extents: dict[Value, _Extent] = {}
        self._is_late = False
        self._kept: dict[Node, None] = {}
        self._computed = constant_layers(editing.model)
        self._evaluation = Evaluation(editing)
        self.count = 0

    def run(self) -> None:
        """Repair layers one after the other; NodeError for one that cannot be repaired."""
        self._pass()
        while self._is_late:
            self._is_late = False
            self._new.walk, self._extents, self._kept = ShapeInference(tolerant=True), {}, {}
            self._pass()

    def _pass(self) -> None:
        """Repair layers up to one that is repaired by what a layer before it reads."""
        before = set(self._editing.facts.inference.failures)
        for node in topological(self._editing.model)[0]:
            if node in self._axes:
                self._new.walk.inference.facts[node.outputs[0]] = self._tried(node)
                continue
            self._repair(node)
            if self._is_late:
                return
            self._new.walk.node(node)
            error = self._new.walk.inference.failures.get(node)
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
        if self._keeps_its_shapes(node):
            if parts:
                raise self._error(node, f"the outputs are the same whatever the size of {parts[0].name!r} is")
            self._kept[node] = None
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

    def _keeps_its_shapes(self, node: Node) -> bool:
        """Whether an input has another shape than before and no output has, although the layer does not sum it up."""
        if node.type in ("ShapeOf", "Result", "ReadValue", "Assign", "NonZero") or node.type.startswith("Reduce"):
            return False
        return any(map(self._moves, node.inputs)) and not any(map(self._moves, node.outputs))

    def _moves(self, value: Value | None) -> bool:
        return value is not None and self._now(value) != self._editing.facts[value].shape

    def kept(self) -> Iterator[str]:
        """A clause for each layer whose outputs have the same shapes, although an input has another size."""
        for node in self._kept:
            shapes = ", ".join(shape_text(self._editing.facts[value].shape) for value in node.outputs)
            yield f"layer {node.name!r} ({node.type}) keeps the shape {shapes}"

    def _moved(self, value: Value) -> int | None:
        """The only axis that has another size than before; None if there is none, or several."""
        source, now = self._editing.facts[value].shape, self._now(value)
        if source is None or now is None or len(source) != len(now):
            return None
        axes = [axis for axis, (a, b) in enumerate(zip(source, now, strict=True)) if a != b]
        return axes[0] if len(axes) == 1 else None

    def _now(self, value: Value) -> PartialShape:
        """The shape of a value with the size that is tried."""
        return self._new.walk.inference.facts.get(value, UNKNOWN).shape

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
            if node.type in _INDEXING and index == 0:
                _INDEXING[node.type](self, node, value, axis)
            for aligned in aligned_inputs(node, index, axis, self._editing.facts):
                self._repeat(node, value, axis, aligned)

    def _reshape(self, node: Node, data: Value, axis: int) -> None:
        """Give a Reshape a pattern with which its output has as many elements as its input, whatever the size."""
        source, target = self._editing.facts[data].shape, self._editing.facts[node.outputs[0]].shape
        pattern, extent = node.inputs[1], self._extents.get(data, _Extent())
        known = self._elements(pattern)
        if source is None or target is None or 0 in source or 0 in target or pattern is None or known is None:
            return
        if is_static(source) and is_static(target):
            found = _destination(source, axis, extent, target, known)
        else:
            found = (axis, extent) if source[: axis + 1] == target[: axis + 1] else None
        if found is None:
            return
        place, self._extents[node.outputs[0]] = found
        keeps = place == axis and typed_attribute(node, "special_zero") is True
        if known[place] in (-1, None) or (known[place] == 0 and keeps):
            # The pattern is right as it is.
            return
        size: Any = 0 if keeps and target[place] == source[axis] else -1
        if size == -1 and (-1 in known or None in known):
            size = self._new.size_of(data, axis, self._size(node.outputs[0], place), self._size(data, axis))
        self._replace(node, 1, self._pattern(pattern, place, size))

    def _broadcast(self, node: Node, data: Value, axis: int) -> None:
        """Give a Broadcast the size of its input where the constant has the old one."""
        pattern, rank = node.inputs[1], len(self._editing.facts[data].shape or ())
        known = self._elements(pattern)
        if pattern is None or known is None or typed_attribute(node, "mode") == "explicit":
            return
        place = axis + len(known) - rank
        if place >= 0 and known[place] == self._size(data, axis):
            self._replace(node, 1, self._pattern(pattern, place, self._new.size_of(data, axis)))

    def _repeat(self, node: Node, data: Value, axis: int, aligned: Aligned) -> None:
        """Give a layer one slice of a constant whose slices are equal, repeated as often as the size is."""
        index, extent, size = aligned.index, self._extents.get(data, _Extent()), self._size(data, axis)
        value = node.inputs[index]
        if value is not None and value.node.type == "ReadValue" and value.node.inputs:
            # The initial value of a variable, whose own shape leaves the axis open.
            node, index, value = value.node, 0, value.node.inputs[0]
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
        made = self._new.constant(block, value.node.name, self._editing.facts[value].element)
        if not (aligned.broadcasts and extent.inner == 1):
            made = self._tiled(made, array.shape, repeats, aligned.axis)
        self._replace(node, index, made)

    def _tiled(self, block: Value, shape: Sequence[int], repeats: Sequence[int], axis: int) -> Value:
        """A block repeated along an axis as often as the size is; ``shape`` and ``repeats`` are those of the old size.

        OpenVINO ends the process where a block without elements is repeated; a scalar can be.
        """
        if 0 not in shape:
            return self._new.emit("Tile", block, self._new.vector(repeats, axis, self._new.unfrozen_size(), "tile"))
        scalar = self._new.constant(np.zeros(()), "state", self._editing.facts[block].element)
        size = self._new.unfrozen_size()
        if shape[axis] != repeats[axis]:
            size = self._new.emit("Multiply", size, np.array([shape[axis] // repeats[axis]], np.int64))
        return self._new.emit("Broadcast", scalar, self._new.vector(shape, axis, size, "broadcast"))

    def _lengths(self, node: Node, index: int) -> None:
        """Give a recurrent sequence lengths that follow from its input, where all of them were the whole length."""
        data, lengths = node.inputs[0], node.inputs[index]
        if data is None or lengths is None or not self._is_constant(lengths):
            return
        if (self._evaluation.array(lengths) == self._size(data, 1)).all():
            batch, time = self._new.size_of(data, 0), self._new.size_of(data, 1)
            element = self._editing.facts[lengths].element
            whole = self._new.emit("Broadcast", time, batch)
            self._replace(node, index, self._new.emit("Convert", whole, destination_type=element))

    def _gather(self, node: Node, data: Value, axis: int) -> None:
        """Let constant indices into an axis of several rows, such as flattened masks, follow the number of rows."""
        indices, along, extent = node.inputs[1], self._elements(node.inputs[2]), self._extents.get(data, _Extent())
        size, rank = self._size(data, axis), len(self._editing.facts[data].shape or ())
        if extent.outer != 1 or indices is None or size == 1 or not along or along[0] not in (axis, axis - rank):
            return
        addends = list(self._addends(node, 1))
        if any(value.node in self._new.made for _, _, value in addends):
            # Repaired for another layer, or before.
            return
        for reader, index, constant in addends:
            made = self._rows(constant, size // extent.inner, extent.inner)
            if made is not None:
                self._replace(reader, index, made)
                # Layers between the sum and this one were inferred with the old rows.
                self._is_late = reader is not node
                return

    def _addends(self, node: Node, index: int) -> Iterator[tuple[Node, int, Value]]:
        """Constants, and layers of a repair, whose sum an input is: each with the input of a layer that reads it.

        They have the rank of the sum.
        """
        value = node.inputs[index]
        if value is None:
            return
        if self._is_constant(value) or value.node in self._new.made:
            yield node, index, value
        elif value.node.type in ("Add", "Convert"):
            rank = self._editing.facts[value].rank
            for each, _ in enumerate(value.node.inputs):
                found = self._addends(value.node, each)
                yield from (one for one in found if self._editing.facts[one[2]].rank == rank)

    def _rows(self, indices: Value, count: int, inner: int) -> Value | None:
        """Indices as they are, for any number of rows of ``inner`` elements; None if they are others in each row."""
        rows, element = self._evaluation.array(indices).astype(np.int64), self._editing.facts[indices].element
        for place in (place for place, size in enumerate(rows.shape) if size == count):
            column = [-1 if i == place else 1 for i in range(rows.ndim)]
            first = rows.take([0], place)
            if np.array_equal(first + np.arange(count).reshape(column) * inner, rows) and (first < inner).all():
                made = self._new.emit("Add", self._new.starts(column, inner), first)
                return self._new.emit("Convert", made, destination_type=element)
        return None

    def _scatter(self, node: Node, data: Value, axis: int) -> None:
        """Let constant indices of elements of flattened rows, of which each row has as many, follow the rows."""
        indices, updates, extent = node.inputs[1], node.inputs[2], self._extents.get(data, _Extent())
        if extent.outer != 1 or indices is None or updates is None or not self._is_constant(indices):
            return
        array, element = self._evaluation.array(indices).astype(np.int64), self._editing.facts[indices].element
        count, each = self._size(data, axis) // extent.inner, self._extents.get(updates, _Extent()).inner
        if array.shape != (count * each, 1) or self._moved(updates) != 0:
            return
        rows = array.reshape(count, each)
        if (rows == rows[:1] + np.arange(count)[:, None] * extent.inner).all() and (rows[0] < extent.inner).all():
            made = self._new.emit("Add", self._new.starts([-1, 1], extent.inner), rows[:1])
            flat = self._new.emit("Reshape", made, np.array([-1, 1], np.int64), special_zero=False)
            self._replace(node, 1, self._new.emit("Convert", flat, destination_type=element))

    def _is_constant(self, value: Value) -> bool:
        return value.node.constant is not None or value.node in self._computed

    def _elements(self, pattern: Value | None) -> list[int | None] | None:
        """The elements of a pattern: of a constant, or of constants and others that a Concat joins, which are None."""
        if pattern is None:
            return None
        if self._is_constant(pattern):
            found = self._editing.facts[pattern].ints("the pattern")
            return None if found is None else list(found)
        shape = self._editing.facts[pattern].shape
        if not is_static(shape) or len(shape) != 1:
            return None
        if pattern.node.type != "Concat":
            return [None] * shape[0]
        parts = [self._elements(part) for part in pattern.node.inputs]
        return None if None in parts else [element for part in parts for element in part or ()]

    def _pattern(self, pattern: Value, place: int, size: int | Value) -> Value:
        """A pattern with another element at one place, where it is constant."""
        if self._is_constant(pattern):
            elements = list(self._editing.facts[pattern].ints("the pattern") or ())
            return self._new.vector(elements, place, size, pattern.node.name)
        begin, parts = 0, []
        for part in pattern.node.inputs:
            assert part is not None
            length = len(self._elements(part) or ())
            parts.append(self._pattern(part, place - begin, size) if begin <= place < begin + length else part)
            begin += length
        return self._new.emit("Concat", *parts, axis=0)

    def _replace(self, node: Node, index: int, value: Value) -> None:
        node.ports[index].source = value
        self.count += 1


_INDEXING = {"Gather": _Repair._gather, "ScatterNDUpdate": _Repair._scatter}


def _destination(
    source: tuple[int, ...], axis: int, extent: _Extent, target: tuple[int, ...], pattern: Sequence[int | None]
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
