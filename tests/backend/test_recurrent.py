"""Recurrent cells and sequences in C give what the reference kernels give, for every size of tile and of block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irexec.analysis.evaluate import as_tuple
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import KernelContext, Task
from irexec.native.library import library
from irexec.schema.recurrent import (
    CellAttributes,
    GRUCellAttributes,
    GRUSequenceAttributes,
    LSTMCellAttributes,
    LSTMSequenceAttributes,
    SequenceAttributes,
)
from irexec.testing.kernels import candidates, task_of
from tests.support.passes import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="there is no library")

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


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


def _task(
    type: str, sizes: tuple[int, int, int, int], *, direction: str = "forward", lengths: list[int] | None = None,
    linear: bool = False, length_type: Any = np.int64, threads: int = 1,
) -> tuple[Task, list[np.ndarray]]:  # fmt: skip
    """A sequence of random inputs; sizes are batch, steps, inputs and hidden units."""
    batch, steps, width, size = sizes
    rng, count, gates = np.random.default_rng(sum(sizes)), 2 if direction == "bidirectional" else 1, _GATES[type]

    def random(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(size)).astype(np.float32)

    states = [random(batch, count, size) for _ in range(2 if type == "LSTM" else 1)]
    known = np.array([steps] * batch if lengths is None else lengths, length_type)
    weights = [
        random(count, gates * size, width),
        random(count, gates * size, size),
        random(count, (gates + linear) * size),
    ]
    shared: dict[str, Any] = {"hidden_size": size, "direction": direction}
    attributes = attributes_of_sequence(type, linear=linear, **shared)
    inputs = [random(batch, steps, width), *states, known, *weights]
    constants = range(len(inputs) - 3, len(inputs))
    task = task_of(
        f"{type}Sequence",
        "opset5",
        inputs,
        {"attributes": attributes},
        constants=constants,
        threads=threads,
        native=True,
    )
    return task, inputs


def _check(task: Task, inputs: list[np.ndarray]) -> list[np.ndarray]:
    (kernel,) = (one for one in candidates(task) if one.algorithm.startswith("C, "))
    found = run_kernel(kernel, task, inputs)
    for actual, wanted in zip(found, as_tuple(task.definition(*inputs, **task.attributes)), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=2e-6)
    return found


@pytest.mark.parametrize(("type", "linear"), [("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)])
@pytest.mark.parametrize(
    "sizes", [(1, 5, 3, 1), (1, 4, 7, 33), (1, 3, 96, 100), (2, 3, 5, 8), (9, 4, 4, 24), (70, 3, 2, 5)]
)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences(type: str, linear: bool, sizes: tuple[int, int, int, int], direction: str) -> None:
    batch, steps = sizes[:2]
    ragged = [(i * 2 + 1) % (steps + 2) - (i == 3) for i in range(batch)]
    for lengths in (None, ragged):
        _check(*_task(type, sizes, direction=direction, lengths=lengths, linear=linear))


@pytest.mark.parametrize("type", ["LSTM", "GRU", "RNN"])
def test_threads_give_the_same_bits(type: str) -> None:
    one, two = (_task(type, (40, 20, 16, 64), direction="bidirectional", threads=threads) for threads in (1, 2))
    for a, b in zip(_check(*one), _check(*two), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("type", ["LSTM", "GRU"])
def test_strided_arrays_and_lengths_of_32_bits(type: str) -> None:
    """Inputs and outputs may be views; what nobody reads is not written."""
    task, inputs = _task(type, (3, 6, 8, 10), lengths=[6, 1, 3], length_type=np.int32)
    expected = as_tuple(task.definition(*inputs, **task.attributes))
    views = [np.repeat(x, 2, -1)[..., ::2] if x.ndim == 3 else x for x in inputs]
    (kernel,) = (one for one in candidates(task) if one.algorithm.startswith("C, "))
    kernel.pack(ConstantStore())
    every = np.full((*expected[0].shape[::-1],), np.nan, np.float32).T
    kernel.run(views, [every, *[None] * (len(expected) - 1)], KernelContext.of(kernel, 1))
    np.testing.assert_allclose(every, expected[0], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("type", "linear"), [("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("batch", [1, 3, 17])
def test_cells(type: str, linear: bool, has_bias: bool, batch: int) -> None:
    _, (x, *states, _, w, r, b) = _task(type, (batch, 1, 5, 19), linear=linear)
    inputs = [x[:, 0], *(state[:, 0] for state in states), w[0], r[0], *([b[0]] if has_bias else [])]
    cell = attributes_of_cell(type, 19, linear=linear)
    version = {"LSTM": "opset4", "GRU": "opset3", "RNN": "opset1"}[type]
    first = 1 + len(states)
    task = task_of(
        f"{type}Cell", version, inputs, {"attributes": cell}, constants=range(first, len(inputs)), native=True
    )
    _check(task, inputs)


def test_no_number_stays_in_its_sequence() -> None:
    """NaN in one sequence leaves the others as they are."""
    task, inputs = _task("LSTM", (6, 4, 3, 20))
    inputs[0][2, 1] = np.nan
    found = run_kernel(candidates(task)[-1], task, inputs)[0]
    assert np.isnan(found[2, 0, 1:]).all() and not np.isnan(np.delete(found, 2, 0)).any()


def _changed(task: Task, **changes: Any) -> Task:
    return replace(task, attributes={"attributes": replace(task.attributes["attributes"], **changes)})


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(
    ("type", "linear", "activations"),
    [
        ("RNN", False, ("relu",)),
        ("RNN", False, ("Sigmoid",)),
        ("LSTM", False, ("relu", "sigmoid", "tanh")),
        ("LSTM", False, ("tanh", "relu", "relu")),
        ("GRU", False, ("sigmoid", "relu")),
        ("GRU", True, ("tanh", "sigmoid")),
        ("GRU", True, ("relu", "relu")),
    ],
)
@pytest.mark.parametrize("clip", [0.0, 0.4])
def test_activations_and_clip(
    type: str, linear: bool, activations: tuple[str, ...], clip: float, direction: str
) -> None:
    task, inputs = _task(type, (3, 4, 5, 19), lengths=[4, 1, 3], linear=linear, direction=direction)
    _check(_changed(task, activations=activations, clip=clip), inputs)


def test_infinite_relu() -> None:
    """An infinite candidate of a GRU stays infinite, and is not the difference of infinities."""
    task, inputs = _task("GRU", (1, 1, 2, 9))
    inputs[-1][0, -9:] = np.inf
    assert np.isposinf(_check(_changed(task, activations=("sigmoid", "relu")), inputs)[0]).all()


@pytest.mark.parametrize(
    "changes", [{"clip": float("nan")}, {"activations": ("hardsigmoid", "tanh", "tanh")}, {"activations": ("relu",)}]
)
def test_left_to_the_reference_kernel(changes: dict[str, Any]) -> None:
    task, _ = _task("LSTM", (2, 3, 4, 5))
    assert not candidates(_changed(task, **changes))
