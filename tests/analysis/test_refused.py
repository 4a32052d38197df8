"""Layers that OpenVINO refuses are findings, although shape inference accepts them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Tensor, opset
from irexec.io import write_text


def _quotient(divisor: Any) -> irexec.Model:
    x = opset.parameter([4], "f32", name="x")
    start, step = np.array([0], np.int64), np.array([1], np.int64)
    return irexec.Model([opset.slice(x, start, opset.shape_of(x) / divisor, step, start)], [x])


def _parts(shape: str) -> irexec.Model:
    x, lengths = opset.parameter([4], "f32", name="x"), opset.parameter(shape, "i64", name="lengths")
    parts = opset.variadic_split(x, np.int64(0), lengths)
    return irexec.Model([parts if isinstance(parts, Tensor) else parts[0]], [x, lengths])


def _unique(shape: str) -> irexec.Model:
    x, axis = opset.parameter([4, 2], "f32", name="x"), opset.parameter(shape, "i32", name="axis")
    return irexec.Model([opset.unique(x, axis if shape else np.int32(0))[0]], [x, axis])


def _transform(element: str) -> irexec.Model:
    x = opset.parameter([4, 2], element, name="x")
    return irexec.Model([opset.dft(x, np.array([0], np.int64))], [x])


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (_quotient, np.array([1], np.int64), None),
        (_quotient, np.array([0], np.int64), "a constant integer is divided by 0"),
        (_transform, "f16", None),
        (_transform, "f64", "data is f64, expected bf16, f16 or f32"),
        (_unique, "", None),
        (_unique, "1", "the axis is not a Constant"),
        (_parts, "2", None),
        (_parts, "?", "the length of split_lengths, and so the number of outputs, is not known"),
    ],
)
def test_layers_that_openvino_refuses(make: Any, argument: Any, message: str | None) -> None:
    model = make("2" if make is _parts else argument)
    if argument == "?":
        model.reshape({"lengths": "?"})
    assert [finding.message for finding in irexec.validate(model)] == [message] * (message is not None)
    ov = pytest.importorskip("openvino")
    text, weights = write_text(model)
    with pytest.raises(RuntimeError) if message else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights), np.uint8)))
