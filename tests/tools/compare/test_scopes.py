"""Recordings of other frameworks than PyTorch, whose layers have their names in a path."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import irexec
from irexec.tools.compare import Comparison, compare

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((2, 3, 3)).astype(np.float32)


def _dense(x: np.ndarray, i: int) -> np.ndarray:
    """A dense layer with ReLU of a framework, in NumPy."""
    return np.maximum(x @ W[i] + np.float32(0.5), 0)


def _compared(folder: Path, second: np.ndarray) -> Comparison:
    b = irexec.Builder("keras")
    y = b.parameter("f32", (2, 3), "inputs")
    for i, scope in enumerate(("dense", "dense_1")):
        y = b.emit("MatMul", y, b.constant(W[i]), name=f"StatefulPartitionedCall/functional/{scope}/MatMul")
        y = b.emit(
            "Add",
            y,
            b.constant(np.full(3, 0.5, np.float32)),
            name=f"StatefulPartitionedCall/functional/{scope}/BiasAdd",
        )
        y = b.emit("Relu", y, name=f"StatefulPartitionedCall/functional/{scope}/Relu")
    b.result(y)
    b.model().save(folder / "model.xml")
    arrays = {"input:inputs[0]": X, "module:dense#1[0]": _dense(X, 0), "module:dense_1#1[0]": second}
    np.savez(folder / "keras.npz", **arrays)
    return compare(str(folder / "keras.npz"), str(folder / "model.xml"))


def test_layers_are_paired_by_the_path_of_their_names(tmp_path: Path) -> None:
    found = _compared(tmp_path, _dense(_dense(X, 0), 1))
    assert found.agrees
    assert {row.recorded: row.b.name.split("/")[-2:] for row in found.rows} == {
        "module:dense#1[0]": ["dense", "Relu"],
        "module:dense_1#1[0]": ["dense_1", "Relu"],
    }


def test_the_layer_that_differs_is_named(tmp_path: Path) -> None:
    found = _compared(tmp_path, _dense(_dense(X, 0), 1) + np.float32(0.25))
    assert found.first is not None
    assert found.first.row.recorded == "module:dense_1#1[0]"
