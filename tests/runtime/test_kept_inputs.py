"""Inputs that a layer writes are kept by the session, as OpenVINO keeps them in the memory of the input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.model import Model
from irexec.errors import NodeError

TABLE = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
WEIGHTS = np.float32([[[1, 10, 100, 1000]]])


def convolution(layers: int = 1, kind: str = "f32") -> Model:
    """Layers that share a table, whose second sum of the last four tokens is added to the first."""
    builder = irexec.Builder("conv")
    x, table = builder.parameter(kind, (None, 1), "x"), builder.parameter(kind, (3, 1, 4), "table")
    place = [
        builder.parameter("i32", (None,), name) for name in ("begins", "blocks", "block_begins", "past", "interval")
    ]
    weights, bias = builder.constant(WEIGHTS, kind), builder.constant(np.zeros(0, np.float32), kind)
    for i in range(layers):
        found = builder.emit("PagedCausalConv1D", x, table, weights, bias, *place, version="extension", name=f"conv{i}")
        builder.result(found)
    return builder.model()


def fed(*tokens: float, past: int = 0, blocks: tuple[int, ...] = (1, 1), table: np.ndarray = TABLE) -> dict[str, Any]:
    return {
        "x": np.float32(tokens)[:, None],
        "table": table,
        "begins": np.int32([0, len(tokens)]),
        "blocks": np.int32(blocks),
        "block_begins": np.int32([0, len(blocks)]),
        "past": np.int32([past]),
        "interval": np.int32([8]),
    }


def first(results: Any) -> list[float]:
    return np.ravel(next(iter(results.values()))).tolist()


def test_the_next_run_continues() -> None:
    session = irexec.compile_model(convolution())
    assert first(session(fed(1, 2))) == [5 + 60 + 700 + 1000, 6 + 70 + 100 + 2000]
    assert first(session(fed(3, past=2))) == [7 + 10 + 200 + 3000]
    assert session.variables["table"][1].tolist() == [[7, 1, 2, 3]]
    assert np.array_equal(TABLE, np.arange(12).reshape(3, 1, 4)), "the array of the caller is left alone"


@pytest.mark.parametrize("precision", ["as-written", "f32"])
def test_a_state_of_a_type_that_numpy_lacks(precision: Any) -> None:
    """It has the same name where the model computes in f32, between Converts."""
    session = irexec.compile_model(convolution(kind="bf16"), precision=precision)
    session(fed(1))
    assert session.variables["table"][1].tolist() == [[5, 6, 7, 1]]


def test_without_variables_it_begins_with_the_input_again() -> None:
    session = irexec.compile_model(convolution())
    before = first(session(fed(1)))
    session.variables.clear()
    assert first(session(fed(1))) == before


def test_a_state_can_be_set_and_must_fit() -> None:
    session = irexec.compile_model(convolution())
    session.variables["table"] = np.ones((3, 1, 4), np.float32)
    assert first(session(fed(2))) == [1 + 10 + 100 + 2000]
    with pytest.raises(irexec.InputError, match="table"):
        session.variables["table"] = np.ones((4, 1, 4), np.float32)


def test_layers_with_the_same_input_share_it() -> None:
    """The second layer begins with what the first has written."""
    session = irexec.compile_model(convolution(2))
    one, other = (np.ravel(array).tolist() for array in session(fed(1)).values())
    assert (one, other) == ([5 + 60 + 700 + 1000], [6 + 70 + 100 + 1000])


def test_a_run_that_fails_keeps_nothing() -> None:
    session = irexec.compile_model(convolution())
    session(fed(1))
    held = session.variables["table"].copy()
    with pytest.raises(NodeError, match="block 3 of sequence 0 is out of range for 3 blocks"):
        session(fed(1, blocks=(1, 3)))
    assert np.array_equal(session.variables["table"], held)
