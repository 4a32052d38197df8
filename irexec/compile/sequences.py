"""TensorIterators around one recurrent cell, run as the equivalent sequence.

Older converters write an LSTM as a TensorIterator around an LSTMCell: each iteration squeezes a slice of the input, the
states are fed back, the hidden state is unsqueezed and concatenated. LSTMSequence computes the same at a tenth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.backend.registry import find_fast_kernel
from irexec.compile.steps import BodyPlan, Step
from irexec.dtypes.elements import F32, F64
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ops.control import Slice, Wiring
from irexec.schema.recurrent import Direction, sequence_of
from irexec.schema.registry import resolve

_STATES = {"LSTMCell": 2, "GRUCell": 1, "RNNCell": 1}
_SHAPES = ("Reshape", "Squeeze", "Unsqueeze")

# (start, end, stride, part_size) of a slice that goes over a whole axis in steps of 1.
_DIRECTIONS: dict[tuple[int, int, int, int], Direction] = {(0, -1, 1, 1): "forward", (-1, 0, -1, 1): "reverse"}


def as_sequence(planned: BodyPlan, inputs: Sequence[Fact], outputs: Sequence[Fact]) -> Callable[..., Any] | None:
    """A function that runs a TensorIterator whose body is one cell and changes of shape; None for any other."""
    steps = planned.plan.steps
    cells = [step for step in steps if step.node.type in _STATES]
    if planned.node.type != "TensorIterator" or len(cells) != 1 or any(s.node.type not in _SHAPES for s in steps if s is not cells[0]):
        return None
    if not all(fact.is_static and 0 not in (fact.shape or ()) for fact in (*inputs, *outputs)):
        return None
    return _Match(planned, cells[0], inputs, outputs).call()


class _Match:
    """Matches a body of one cell with a sequence."""

    def __init__(self, planned: BodyPlan, cell: Step, inputs: Sequence[Fact], outputs: Sequence[Fact]) -> None:
        self.cell, self.inputs, self.outputs, self.plan = cell, inputs, outputs, planned.plan
        self.wiring = Wiring.of(planned.node, planned.body)
        self.states = _STATES[cell.node.type]
        self.makers = {slot: step for step in planned.plan.steps for slot in step.outputs}
        constants = dict(planned.plan.constants)
        self.weights = [constants[slot] for slot in cell.inputs[1 + self.states :] if slot in constants]

    def call(self) -> Callable[..., Any] | None:
        if len(self.weights) != 3 or len(self.cell.inputs) != self.states + 4:
            return None
        x, initial = self._x(), [index for k in range(self.states) if (index := self._state(k)) is not None]
        if x is None or len(initial) != self.states:
            return None
        index, axis, direction = x
        sizes = self.inputs[index].shape or ()
        steps, whole = sizes[axis], (*sizes[:2], self.weights[1].shape[1])
        outputs = [output for i in range(len(self.outputs)) if (output := self._output(i, axis, direction, whole)) is not None]
        sequence = self._sequence(self.inputs[index], axis, direction)
        if len(outputs) != len(self.outputs) or sequence is None:
            return None

        def run(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            data = arrays[index].swapaxes(0, 1) if axis == 0 else arrays[index]
            lengths = np.full(len(data), steps)
            hidden, *finals = sequence(data, *(arrays[i][:, None] for i in initial), lengths, *weights)
            results = (hidden[:, 0].swapaxes(0, 1) if axis == 0 else hidden[:, 0], *finals)
            return tuple(results[k].reshape(shape) for k, shape in outputs)

        weights = [array[None] for array in self.weights]
        return run

    def _sequence(self, x: Fact, axis: int, direction: Direction) -> Callable[..., Any] | None:
        """The fast kernel of the sequence, for facts and attributes that follow from those of the cell."""
        definition = resolve(self.cell.node.type.replace("Cell", "Sequence"), "opset5")
        cell = typed_attributes(self.cell.node, resolve(self.cell.node.type, self.cell.node.version)).require()["attributes"]
        attributes = sequence_of(cell, direction)
        if attributes is None or x.shape is None:
            return None
        batch, size = x.shape[1 - axis], self.weights[1].shape[1]
        weights = [Fact(x.element, (1, *array.shape), array[None]) for array in self.weights]
        states = [Fact(x.element, (batch, 1, size))] * self.states
        data = Fact(x.element, x.shape if axis else (batch, x.shape[0], x.shape[2]))
        return find_fast_kernel(definition, [data, *states, Fact(None, (batch,)), *weights], {"attributes": attributes})

    def _reshaped(self, slot: int) -> int:
        """The slot that a slot is a reshaped form of, before any changes of shape."""
        while slot in self.makers and self.makers[slot] is not self.cell:
            slot = self.makers[slot].inputs[0]
        return slot

    def _x(self) -> tuple[int, int, Direction] | None:
        """The input that is sliced into steps, its time axis and the direction."""
        slot = self._reshaped(self.cell.inputs[0])
        source = self.wiring.sources[self.plan.parameters.index(slot)] if slot in self.plan.parameters else None
        cut = None if source is None else source[1]
        if source is None or cut is None:
            return None
        fact, direction = self.inputs[source[0]], _direction(cut)
        fits = fact.element in (F32, F64) and fact.rank == 3 and fact.shape is not None and fact.shape[2] == self.weights[0].shape[1]
        return (source[0], cut.axis, direction) if fits and direction is not None else None

    def _state(self, k: int) -> int | None:
        """The input that a state starts from, if the cell's own output is fed back to it."""
        slot = self.cell.inputs[1 + k]
        if slot not in self.plan.parameters:
            return None
        index = self.plan.parameters.index(slot)
        source, back = self.wiring.sources[index], self.wiring.backs[index]
        if source is None or source[1] is not None or back is None:
            return None
        return source[0] if self._reshaped(self.plan.targets[back]) == self.cell.outputs[k] else None

    def _output(self, index: int, axis: int, direction: Direction, whole: PartialShape) -> tuple[int, Any] | None:
        """Which result of the sequence an output is (0: all hidden states), and its shape."""
        result, cut = self.wiring.outputs[index]
        slot, shape = self._reshaped(self.plan.targets[result]), self.outputs[index].shape
        if slot not in self.cell.outputs or shape is None:
            return None
        k = self.cell.outputs.index(slot)
        if cut is None:
            return k + 1, shape
        fits = k == 0 and cut.axis == axis and _direction(cut) == direction and shape == whole
        return (0, shape) if fits else None


def _direction(cut: Slice) -> Direction | None:
    return _DIRECTIONS.get((cut.start, cut.end, cut.stride, cut.part)) if cut.axis in (0, 1) else None
