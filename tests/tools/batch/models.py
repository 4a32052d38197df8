"""Models whose results are known without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from irexec import Builder, save_model


def twice_plus_one(folder: Path, shape: list[Any], name: str = "model") -> str:
    """An IR that gives ``y = 2 x + 1``."""
    b = Builder()
    x = b.parameter("f32", shape, "x")
    doubled = b.emit("Multiply", x, b.constant(np.float32(2)))
    b.result(b.emit("Add", doubled, b.constant(np.float32(1)), names=["y"]))
    return saved(b, folder, name)


def positions_of_values(folder: Path) -> str:
    """An IR whose result has as many columns as the input has values other than 0: no axis of it counts items."""
    b = Builder()
    x = b.parameter("f32", [-1, 4], "x")
    b.result(b.emit("NonZero", x, output_type="i64", names=["y"]))
    return saved(b, folder, "nonzero")


def reshaped(folder: Path) -> str:
    """An IR that takes 2 items, and no other number."""
    b = Builder()
    x = b.parameter("f32", [2, 3], "x")
    b.result(b.emit("Reshape", x, b.constant(np.array([2, 3, 1])), special_zero=False, names=["y"]))
    return saved(b, folder, "reshaped")


def rank_one(folder: Path) -> str:
    """An IR of vectors as a whole: ten values, of which the sum is the result."""
    b = Builder()
    x = b.parameter("f32", [10], "x")
    b.result(b.emit("ReduceSum", x, b.constant(np.array([0])), keep_dims=True, names=["y"]))
    return saved(b, folder, "sum")


def counter(folder: Path) -> str:
    """An IR with a variable, to which every run adds its input."""
    b = Builder()
    x = b.parameter("f32", [1, 2], "x")
    before = b.emit(
        "ReadValue",
        b.constant(np.zeros((1, 2), np.float32)),
        variable_id="sum",
        variable_type="f32",
        variable_shape=(1, 2),
    )
    after = b.emit("Add", before, x)
    b.result(b.emit("Assign", after, variable_id="sum", names=["y"]))
    return saved(b, folder, "counter")


def saved(b: Builder, folder: Path, name: str) -> str:
    """Save what was built, and return the path."""
    path = folder / f"{name}.xml"
    save_model(b.model(), path)
    return str(path)
