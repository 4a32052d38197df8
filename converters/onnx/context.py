"""The context of a translator: the ONNX node, the builder of layers, and the facts of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
import onnx

from converters.onnx.graphs import NotKnownError
from converters.onnx.tensors import OnnxValue, SettledStates
from irexec.analysis.builder import Builder
from irexec.analysis.portability.difference import MOVES, NOT_MOVED
from irexec.dtypes.elements import F32, U8, Element
from irexec.errors import ConversionError, OpError
from irexec.ir.constants import Constant
from irexec.ir.dims import Size, is_static
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

Vector = Annotated[Value, Rank(1)]
Matrix = Annotated[Value, Rank(2)]
Tensor3 = Annotated[Value, Rank(3)]
Tensor4 = Annotated[Value, Rank(4)]
T = TypeVar("T", bound=Size)
Capture = Callable[[Value], Value]
_LISTS = {"Unsqueeze": 1, "Tile": 1, "Pad": 1, "Roll": 1, "Broadcast": 1}
"""The input with the axes, repeats, pads, shifts or sizes of operations that do nothing where it is empty."""
Subgraphs = Callable[["TranslationContext", onnx.GraphProto, Sequence[OnnxValue]], list[OnnxValue]]


class _Sizes(tuple[T, ...]):
    """A shape that raises OpError for an axis that does not exist: malformed models have too few axes."""

    def __new__(cls, sizes: Iterable[T], what: str) -> _Sizes[T]:
        self = super().__new__(cls, sizes)
        self.what = what
        return self

    what: str

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise OpError(f"{self.what} has rank {len(self)}, axis {index} does not exist")
        return super().__getitem__(index)


def required(value: Value | None, message: str) -> Value:
    """The value; raises OpError with ``message`` if it is None."""
    if value is None:
        raise OpError(message)
    return value


class TranslationContext:
    """The builder as the translator of one ONNX node uses it.

    Attributes:
        builder: receives the layers.
        node: the ONNX node.
        opset: the opset of the node's domain.
        capture: maps a value of the node's graph to its counterpart in the builder; the two differ in a body.
        warn: called with the text of each warning.
        outputs: whether each output of the node has a name.
        settled: settled states of the loops in the same body.
    """

    def __init__(
        self, builder: Builder, node: onnx.NodeProto, opset: int, subgraphs: Subgraphs, warn: Callable[[str], object],
        settled: SettledStates, capture: Capture | None = None,
    ) -> None:  # fmt: skip
        self.builder, self.node, self.opset, self._subgraphs, self.warn = builder, node, opset, subgraphs, warn
        self.settled = settled
        self.capture: Capture = capture or (lambda value: value)
        self.outputs = [bool(name) for name in node.output]
        self.name = node.name or next(filter(None, node.output), node.op_type)

    def needs_output(self, index: int) -> bool:
        """Whether the node has this output: an output with an empty name is not computed."""
        return index < len(self.outputs) and self.outputs[index]

    def emit(self, type: str, *inputs: Any, **attributes: Any) -> Any:
        """Add an IR operation, in its newest version unless ``version`` is given.

        Inputs are Values or lists of integers. The layer is named after the ONNX node; see Builder.emit. With an empty
        list of axes or the like, some operations do nothing, and OpenVINO does not run them: the data take their place.
        Data of a few bits that OpenVINO does not move are moved in a wider type.
        """
        kind = self.fact(inputs[0]).element if type in MOVES and isinstance(inputs[0], Value) else None
        if kind is not None and kind.name in NOT_MOVED:
            wide = F32 if kind.is_float else U8
            given = [self.convert(x, wide) if isinstance(x, Value) and self.element(x) is kind else x for x in inputs]
            moved = self.emit(type, *given, **attributes)
            return (
                tuple(self.convert(x, kind) for x in moved) if isinstance(moved, tuple) else self.convert(moved, kind)
            )
        if type in _LISTS and self._is_empty(inputs, _LISTS[type]):
            return inputs[0]
        if type.startswith("Reduce") and self._is_empty(inputs, 1):
            attributes["keep_dims"] = True
        return self.builder.emit(type, *inputs, name=f"{self.name}/{type}", **attributes)

    def _is_empty(self, inputs: Sequence[Any], index: int) -> bool:
        """True if this input is a list without an element."""
        one = inputs[index] if index < len(inputs) else None
        count = self.fact(one).shape if isinstance(one, Value) else (len(one),) if isinstance(one, list) else None
        return count == (0,) and isinstance(inputs[0], Value)

    def in_body(self, builder: Builder, capture: Capture) -> TranslationContext:
        """The context of the same node inside a body that ``builder`` builds."""
        return TranslationContext(builder, self.node, self.opset, self._subgraphs, self.warn, self.settled, capture)

    def subgraph(self, graph: onnx.GraphProto, inputs: Sequence[Value] = ()) -> list[Value]:
        """The outputs of a subgraph of the node, translated into the builder with ``inputs`` as its inputs.

        Raises:
            ConversionError: an output is not a tensor.
        """
        outputs = self.subgraph_values(graph, inputs)
        values = [output for output in outputs if isinstance(output, Value)]
        if len(values) < len(outputs):
            raise ConversionError(
                f"an output of subgraph {graph.name!r} is not a tensor, and IR has tensors only", unsupported=True
            )
        return values

    def subgraph_values(self, graph: onnx.GraphProto, inputs: Sequence[OnnxValue] = ()) -> list[OnnxValue]:
        """The outputs of a subgraph whose inputs and outputs need not be tensors."""
        return self._subgraphs(self, graph, inputs)

    def constant(self, value: Any, like: Value | Element | None = None) -> Value:
        """A constant of the element type of ``like``; unless given, ints are i64 and floats f32."""
        kind = self.element(like) if isinstance(like, Value) else like
        return self.builder.constant(value, kind, name=f"{self.name}/Constant")

    def fact(self, value: Value) -> Fact:
        """The fact of a value; raises OpError for a sequence or an optional."""
        if not isinstance(value, Value):
            raise OpError("an input is a sequence or an optional, expected a tensor")
        return self.builder.fact(value)

    def element(self, value: Value) -> Element:
        """The element type of a value; raises OpError if it is not known."""
        found = self.fact(value).element
        if found is None:
            raise OpError("the element type of an input is not known")
        return found

    def rank(self, value: Value, what: str = "an input") -> int:
        """The rank of a value; raises OpError if it is not known."""
        return len(self.sizes(value, what))

    def sizes(self, value: Value, what: str = "an input") -> tuple[Size, ...]:
        """The shape of a value; raises OpError if its rank is not known, and for an index of an axis out of range."""
        return _Sizes(self.fact(value).require_shape(what), what)

    def static(self, value: Value, what: str = "an input") -> tuple[int, ...]:
        """The shape of a value; raises OpError if a size is not known."""
        found = self.shape_if_known(value)
        if found is None:
            raise NotKnownError(f"the shape of {what}, {self.fact(value)}, must be known when the model is converted")
        return _Sizes(found, what)

    def static_size(self, value: Value, axis: int, what: str = "an input") -> int:
        """The size of one axis; raises OpError if it is not known."""
        size = self.sizes(value, what)[axis]
        if not isinstance(size, int):
            text = f"axis {axis} of {what}, {self.fact(value)}, must be known when the model is converted"
            raise NotKnownError(text)
        return size

    def shape_if_known(self, value: Value) -> tuple[int, ...] | None:
        """The shape of a value; None if a size is not known."""
        shape = self.fact(value).shape
        return shape if is_static(shape) else None

    def known(self, value: Value | None) -> np.ndarray | None:
        """The elements of a value, also of a large constant; None if they are not known during conversion."""
        if value is None:
            return None
        found = self.fact(value).known
        return found if found is not None else self.builder.constant_array(value)

    def array(self, value: Value | None, what: str) -> np.ndarray:
        """The elements of a value, also of a large constant; raises OpError if they are not known."""
        found = self.known(value)
        if found is None:
            raise NotKnownError(f"{what} must be known when the model is converted")
        return found

    def ints_if_known(self, value: Value | None) -> tuple[int, ...] | None:
        """The elements of an integer tensor, flattened; None if they are not known."""
        found = self.known(value)
        return None if found is None else tuple(int(v) for v in found.ravel().tolist())

    def ints(self, value: Value | None, what: str) -> tuple[int, ...]:
        """The elements of an integer tensor, flattened; raises OpError if they are not known."""
        return tuple(int(v) for v in self.array(value, what).ravel().tolist())

    def integer(self, value: Value | None, what: str) -> int:
        """The only element of an integer tensor; raises OpError if it is not known, or if there is not one element."""
        found = self.ints(value, what)
        if len(found) != 1:
            raise OpError(f"{what} has {len(found)} elements, expected 1")
        return found[0]

    def axis(self, axis: int, value: Value | int) -> int:
        """A non-negative axis of a value, or of a rank; raises OpError if it is out of range."""
        rank = value if isinstance(value, int) else self.rank(value)
        if not -rank <= axis < rank:
            raise OpError(f"axis {axis} is out of range for rank {rank}")
        return axis % rank

    def axis_if_known(self, axis: int, value: Value) -> int:
        """The axis as an attribute in IR: non-negative, or unchanged if the rank is not known."""
        return axis if self.fact(value).shape is None else self.axis(axis, value)

    def convert(self, value: Value, to: Element) -> Value:
        """The value converted to another element type."""
        return value if self.element(value) is to else self.emit("Convert", value, destination_type=to)

    def gather_as(self, value: Value, indices: Value, axis: int, to: Element) -> Value:
        """Slices along an axis, converted to another element type: before, if OpenVINO does not move the data."""
        if self.element(value).name in NOT_MOVED:
            value = self.convert(value, to)
        return self.convert(self.gather(value, indices, axis), to)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The value reshaped; one size may be -1. A constant stays a constant with the same bytes."""
        if self.shape_if_known(value) == tuple(shape):
            return value
        constant = value.node.constant
        if constant is None or -1 in shape:
            return self.emit("Reshape", value, list(shape), special_zero=False)
        if constant.count != int(np.prod(shape, dtype=object)):
            raise OpError(f"a constant of shape {list(constant.shape)} cannot become {list(shape)}")
        return self.builder.raw_constant(
            Constant(constant.element, tuple(shape), constant.fetch, constant.size), value.node.name
        )

    def unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """The value with axes of size 1 inserted at these indices of the result."""
        if not axes:
            return value
        shape = self.shape_if_known(value)
        if value.node.constant is None or shape is None:
            return self.emit("Unsqueeze", value, list(axes))
        sizes = list(shape)
        for axis in sorted(axis % (len(shape) + len(axes)) for axis in axes):
            sizes.insert(axis, 1)
        return self.reshape(value, sizes)

    def stacked(self, parts: Iterable[Value], axis: int) -> Value:
        """Values of one shape along a new axis."""
        return self.emit("Concat", *(self.unsqueeze(part, [axis]) for part in parts), axis=axis)

    def unstacked(self, value: Value, axis: int, count: int) -> list[Value]:
        """The slices along an axis of size ``count``, without the axis."""
        return [self.emit("Squeeze", part, [axis]) for part in self.split(value, axis, count)]

    def gather(self, value: Value, indices: Any, axis: int) -> Value:
        """The elements at indices of an axis: a Value, or a list of integers."""
        return self.emit("Gather", value, indices, self.constant(axis))

    def slice(self, value: Value, begin: int | Value, end: int | Value | None, axis: int) -> Value:
        """The elements of an axis from ``begin`` to ``end``, None for its end; Values are vectors of one element."""
        stop = end if isinstance(end, Value) else [1 << 31 if end is None else end]
        return self.emit("Slice", value, begin if isinstance(begin, Value) else [begin], stop, [1], [axis])

    def split(self, value: Value, axis: int, count: int) -> list[Value]:
        """The value as ``count`` parts of one size along an axis."""
        return list(self.emit("Split", value, self.constant(axis), num_splits=count))

    def added(self, value: Value, *others: Value | None) -> Value:
        """The sum of a value and others, None of which count 0; each broadcasts to the shape of the value."""
        for other in others:
            value = value if other is None else self.shaped_as(self.emit("Add", value, other), value)
        return value

    def shaped_as(self, value: Value, data: Value) -> Value:
        """The value computed of data and parameters; raises OpError if it is known to have another shape than the data.

        Parameters of ONNX broadcast in one direction: a vector does not enlarge an axis of size 1.
        """
        found, expected = self.fact(value).shape, self.fact(data).shape
        if found is not None and expected is not None and (len(found) != len(expected) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(found, expected, strict=True)
        )):  # fmt: skip
            raise OpError(f"a parameter does not broadcast to the data: {self.fact(data)} becomes {self.fact(value)}")
        return value

    def reshape_as(self, value: Value, like: Value) -> Value:
        """The value in the shape of another one, which is read at run time."""
        return self.emit("Reshape", value, self.shape_of(like), special_zero=False)

    def scalar(self, value: Value) -> Value:
        """A tensor of one element as a scalar."""
        return value if self.fact(value).rank == 0 else self.reshape(value, ())

    def shape_of(self, value: Value) -> Value:
        """The shape as an i64 tensor; a layer even if the shape is known, so that the IR can be reshaped."""
        return self.emit("ShapeOf", value, output_type="i64")

    def size(self, value: Value, axis: int) -> Value:
        """The size of one axis as an i64 scalar."""
        return self.gather(self.shape_of(value), self.constant(axis), 0)

    def full(self, fill: Value, shape: Value) -> Value:
        """A tensor of a shape whose elements are all ``fill``."""
        return self.emit("Broadcast", fill, shape, mode="numpy")

    def along_channels(self, vector: Value, rank: int) -> Value:
        """A vector with one value per channel, reshaped to [1, C, 1, ...] of a rank."""
        return self.unsqueeze(vector, [0, *range(2, rank)]) if rank > 1 else vector

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its axes in another order."""
        return value if list(order) == list(range(len(order))) else self.emit("Transpose", value, list(order))

    def channels_first(self, value: Value) -> Value:
        """(N, spatial..., C) transposed to (N, C, spatial...)."""
        rank = self.rank(value, "the data")
        return self.transpose(value, [0, rank - 1, *range(1, rank - 1)])

    def channels_last(self, value: Value) -> Value:
        """(N, C, spatial...) transposed to (N, spatial..., C)."""
        return self.transpose(value, [0, *range(2, self.rank(value)), 1])

    def as_float(self, value: Value) -> Value:
        """The value if its type is a float type, else converted to f32."""
        return value if self.element(value).is_float else self.convert(value, F32)
