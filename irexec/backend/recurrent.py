"""Fast kernels of recurrent cells and sequences with the default activations and without clipping."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.recurrent_steps import (
    Pack,
    PackedWeights,
    pack_gru,
    pack_gru_linear_before_reset,
    pack_lstm,
    pack_rnn,
    run_cell,
    run_sequence,
    workspace,
)
from irexec.backend.registry import kernels
from irexec.schema.opdef import widened
from irexec.schema.recurrent import (
    GRU_ACTIVATIONS,
    LSTM_ACTIVATIONS,
    RNN_ACTIVATIONS,
    CellAttributes,
    GRUCellAttributes,
    LSTMCell1Attributes,
    Names,
    SequenceAttributes,
)

# Nanoseconds of the dozen calls of a step, and of an element of a product with one vector.
_STEP, _ELEMENT = 12_000, 0.1


def is_default(attributes: CellAttributes, default: Names) -> bool:
    """Whether the activations are the default ones, and nothing is clipped."""
    names = tuple(name.strip().lower() for name in attributes.activations[: len(default)]) or default
    return names == default and (attributes.clip <= 0 or np.isinf(attributes.clip))


class _Recurrent(Kernel):
    """A cell or sequence whose weights W, R and B, the last inputs, are packed once if they are constants.

    Args:
        states: number of states, the inputs after X.
        first: the index of W.
    """

    def __init__(self, task: Task, algorithm: str, pack: Pack, states: int, first: int) -> None:
        self.task, self._pack, self._states, self._first = task, pack, states, first
        self._weights = [i for i in range(first, first + 3) if task.has_input(i)]
        self._sources = [task.constants[i] for i in self._weights]
        self._packed: PackedWeights | None = None
        super().__init__(algorithm, reads=tuple(range(first)) if all(self._sources) else None)

    def pack(self, store: ConstantStore) -> None:
        sources = [source for source in self._sources if source is not None]
        if len(sources) == len(self._weights):
            self._packed = store.get(sources, (self._pack.__name__, type(self).__name__, self.is_single), self.packed)

    @property
    @abstractmethod
    def is_single(self) -> bool:
        """Whether the weights are packed for a batch of 1."""

    @abstractmethod
    def packed(self, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None) -> PackedWeights:
        """The weights of an operation of this kind, packed."""

    def of_run(self, inputs: Sequence[Any]) -> PackedWeights:
        """The weights of a run."""
        return self._packed or self.packed(*(inputs[i] for i in self._weights))


class _Cell(_Recurrent):
    """One step.

    Args:
        biases: zeros for each hidden unit, where B is left out.
    """

    def __init__(self, task: Task, pack: Pack, states: int, biases: int) -> None:
        self._biases = biases
        super().__init__(task, "step", pack, states, 1 + states)

    is_single = False

    def packed(self, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None) -> PackedWeights:
        bias = np.zeros(self._biases * r.shape[1], r.dtype) if b is None else b
        return self._pack(widened(w)[None], widened(r)[None], widened(bias)[None], False)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        x, *states = (widened(array) for array in inputs[: self._first])
        run_cell(self.of_run(inputs), x, states, outputs)


class _Sequence(_Recurrent):
    """All steps, in each direction."""

    def __init__(self, task: Task, pack: Pack, states: int) -> None:
        super().__init__(task, "input product of all steps, then steps", pack, states, 2 + states)
        batch, steps, _ = task.shape(0)
        directions, rows, size = task.shape(self._first + 1)
        self.workspace = workspace(rows, batch, steps, directions, size, 8 if task.dtype(0) == np.float64 else 4)

    @property
    def is_single(self) -> bool:
        return self.task.shape(0)[0] == 1

    def packed(self, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None) -> PackedWeights:
        assert b is not None
        return self._pack(widened(w), widened(r), widened(b), self.is_single)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        x, *states = (widened(array) for array in inputs[: 1 + self._states])
        lengths = np.clip(inputs[1 + self._states].astype(np.int64), 0, x.shape[1])
        directions = self.task.attributes["attributes"].reversed_directions
        run_sequence(self.of_run(inputs), x, states, lengths, directions, outputs, context.scratch())


def _candidate(task: Task, make: Callable[[], Kernel], first: int) -> Candidate:
    """Steps of calls, and products of the weights, whose first input is ``first``, with every step's vectors."""
    shape = task.shape(0)
    steps = shape[1] if len(shape) == 3 else 1
    weights = sum(float(np.prod(task.shape(i))) for i in range(first, first + 3) if task.has_input(i))
    return Candidate(steps * (_STEP + _ELEMENT * weights * shape[0]), make, runs_chain=False)


def has_work(task: Task) -> bool:
    """Whether no input is empty."""
    return all(0 not in task.shape(i) for i in range(len(task.inputs)) if task.has_input(i))


@kernels("LSTMCell", since=1)
def _lstm_cell_1(task: Task) -> list[Candidate]:
    """Without peepholes and a coupled input gate."""
    attributes: LSTMCell1Attributes = task.attributes["attributes"]
    return [] if task.has_input(6) or attributes.input_forget else _cell(task, LSTM_ACTIVATIONS, pack_lstm, 2, 4)


@kernels("LSTMCell", since=4)
def _lstm_cell_4(task: Task) -> list[Candidate]:
    return _cell(task, LSTM_ACTIVATIONS, pack_lstm, 2, 4)


@kernels("GRUCell", since=3)
def _gru_cell_3(task: Task) -> list[Candidate]:
    attributes: GRUCellAttributes = task.attributes["attributes"]
    return _cell(task, GRU_ACTIVATIONS, _gru_packing(attributes), 1, attributes.bias_count)


def _cell(task: Task, default: Names, pack: Pack, states: int, biases: int) -> list[Candidate]:
    """With constant weights only: packing them takes longer than a step."""
    weights = [i for i in range(1 + states, 4 + states) if task.has_input(i)]
    if (
        not has_work(task)
        or any(task.constants[i] is None for i in weights)
        or not is_default(task.attributes["attributes"], default)
    ):
        return []
    return [_candidate(task, partial(_Cell, task, pack, states, biases), 1 + states)]


@kernels("LSTMSequence", since=5)
def _lstm_sequence_5(task: Task) -> list[Candidate]:
    return _sequence(task, LSTM_ACTIVATIONS, pack_lstm, 2)


@kernels("GRUSequence", since=5)
def _gru_sequence_5(task: Task) -> list[Candidate]:
    return _sequence(task, GRU_ACTIVATIONS, _gru_packing(task.attributes["attributes"]), 1)


@kernels("RNNSequence", since=5)
def _rnn_sequence_5(task: Task) -> list[Candidate]:
    return _sequence(task, RNN_ACTIVATIONS, pack_rnn, 1)


def _sequence(task: Task, default: Names, pack: Pack, states: int) -> list[Candidate]:
    attributes: SequenceAttributes = task.attributes["attributes"]
    if not has_work(task) or not is_default(attributes, default):
        return []
    return [_candidate(task, partial(_Sequence, task, pack, states), 2 + states)]


def _gru_packing(attributes: GRUCellAttributes) -> Pack:
    return pack_gru_linear_before_reset if attributes.linear_before_reset else pack_gru
