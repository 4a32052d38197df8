"""What is done for a layer does not grow with the number of layers, where every tensor is asked for, or a Split has many parts.

Calls of Python functions are counted, which is the same on every machine; four times as many layers may take four times as many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import irexec


def _calls(work: Callable[[], Any]) -> int:
    """How often Python calls a function, or a generator goes on, in ``work``."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _chain(layers: int) -> irexec.Model:
    builder = irexec.Builder("chain")
    value = builder.parameter("f32", (1, 4), "x")
    for i in range(layers // 2):
        value = builder.emit("Multiply", builder.emit("Relu", value, name=f"relu{i}"), value, name=f"mul{i}")
    builder.result(value)
    return builder.model()


def _parts(layers: int) -> irexec.Model:
    builder = irexec.Builder("parts")
    parts = builder.emit("Split", builder.parameter("f32", (layers, 4), "x"), np.int64(0), num_splits=layers)
    builder.result(builder.emit("Concat", *[builder.emit("Relu", part) for part in parts], axis=0))
    return builder.model()


def _results(layers: int) -> irexec.Model:
    builder = irexec.Builder("results")
    x = builder.parameter("f32", (1, 4), "x")
    for _ in range(layers):
        builder.result(builder.emit("Relu", x, name="same"))
    return builder.model()


@pytest.mark.parametrize("build", [_chain, _parts, _results])
@pytest.mark.parametrize("everything", [True, False])
def test_calls_for_each_layer(build: Callable[[int], irexec.Model], everything: bool) -> None:
    def work(layers: int) -> None:
        compiled = irexec.compile_model(build(layers))
        inputs = [np.ones([int(size) for size in port.shape or ()], np.float32) for port in compiled.inputs]
        names = [node.name for node in compiled.model.nodes if node.type not in ("Constant", "Result")]
        compiled.session().run(inputs, outputs=names if everything else None)

    work(100)
    few, many = _calls(lambda: work(200)), _calls(lambda: work(800))
    assert many < 5 * few


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lengths", [[1, 4, 2], [0, 3, 4], [7], [2, -1, 2]])
def test_parts_of_any_array(lengths: list[int], order: Any) -> None:
    """They are slices, which are the same whatever the memory of the array is."""
    builder = irexec.Builder("parts")
    x = builder.parameter("f32", (3, 7, 2), "x")
    parts = builder.emit("VariadicSplit", x, np.int64(1), np.array(lengths))
    for i, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
        builder.result(part, f"part{i}")
        builder.result(builder.emit("Exp", builder.emit("Transpose", part, np.array([2, 0, 1]))), f"exp{i}")
    data = np.arange(42, dtype=np.float32).reshape(3, 7, 2) / 10
    found = irexec.compile_model(builder.model())([np.asarray(data, order=order)])
    expected = np.split(data, np.cumsum([2, 3, 2] if -1 in lengths else lengths)[:-1], 1)
    for i, part in enumerate(expected):
        np.testing.assert_array_equal(found[f"part{i}"], part)
        np.testing.assert_allclose(found[f"exp{i}"], np.exp(part).transpose(2, 0, 1), rtol=1e-6)
