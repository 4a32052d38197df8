"""Recurrent cells and sequences: the fast kernels give what the reference kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.analysis.evaluate import as_tuple
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import KernelContext
from irexec.schema.recurrent import (
    CellAttributes,
    GRUCellAttributes,
    GRUSequenceAttributes,
    LSTMCellAttributes,
    LSTMSequenceAttributes,
    SequenceAttributes,
)
from irexec.testing.tasks import candidates, task_of
from tests.support.run_kernel import run_kernel

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def attributes_of_sequence(type: str, *, linear: bool = False, **shared: Any) -> SequenceAttributes:
    """The attributes of a sequence of LSTM, GRU or RNN cells."""
    if type == "GRU":
        return GRUSequenceAttributes(**shared, linear_before_reset=linear)
    return LSTMSequenceAttributes(**shared) if type == "LSTM" else SequenceAttributes(**shared)


def attributes_of_cell(type: str, size: int, *, linear: bool) -> CellAttributes:
    """The attributes of an LSTM, GRU or RNN cell."""
    if type == "GRU":
        return GRUCellAttributes(hidden_size=size, linear_before_reset=linear)
    return LSTMCellAttributes(hidden_size=size) if type == "LSTM" else CellAttributes(hidden_size=size)


def sequence(
    type: str, batch: int, steps: int, direction: str, lengths: list[int] | None, dtype: str, linear: bool = False
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Random inputs of 5 features and 6 hidden units, and the attributes."""
    rng, count = np.random.default_rng(0), 2 if direction == "bidirectional" else 1

    def random(*shape: int) -> np.ndarray:
        return (0.5 * rng.standard_normal(shape)).astype(dtype)

    states = [random(batch, count, 6) for _ in range(2 if type == "LSTM" else 1)]
    gates = GATES[type]
    weights = [random(count, gates * 6, 5), random(count, gates * 6, 6), random(count, (gates + linear) * 6)]
    known = np.array([steps] * batch if lengths is None else lengths)
    shared: dict[str, Any] = {"hidden_size": 6, "direction": direction}
    attributes = attributes_of_sequence(type, linear=linear, **shared)
    return [random(batch, steps, 5), *states, known, *weights], {"attributes": attributes}


@pytest.mark.parametrize("type", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("batch", "lengths"), [(1, None), (3, None), (3, [4, 0, 7]), (3, [2, 2, 2])])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_sequences(
    type: str, direction: str, batch: int, lengths: list[int] | None, dtype: str, is_constant: bool
) -> None:
    for linear in (False, True) if type == "GRU" else (False,):
        inputs, attributes = sequence(type, batch, 7, direction, lengths, dtype, linear)
        weights = range(len(inputs) - 3, len(inputs)) if is_constant else ()
        task = task_of(f"{type}Sequence", "opset5", inputs, attributes, constants=weights)
        expected = as_tuple(task.definition(*inputs, **attributes))
        (kernel,) = candidates(task)
        assert (kernel.reads is None) is not is_constant
        for actual, wanted in zip(run_kernel(kernel, task, inputs), expected, strict=True):
            np.testing.assert_allclose(
                actual, wanted, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-3 if dtype == "float16" else 1e-6
            )


def test_long_sequences() -> None:
    """More steps than are projected at once."""
    inputs, attributes = sequence("LSTM", 3, 300, "bidirectional", [300, 120, 7], "float32")
    task = task_of("LSTMSequence", "opset5", inputs, attributes, constants=(4, 5, 6))
    (kernel,) = candidates(task)
    expected = as_tuple(task.definition(*inputs, **attributes))
    for actual, wanted in zip(run_kernel(kernel, task, inputs), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("type", ["LSTM", "GRU"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_cells(type: str, has_bias: bool, dtype: str) -> None:
    for linear in (False, True) if type == "GRU" else (False,):
        given, _ = sequence(type, 3, 1, "forward", None, dtype, linear)
        *states, _, w, r, b = given[1:]
        inputs = [given[0][:, 0], *(state[:, 0] for state in states), w[0], r[0], *([b[0]] if has_bias else [])]
        cell = attributes_of_cell(type, 6, linear=linear)
        attributes = {"attributes": cell}
        version = "opset4" if type == "LSTM" else "opset3"
        first = 1 + len(states)
        task = task_of(f"{type}Cell", version, inputs, attributes, constants=range(first, len(inputs)))
        (kernel,) = candidates(task)
        assert kernel.reads == tuple(range(first))
        for actual, wanted in zip(
            run_kernel(kernel, task, inputs), as_tuple(task.definition(*inputs, **attributes)), strict=True
        ):
            np.testing.assert_allclose(actual, wanted, rtol=1e-3 if dtype == "float16" else 1e-5, atol=1e-6)
        assert not candidates(task_of(f"{type}Cell", version, inputs, attributes))


def test_outputs_that_nobody_reads() -> None:
    inputs, attributes = sequence("LSTM", 2, 5, "forward", None, "float32")
    task = task_of("LSTMSequence", "opset5", inputs, attributes, constants=(4, 5, 6))
    (kernel,) = candidates(task)
    kernel.pack(ConstantStore())
    final = np.empty(task.output_shape(2), np.float32)
    kernel.run(inputs, [None, None, final], KernelContext.of(kernel, 1))
    np.testing.assert_allclose(final, as_tuple(task.definition(*inputs, **attributes))[2], rtol=1e-5, atol=1e-6)


def test_packed_once() -> None:
    inputs, attributes = sequence("GRU", 2, 5, "forward", None, "float32")
    task, store = task_of("GRUSequence", "opset5", inputs, attributes, constants=(3, 4, 5)), ConstantStore()
    for _ in range(2):
        (kernel,) = candidates(task)
        kernel.pack(store)
    assert len(store.made()) == 1


@pytest.mark.parametrize("changes", [{"clip": 1.0}, {"activations": ("relu", "tanh", "tanh")}])
def test_left_to_the_reference_kernel(changes: dict[str, Any]) -> None:
    inputs, _ = sequence("LSTM", 2, 5, "forward", None, "float32")
    attributes = {"attributes": LSTMSequenceAttributes(hidden_size=6, direction="forward", **changes)}
    assert not candidates(task_of("LSTMSequence", "opset5", inputs, attributes, constants=(4, 5, 6)))
