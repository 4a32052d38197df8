"""A layer as the conditions of differences ask about it: typed attributes, facts and values of the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.shape_inference import UNKNOWN
from irexec.ir.constants import constant_value
from irexec.ir.dims import Size, high, is_static, low
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import in_front, upstream
from irexec.schema.opdef import OpDef

_MOVES = {
    "Broadcast", "Concat", "Convert", "Gather", "Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Tile",
    "Transpose", "Unsqueeze", "VariadicSplit",
}  # fmt: skip
_KEEPS_NAN = _MOVES | {"Abs", "Add", "Multiply", "Negative", "Subtract"}
_POSITIVE = {"Exp", "Sigmoid", "SoftPlus", "Softmax", "SoftMax"}
_NOT_NEGATIVE = {"Abs", "Relu", "ReLU", "ReduceL1", "ReduceL2", "ReduceSumSquare"}
_SMALLEST = 1e-45
_MOVING = frozenset(
    {"Broadcast", "Tile", "Gather", "Convert", "Concat", "Reshape", "Squeeze", "Unsqueeze", "Slice", "StridedSlice"}
)


def may_have_nan(value: Value, facts: Mapping[Value, Fact]) -> bool:
    """Whether a value may have NaN though the inputs of the model have none.

    False for a value that comes from layers that neither move elements nor add, subtract or multiply them.
    """
    waiting, seen = [value], set[Value]()
    while waiting:
        one = waiting.pop()
        element = facts[one].element if one in facts else None
        if one in seen or element is None or not element.is_float:
            continue
        seen.add(one)
        if _makes_nan(one):
            return True
        if one.node.type in _KEEPS_NAN:
            waiting += [source for source in one.node.inputs if source is not None]
    return False


def _makes_nan(value: Value) -> bool:
    """Whether a layer has NaN, or gives it for finite operands, as far as their bounds are known."""
    node = value.node
    array = _constant(value)
    if array is not None:
        return bool(np.isnan(array).any())
    first, second = (*node.inputs, None, None)[:2]
    match node.type:
        case "Divide" | "Mod" | "FloorMod":
            divisor = _constant(second)
            return not (_is_bounded(second, _SMALLEST) if divisor is None else divisor.all())
        case "Sqrt" | "Log":
            return not _is_bounded(first, 0)
        case "Power":
            exponent = _constant(second)
            is_whole = exponent is not None and not (exponent % 1).any()
            return not is_whole and not _is_bounded(first, 0)
    return node.type in ("Acos", "Acosh", "Asin", "Atanh")


def _is_bounded(value: Value | None, minimum: float) -> bool:
    """Whether each element is known to be ``minimum`` or larger, for a minimum near 0.

    The sum with a positive constant counts as positive: the constant is the epsilon of a normalisation.
    """
    while value is not None:
        node, array = value.node, _constant(value)
        if array is not None:
            return bool((array >= minimum).all())
        if node.type == "Clamp":
            return float(node.attributes.get("min", "nan")) >= minimum
        is_square = node.type == "Multiply" and node.inputs[0] is node.inputs[1]
        if is_square or node.type in _NOT_NEGATIVE:
            return minimum <= 0
        computed = [one for one in node.inputs if not _is_positive_constant(one)]
        if node.type in _POSITIVE or (node.type in ("Add", "Maximum") and len(computed) < len(node.inputs)):
            return True
        if node.type in _MOVES or node.type.startswith("Reduce") or node.type == "Sqrt":
            value = node.inputs[0]
        elif node.type in ("Multiply", "Divide") and len(computed) == 1:
            value = computed[0]
        else:
            return False
    return False


def _is_positive_constant(value: Value | None) -> bool:
    array = _constant(value)
    return array is not None and bool((array > 0).all())


def _constant(value: Value | None) -> np.ndarray | None:
    """The elements of a constant of numbers; None of any other value."""
    constant = None if value is None else value.node.constant
    return None if constant is None or constant.element.kind == "string" else constant_value(constant)


@dataclass(frozen=True)
class KnownLayer:
    """A layer of any operation, and what is known of the values in its model.

    Attributes:
        node: as written.
        facts: the facts of all values.
        readers: the layers that read each value.
    """

    node: Node
    facts: Mapping[Value, Fact]
    readers: Mapping[Value, Sequence[Node]]

    def says(self, name: str) -> str | None:
        """The text of an attribute, None where it is absent."""
        return self.node.attributes.get(name)

    def source(self, index: int) -> Value | None:
        """The value that an input reads; None where it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def input(self, index: int) -> Fact:
        """The fact of an input; nothing is known of an absent one."""
        value = self.source(index)
        return UNKNOWN if value is None else self.facts.get(value, UNKNOWN)

    def has(self, index: int) -> bool:
        """Whether an input is present."""
        return self.source(index) is not None

    def element(self, index: int = 0) -> str:
        """The name of an input's element type; empty where it is not known."""
        element = self.input(index).element
        return "" if element is None else element.name

    def is_integer(self) -> bool:
        """Whether the first input is of an integer type."""
        element = self.input(0).element
        return element is not None and element.is_integer

    def is_of_bytes(self) -> bool:
        """Whether the first input is of i8 or u8."""
        return self.element() in ("i8", "u8")

    def is_signed(self, index: int = 0) -> bool:
        return self.element(index).startswith("i")

    def shape(self, index: int = 0) -> tuple[int, ...] | None:
        """The static shape of an input; None where it is not known."""
        shape = self.input(index).shape
        return shape if is_static(shape) else None

    def output(self, index: int) -> Fact:
        """The fact of an output; nothing is known of one that the layer does not have."""
        return self.facts.get(self.node.outputs[index], UNKNOWN) if index < len(self.node.outputs) else UNKNOWN

    def result(self) -> tuple[int, ...] | None:
        """The static shape of the first output; None where it is not known."""
        shape = self.output(0).shape
        return shape if is_static(shape) else None

    def sizes(self, index: int = 0) -> tuple[Size, ...] | None:
        """The shape of an input, in which sizes may be open; None where the rank is not known."""
        return self.input(index).shape

    def value(self, index: int) -> np.ndarray | None:
        """The value of an input, if every element of it is known."""
        return self.input(index).known

    def ints(self, index: int) -> list[int] | None:
        """The values of an integer input, None where they are not known."""
        value = self.value(index)
        return None if value is None or value.dtype.kind not in "iu" else value.ravel().tolist()

    def is_computed(self, index: int) -> bool:
        """Whether an input is present and no Constant."""
        value = self.source(index)
        return value is not None and value.node.constant is None

    def constant(self, index: int) -> list[float] | None:
        """The values of an input that is a Constant; None where it is computed or absent."""
        value = self.source(index)
        constant = None if value is None else value.node.constant
        return None if constant is None else constant_value(constant).astype(float).ravel().tolist()

    def bounds(self, index: int) -> tuple[float, float]:
        """The minimum and maximum of an input of one element, infinite where they are not known."""
        value = self.input(index).value
        if value is None or value.size != 1:
            return -math.inf, math.inf
        top = high(value.item())
        return low(value.item()), math.inf if top is None else top

    def may_be_negative(self, index: int) -> bool:
        """Whether an input of a signed type may have a negative element; sizes of shapes have none, known or not."""
        value = self.input(index).value
        return self.is_signed(index) and (value is None or any(low(element) < 0 for element in value.ravel().tolist()))

    def is_used(self, output: int) -> bool:
        """Whether something reads an output."""
        return output < len(self.node.outputs) and self.node.outputs[output] in self.readers


@dataclass(frozen=True)
class ExaminedLayer(KnownLayer):
    """A layer whose operation is known.

    Attributes:
        definition: the version of the operation that it is.
        is_of_the_model: whether it is not in a body.
    """

    definition: OpDef
    is_of_the_model: bool

    def __getitem__(self, name: str) -> Any:
        """The typed value of an attribute by the kernel's name for it; None where it is missing or wrong."""
        values = typed_attributes(self.node, self.definition).values
        return self.definition.ungrouped(values).get(name)

    @property
    def attributes(self) -> Any:
        """The attributes of an operation as its dataclass; None if an attribute is missing or invalid."""
        values = typed_attributes(self.node, self.definition).values
        return next((values.get(name) for name in self.definition.groups), None)

    def is_constant(self, index: int) -> bool:
        """Whether an input is computed from constants alone."""
        return not any(map(_varies, self._ancestors(index)))

    def may_have_nan(self, index: int) -> bool:
        """Whether an input may have NaN though the inputs of the model have none."""
        value = self.source(index)
        return value is not None and may_have_nan(value, self.facts)

    def is_made_of_sizes(self, index: int) -> bool:
        """True if an input is a repeated size of a tensor: a ShapeOf followed by operations that only move values."""
        value = in_front(self.source(index), _MOVING)
        return value is not None and value.node.type == "ShapeOf"

    def is_gathered_from_constants(self, index: int) -> bool:
        """Whether an input is computed from constants alone, by way of a GatherElements."""
        return self.is_constant(index) and any(node.type == "GatherElements" for node in self._ancestors(index))

    def is_computed_from_sizes(self, index: int) -> bool:
        """Whether an input is computed from constants and sizes of tensors alone."""
        return not any(map(_varies, self._ancestors(index, ends=("ShapeOf",))))

    def _ancestors(self, index: int, ends: tuple[str, ...] = ()) -> Iterator[Node]:
        """The ancestors of an input, up to layers with varying values or of a type in ``ends``."""
        value = self.node.inputs[index]
        last = [] if value is None else [value.node]
        return upstream(last, lambda node: () if _varies(node) or node.type in ends else node.inputs)


def _varies(node: Node) -> bool:
    """Whether the values of a layer may differ from run to run for other reasons than its inputs."""
    return node.type in ("Parameter", "ReadValue") or bool(node.bodies)
