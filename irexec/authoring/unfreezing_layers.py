"""Layers that return the size of an unfrozen axis, and what depends on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.shape_inference import ShapeInference
from irexec.authoring.editing import Editing
from irexec.dtypes.elements import Element
from irexec.ir.graph import Node, Value


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
