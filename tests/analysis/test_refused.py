"""Layers that OpenVINO refuses are findings, although shape inference accepts them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Tensor, opset
from irexec.io import write_text


def _parts(shape: str) -> irexec.Model:
    x, lengths = opset.parameter([4], "f32", name="x"), opset.parameter(shape, "i64", name="lengths")
    parts = opset.variadic_split(x, np.int64(0), lengths)
    return irexec.Model([parts if isinstance(parts, Tensor) else parts[0]], [x, lengths])


def _transform(element: str) -> irexec.Model:
    x = opset.parameter([4, 2], element, name="x")
    return irexec.Model([opset.dft(x, np.array([0], np.int64))], [x])


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (_transform, "f16", None),
        (_transform, "f64", "data is f64, expected bf16, f16 or f32"),
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
