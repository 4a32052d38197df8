"""Recognise TensorIterators around one recurrent cell as the equivalent sequence.

Older converters write an LSTM as a TensorIterator around an LSTMCell: each iteration squeezes a slice of the input, the
states are fed back, the hidden state is unsqueezed and concatenated. LSTMSequence computes the same at a tenth of the
cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, LoweredBody, Operation
from irexec.compile.rewriting import Rewriting, create
from irexec.compile.select import is_static
from irexec.dtypes.elements import F32, F64, I64
from irexec.schema.bodies import Slice, Wiring

if TYPE_CHECKING:
    from irexec.schema.recurrent import Direction, SequenceAttributes

_STATES = {"LSTMCell": 2, "GRUCell": 1, "RNNCell": 1}
_RESHAPES = ("Reshape", "Squeeze", "Unsqueeze")

# (start, end, stride, part_size) of a slice that goes over a whole axis in steps of 1.
_DIRECTIONS: dict[tuple[int, int, int, int], Direction] = {(0, -1, 1, 1): "forward", (-1, 0, -1, 1): "reverse"}


def recognise_sequences(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each TensorIterator whose body is one cell and changes of shape."""
    for operation in graph:
        if operation.type != "TensorIterator":
            continue
        found = _match(operation)
        if isinstance(found, str):
            rewriting.refused(operation, found)
        else:
            _replace(graph, operation, found, rewriting)
            rewriting.applied()


@dataclass(frozen=True)
class _Match:
    """How a sequence is wired.

    Attributes:
        cell: the cell in the body.
        x, states: inputs of the TensorIterator.
        axis: the time axis of x.
        results: for each output which result of the sequence it is; 0: the hidden states of all steps.
    """

    cell: Operation
    x: CompileValue
    states: tuple[CompileValue, ...]
    axis: int
    attributes: SequenceAttributes
    results: tuple[int, ...]


def _match(operation: Operation) -> _Match | str:
    """How the TensorIterator is wired, or why it is not a sequence."""
    body = next(iter(operation.bodies.values()))
    cells = [inner for inner in body.graph if inner.type in _STATES]
    if len(cells) != 1 or any(inner.type not in _RESHAPES for inner in body.graph if inner is not cells[0]):
        return "its body is not one recurrent cell"
    shapes = [value.fact.shape or () for value in (*operation.inputs, *operation.outputs)]
    if not is_static(operation) or any(0 in shape for shape in shapes):
        return "its shapes are not known, or it has no elements"
    return _Wired(operation, body, cells[0]).match()


class _Wired:
    """A body of one cell, followed from the inputs to the outputs of its TensorIterator."""

    def __init__(self, operation: Operation, body: LoweredBody, cell: Operation) -> None:
        self.operation, self.body, self.cell = operation, body, cell
        self.wiring = Wiring.of(body.node, body.body)
        self.states = _STATES[cell.type]

    def match(self) -> _Match | str:
        weights = self.cell.inputs[1 + self.states :]
        if len(weights) != 3 or any(value.constant is None for value in weights):
            return "its weights are not constants"
        index, cut = self._source(self._before_reshapes(self.cell.inputs[0]))
        direction = None if cut is None else _direction(cut)
        states = [self._state(k) for k in range(self.states)]
        if cut is None or direction is None or None in states:
            return "its input is not sliced step by step, or its states are not fed back"
        x = self.operation.inputs[index]
        results = [self._result(i, cut, x.fact.shape or ()) for i in range(len(self.operation.outputs))]
        from irexec.schema.recurrent import sequence_of

        attributes = sequence_of(self.cell.attributes["attributes"], direction)
        if None in results or attributes is None or x.fact.element not in (F32, F64) or x.fact.rank != 3:
            return "its outputs are not those of a sequence"
        inputs = self.operation.inputs
        return _Match(self.cell, x, tuple(inputs[i] for i in states if i is not None), cut.axis, attributes,
                      tuple(k for k in results if k is not None))  # fmt: skip

    def _before_reshapes(self, value: CompileValue) -> CompileValue:
        while value.producer is not None and value.producer is not self.cell:
            value = value.producer.inputs[0]
        return value

    def _source(self, value: CompileValue) -> tuple[int, Slice | None]:
        """The input of the TensorIterator that a body's Parameter receives, and its slicing."""
        if value not in self.body.graph.inputs:
            return 0, None
        return self.wiring.sources[self.body.graph.inputs.index(value)] or (0, None)

    def _state(self, k: int) -> int | None:
        """The input that a state starts from, if the cell's own output is fed back to it."""
        value = self.cell.inputs[1 + k]
        if value not in self.body.graph.inputs:
            return None
        index = self.body.graph.inputs.index(value)
        source, back = self.wiring.sources[index], self.wiring.backs[index]
        if source is None or source[1] is not None or back is None:
            return None
        return source[0] if self._before_reshapes(self.body.graph.targets[back]) is self.cell.outputs[k] else None

    def _result(self, index: int, x: Slice, sizes: Sequence[object]) -> int | None:
        """The index of the result of the sequence that an output is, for the sizes of the input that ``x`` cuts."""
        result, cut = self.wiring.outputs[index]
        value = self._before_reshapes(self.body.graph.targets[result])
        if value not in self.cell.outputs:
            return None
        k = self.cell.outputs.index(value)
        if cut is None:
            return k + 1
        shape, size = self.operation.outputs[index].fact.shape, self.cell.inputs[2 + self.states].fact.shape
        whole = (*sizes[:2], (size or (0, 0))[1])
        return 0 if k == 0 and cut.axis == x.axis and _direction(cut) == _direction(x) and shape == whole else None


def _direction(cut: Slice) -> Direction | None:
    return _DIRECTIONS.get((cut.start, cut.end, cut.stride, cut.part)) if cut.axis in (0, 1) else None


def _replace(graph: CompileGraph, operation: Operation, match: _Match, rewriting: Rewriting) -> None:
    """Put the sequence in the TensorIterator's place."""

    def emit(type: str, version: str, *inputs: CompileValue, **attributes: Any) -> Operation:
        return create(graph, type, version, inputs, attributes, [operation])

    def indexes(*values: int) -> CompileValue:
        return rewriting.literal(np.array(values, np.int64), I64)

    x = emit("Transpose", "opset1", match.x, indexes(1, 0, 2)).output if match.axis == 0 else match.x
    batch, steps, _ = x.fact.shape or ()
    states = [emit("Unsqueeze", "opset1", state, indexes(1)).output for state in match.states]
    lengths = rewriting.literal(np.full(batch, steps, np.int64), I64)
    weights = [_with_direction(value, rewriting) for value in match.cell.inputs[1 + len(states) :]]
    flat = vars(match.attributes)
    sequence = emit(match.cell.type.replace("Cell", "Sequence"), "opset5", x, *states, lengths, *weights, **flat)
    for output, k in zip(operation.outputs, match.results, strict=True):
        result = sequence.outputs[k]
        if k == 0 and match.axis == 0:
            result = emit("Transpose", "opset1", result, indexes(2, 1, 0, 3)).output
        shape = indexes(*output.fact.static_shape)
        graph.replace_all_uses_with(output, emit("Reshape", "opset1", result, shape, special_zero=False).output)
    graph.remove(operation)


def _with_direction(value: CompileValue, rewriting: Rewriting) -> CompileValue:
    """Weights with the axis of directions in front."""
    if value.fact.element is None:
        raise AssertionError("constants have a type")
    return rewriting.derived(
        "direction", [value], value.fact.element, (1, *value.fact.static_shape), lambda array: array[None]
    )
