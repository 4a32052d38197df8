"""Layers that return the size of an unfrozen axis, and axes of the same size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.shape_inference import ShapeInference
from irexec.authoring.editing import Editing
from irexec.authoring.state import Facts
from irexec.dtypes.elements import Element
from irexec.errors import UnsupportedError
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Node, Value
from irexec.schema.registry import resolve


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
