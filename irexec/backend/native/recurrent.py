"""LSTM, GRU and RNN cells and sequences by the C library; see irexec/native/source/recurrent.c."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import c_int64
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides, is_available, loaded, merged_strides
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.convolution import STEP, Product, zeros
from irexec.backend.native.panels import (
    Cut,
    blocks_for,
    pack,
    padded,
    panel_of,
    product_cost,
    rows_as_windows,
    table_bytes,
)
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32, I32, I64
from irexec.native.structures import Parameters, structure
from irexec.schema.recurrent import (
    CellAttributes,
    GRUCellAttributes,
    LSTMCell1Attributes,
    LSTMCellAttributes,
    SequenceAttributes,
)

LSTM, GRU, GRU_LINEAR, RNN = range(4)

_ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2}

_FIRST_GATES = (4, 2, 2, 1)
_GATES = (4, 3, 3, 1)
# Nanoseconds of a step of a sequence, and of a hidden unit of it.
_STEP, _UNIT = 60.0, 4.0
# Sequences of a block: their states stay in cache.
_TOGETHER = 32
# Bytes of the inputs of all steps after the product with W; longer ones are left to the reference
# kernel, which takes a step at a time.
_LARGEST = 32 << 20

States = structure("recurrent.c", "states")
Recurrence = structure("recurrent.c", "recurrence")


@dataclass(frozen=True)
class Form:
    """A cell, or a sequence of cells.

    Attributes:
        kind: LSTM, GRU, GRU_LINEAR or RNN.
        activations: as recurrent.c numbers them.
        clip: the limit of gates and candidates; infinite for none.
        reversed: whether each direction reads from the last step; none for a cell.
        steps: 1 for a cell.
    """

    kind: int
    activations: tuple[int, ...]
    clip: float
    reversed: tuple[bool, ...]
    batch: int
    steps: int
    inputs: int
    size: int

    @staticmethod
    def of(task: Task, attributes: CellAttributes, activations: tuple[int, ...]) -> Form:
        """The form of a task."""
        kind = LSTM if isinstance(attributes, LSTMCellAttributes) else RNN
        if isinstance(attributes, GRUCellAttributes):
            kind = GRU_LINEAR if attributes.linear_before_reset else GRU
        clip = ctypes.c_float(attributes.clip).value if attributes.clip > 0 else math.inf
        directions = attributes.reversed_directions if isinstance(attributes, SequenceAttributes) else ()
        batch, *steps, inputs = task.shape(0)
        return Form(kind, activations, clip, directions, batch, steps[0] if steps else 1, inputs, task.shape(1)[-1])

    @property
    def directions(self) -> int:
        """The number of directions."""
        return max(1, len(self.reversed))

    @property
    def states(self) -> int:
        """The number of states, the inputs after X."""
        return 2 if self.kind == LSTM else 1

    @property
    def first_weight(self) -> int:
        """The index of W."""
        return 1 + self.states + bool(self.reversed)

    @property
    def columns(self) -> int:
        """The values of a step after the product with W: of all directions and gates."""
        return self.directions * _GATES[self.kind] * self.size

    @property
    def projected(self) -> int:
        """Floats of the inputs of all steps after the product with W; a vector beyond the last is read."""
        return self.batch * self.steps * self.columns + loaded().vector

    @property
    def step_time(self) -> float:
        """Nanoseconds of all steps of one direction and sequence."""
        gates = product_cost(1, self.size, _GATES[self.kind] * self.size) - STEP
        return self.steps * (max(gates, 0.0) + _UNIT * self.size + _STEP)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds on one thread."""
        projection = product_cost(self.batch * self.steps, self.inputs, self.columns)
        return 2 * STEP + projection + self.batch * self.directions * self.step_time


class NativeRecurrence(NativeKernel):
    """X by W for all steps, then the steps. Weights are constants."""

    def __init__(self, task: Task, form: Form) -> None:
        f = self.form = form
        self.sources = [task.constants[i] for i in range(f.first_weight, f.first_weight + 3) if task.has_input(i)]
        self.reads = tuple(range(f.first_weight))
        self.algorithm = "C, steps of packed weights"
        rows = f.batch * f.steps
        self.cut = Cut.of(1, rows, 1, f.inputs, f.columns, task.threads)
        wanted = -(-blocks_for(f.batch * f.directions * f.step_time, task.threads) // f.directions)
        self.parts = min(f.batch, max(wanted, -(-f.batch // _TOGETHER)))
        self.shared_workspace = 4 * f.projected
        self.workspace = max(table_bytes(self.cut.block_rows(rows), 1), self._scratch())

    def _scratch(self) -> int:
        """Bytes of the arrays of a block, see recurrent.c."""
        together, vector = -(-self.form.batch // self.parts), loaded().vector
        row, gates = padded(self.form.size) + vector, padded(4 * self.form.size) + 3 * vector
        return 4 * together * (4 * row + gates) + 8 * (2 * together + 16)

    def pack(self, store: ConstantStore) -> None:
        sources = [source for source in self.sources if source is not None]
        self.packed = store.get(sources, ("native recurrence", self.form), self._packed)

    def _packed(self, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """The panels of W, its bias, the panels of both parts of R, and the bias of the second."""
        f = self.form
        directions, gates, size = f.directions, _GATES[f.kind], f.size
        inputs = w.reshape(directions * gates * size, f.inputs).T
        recurrent = r.reshape(directions, gates, size, size)
        biases = np.zeros((directions, gates, size), np.float32) if b is None else b.reshape(directions, -1, size)
        first, second = recurrent[:, : _FIRST_GATES[f.kind]], recurrent[:, _FIRST_GATES[f.kind] :]
        hidden = np.zeros((directions, padded(size)), np.float32)
        if f.kind == GRU_LINEAR and b is not None:
            hidden[:, :size] = biases[:, 3]
        last = pack(second[:, 0].swapaxes(1, 2)) if second.size else np.zeros(0, np.float32)
        own = np.ascontiguousarray(biases[:, :gates], np.float32).reshape(-1)
        return pack(inputs[None]), own, pack(first.reshape(directions, -1, size).swapaxes(1, 2)), last, hidden

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        f = self.form
        weights, bias, first, second, hidden_bias = self.packed
        self._project(inputs[0], weights, bias, binding)
        given = [self._of(binding.with_stride(x, -1), binding) for x in inputs[1 : 1 + f.states]]
        lengths = inputs[1 + f.states] if f.reversed else None
        results = [self._written(out, binding) for out in outputs]
        every, finals = (results[0], results[1:]) if f.reversed else (States(), results)
        parameters = Recurrence(
            f.kind, f.batch, f.steps, f.directions, f.size, (c_int64 * 3)(*f.activations), f.clip,
            sum(1 << i for i, yes in enumerate(f.reversed) if yes), self.parts, binding.shared,
            binding.address(first), binding.address(second) if second.size else None,
            binding.address(zeros(padded(4 * f.size))), binding.address(hidden_bias),
            (c_int64 * 2)(panel_of(_FIRST_GATES[f.kind] * f.size), panel_of(f.size)), *_lengths(lengths, binding),
            given[0], given[1] if f.kind == LSTM else States(), every, finals[0],
            finals[1] if f.kind == LSTM else States(),
        )  # fmt: skip
        binding.call("irx_recurrence", parameters, f.directions * self.parts)

    def _project(self, x: np.ndarray, weights: np.ndarray, bias: np.ndarray, binding: Binding) -> None:
        """X by W, and its bias, of all directions and steps."""
        f = self.form
        rows = x.reshape(f.batch, f.steps, f.inputs)
        if rows.strides[-1] != 4 or merged_strides(rows, [(0, 1)]) is None:
            rows = binding.copied(rows)
        (step,) = merged_strides(rows, [(0, 1)]) or (0,)
        count = f.batch * f.steps
        window = rows_as_windows(binding.address(rows), 0, step, count, binding.address(zeros(f.inputs)))
        parameters = Product(
            window, binding.address(weights), 0, binding.address(bias), None, binding.shared, 0, f.columns, 1, None,
            f.inputs, 1, f.columns, panel_of(f.columns), count, self.cut.rows, self.cut.panels, -np.inf, np.inf, False,
        )  # fmt: skip
        binding.call("irx_product", parameters, self.cut.rows * self.cut.panels)

    def _written(self, out: np.ndarray | None, binding: Binding) -> Parameters:
        if out is None:
            return States()
        axes = tuple((axis,) for axis in range(out.ndim))
        return self._of(binding.written(out, axes, innermost=out.ndim - 1)[0], binding)

    def _of(self, x: np.ndarray, binding: Binding) -> Parameters:
        """A tensor (B, S), (B, D, S) or (B, D, T, S)."""
        strides = element_strides(x)[:-1]
        return States(binding.address(x), *strides, *[0] * (3 - len(strides)))


def _lengths(lengths: np.ndarray | None, binding: Binding) -> tuple[int | None, int, int]:
    """Address, bytes and stride of the lengths of sequences."""
    if lengths is None:
        return None, 0, 0
    return binding.address(lengths), lengths.itemsize, element_strides(lengths)[0]


@kernels("LSTMCell", since=1)
@kernels("LSTMCell", since=4)
@kernels("LSTMSequence", since=5)
@kernels("GRUCell", since=3)
@kernels("GRUSequence", since=5)
@kernels("RNNCell", since=1)
@kernels("RNNSequence", since=5)
def _candidates(task: Task) -> list[Candidate]:
    """f32, with activations that the library has, without peepholes and a coupled input gate."""
    attributes: CellAttributes = task.attributes["attributes"]
    activations = _activations(attributes)
    if isinstance(attributes, LSTMCell1Attributes) and (task.has_input(6) or attributes.input_forget):
        return []
    is_empty = any(task.has_input(i) and 0 in task.shape(i) for i in range(len(task.inputs)))
    if not is_available(task) or is_empty or activations is None:
        return []
    form = Form.of(task, attributes, activations)
    weights = [i for i in range(form.first_weight, form.first_weight + 3) if task.has_input(i)]
    if any(task.constants[i] is None for i in weights) or 4 * form.projected > _LARGEST:
        return []
    if any(task.inputs[i].element is not F32 for i in (*range(1 + form.states), *weights)):
        return []
    if form.reversed and task.inputs[1 + form.states].element not in (I32, I64):
        return []
    return [Candidate(form.cost, partial(NativeRecurrence, task, form), runs_chain=False)]


def _activations(attributes: CellAttributes) -> tuple[int, ...] | None:
    """The activations as recurrent.c numbers them; None for a cell that the library does not compute."""
    names = [name.strip().lower() for name in attributes.functions]
    is_complete = len(names) == len(attributes.default_activations)
    if not is_complete or not all(name in _ACTIVATIONS for name in names) or math.isnan(attributes.clip):
        return None
    return tuple(_ACTIVATIONS[name] for name in names)
