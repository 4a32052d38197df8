"""What a translation works with: the builder, what is known of values, and the node it translates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from converters.onnx.held import Held
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32, Element
from irexec.errors import ConversionError, OpError
from irexec.ir.constants import Constant
from irexec.ir.dims import Size
from irexec.ir.facts import Fact
from irexec.ir.graph import Value

Capture = Callable[[Value], Value]
Subgraphs = Callable[["Context", onnx.GraphProto, Sequence[Held]], list[Held]]


class Context:
    """The builder from where one ONNX node stands.

    Attributes:
        builder: takes the layers.
        node: the ONNX node.
        opset: the version of its domain.
        capture: what a value of the graph in which the node stands is in the builder; it is another
            one in a body.
        outputs: whether each output of the node is wanted.
    """

    def __init__(self, builder: Builder, node: onnx.NodeProto, opset: int, subgraphs: Subgraphs, capture: Capture | None = None) -> None:
        self.builder, self.node, self.opset, self._subgraphs = builder, node, opset, subgraphs
        self.capture: Capture = capture or (lambda value: value)
        self.outputs = [bool(name) for name in node.output]
        self.name = node.name or next(filter(None, node.output), node.op_type)

    def wants(self, index: int) -> bool:
        """Whether an output of the node is used or named."""
        return index < len(self.outputs) and self.outputs[index]

    def emit(self, type: str, *inputs: Any, **attributes: Any) -> Any:
        """Add an IR operation, in its newest version unless ``version`` says another.

        Inputs are Values, or lists of integers. It is called after the ONNX node; see Builder.emit.
        """
        return self.builder.emit(type, *inputs, name=f"{self.name}/{type}", **attributes)

    def inside(self, builder: Builder, capture: Capture) -> Context:
        """The same node as seen from a body, which ``builder`` builds."""
        return Context(builder, self.node, self.opset, self._subgraphs, capture)

    def subgraph(self, graph: onnx.GraphProto, inputs: Sequence[Value] = ()) -> list[Value]:
        """The outputs of a subgraph of the node, translated into the builder; ``inputs`` stand for its own."""
        outputs = self._subgraphs(self, graph, inputs)
        values = [output for output in outputs if isinstance(output, Value)]
        if len(values) < len(outputs):
            raise ConversionError(f"an output of subgraph {graph.name!r} is no tensor, which is all that IR has", unsupported=True)
        return values

    def held_subgraph(self, graph: onnx.GraphProto, inputs: Sequence[Held] = ()) -> list[Held]:
        """The same, where inputs and outputs need not be tensors."""
        return self._subgraphs(self, graph, inputs)

    def constant(self, value: Any, like: Value | Element | None = None) -> Value:
        """A constant, of the element type of ``like`` if given; else ints are i64 and floats f32."""
        kind = self.element(like) if isinstance(like, Value) else like
        return self.builder.constant(value, kind, name=f"{self.name}/Constant")

    def fact(self, value: Value) -> Fact:
        """What is known of a value."""
        return self.builder.fact(value)

    def element(self, value: Value) -> Element:
        """The element type of a value, which must be known."""
        found = self.fact(value).element
        if found is None:
            raise OpError("the element type of an input is not known")
        return found

    def rank(self, value: Value, what: str = "an input") -> int:
        """The rank of a value, which must be known."""
        return len(self.sizes(value, what))

    def sizes(self, value: Value, what: str = "an input") -> tuple[Size, ...]:
        """The shape of a value, whose rank must be known."""
        return self.fact(value).require_shape(what)

    def static(self, value: Value, what: str = "an input") -> tuple[int, ...]:
        """The shape of a value, every size of which must be known."""
        found = self.shape_if_known(value)
        if found is None:
            raise OpError(f"the shape of {what}, {self.fact(value)}, must be known when the model is converted")
        return found

    def shape_if_known(self, value: Value) -> tuple[int, ...] | None:
        """The shape of a value, or None if a size of it is not known."""
        shape = self.fact(value).shape
        if shape is None:
            return None
        found = tuple(size for size in shape if isinstance(size, int))
        return found if len(found) == len(shape) else None

    def known(self, value: Value | None) -> np.ndarray | None:
        """The numbers of a value if they are known now, those of a large constant too."""
        if value is None:
            return None
        found = self.fact(value).known
        return found if found is not None else self.builder.constant_array(value)

    def ints_if_known(self, value: Value | None) -> tuple[int, ...] | None:
        """The numbers of an integer value, or None if they are not known."""
        found = self.known(value)
        return None if found is None else tuple(int(v) for v in found.ravel().tolist())

    def ints(self, value: Value | None, what: str) -> tuple[int, ...]:
        """The numbers of an integer value, which must be known."""
        found = self.ints_if_known(value)
        if found is None:
            raise OpError(f"{what} must be known when the model is converted")
        return found

    def axis(self, axis: int, value: Value | int) -> int:
        """An axis of a value (or of that many axes) counted from the front."""
        rank = value if isinstance(value, int) else self.rank(value)
        if not -rank <= axis < rank:
            raise OpError(f"axis {axis} is out of range for rank {rank}")
        return axis % rank

    def convert(self, value: Value, to: Element) -> Value:
        """The value as numbers of another element type."""
        return value if self.element(value) is to else self.emit("Convert", value, destination_type=to)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The value in a shape, of which one size may be -1; a constant stays one, its bytes untouched."""
        if self.shape_if_known(value) == tuple(shape):
            return value
        constant = value.node.constant
        if constant is None or -1 in shape:
            return self.emit("Reshape", value, list(shape), special_zero=False)
        if constant.count != int(np.prod(shape, dtype=object)):
            raise OpError(f"a constant of shape {list(constant.shape)} cannot become {list(shape)}")
        return self.builder.raw_constant(Constant(constant.element, tuple(shape), constant.fetch, constant.size), value.node.name)

    def unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """The value with axes of size 1 put in, counted in the result."""
        if not axes:
            return value
        shape = self.shape_if_known(value)
        if value.node.constant is None or shape is None:
            return self.emit("Unsqueeze", value, list(axes))
        sizes = list(shape)
        for axis in sorted(axis % (len(shape) + len(axes)) for axis in axes):
            sizes.insert(axis, 1)
        return self.reshape(value, sizes)

    def scalar(self, value: Value) -> Value:
        """A tensor of one element as a scalar."""
        return value if self.fact(value).rank == 0 else self.reshape(value, ())

    def shape_of(self, value: Value) -> Value:
        """The shape as an i64 tensor; computed even where it is known, so that the IR can be reshaped."""
        return self.emit("ShapeOf", value, output_type="i64")

    def size(self, value: Value, axis: int) -> Value:
        """The size of one axis as an i64 scalar."""
        return self.emit("Gather", self.shape_of(value), self.constant(axis), self.constant(0))

    def full(self, fill: Value, shape: Value) -> Value:
        """A tensor of a shape with one number everywhere."""
        return self.emit("Broadcast", fill, shape, mode="numpy")

    def along_channels(self, vector: Value, rank: int) -> Value:
        """A vector of one number per channel as [1, C, 1, ...] of a rank."""
        return self.unsqueeze(vector, [0, *range(2, rank)]) if rank > 1 else vector

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its axes in another order."""
        return value if list(order) == list(range(len(order))) else self.emit("Transpose", value, list(order))

    def channels_first(self, value: Value) -> Value:
        """(N, spatial..., C) as (N, C, spatial...)."""
        rank = self.rank(value, "the data")
        return self.transpose(value, [0, rank - 1, *range(1, rank - 1)])

    def channels_last(self, value: Value) -> Value:
        """(N, C, spatial...) as (N, spatial..., C)."""
        return self.transpose(value, [0, *range(2, self.rank(value)), 1])

    def in_float(self, value: Value) -> Value:
        """The value as it is if it is of a float type, else as f32."""
        return value if self.element(value).is_float else self.convert(value, F32)
