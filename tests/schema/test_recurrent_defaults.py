"""Recurrent layers that are built without activations have the specification's in their text: OpenVINO refuses none."""

from __future__ import annotations

import pytest

import irexec.ops  # noqa: F401  (the operations)
from irexec.schema.attributes import write_attribute
from irexec.schema.registry import resolve


@pytest.mark.parametrize("kind", ["Cell", "Sequence"])
@pytest.mark.parametrize(
    ("type", "version", "text"),
    [
        ("LSTM", "opset5", "sigmoid, tanh, tanh"),
        ("LSTM", "opset1", "sigmoid, tanh, tanh"),
        ("GRU", "opset5", "sigmoid, tanh"),
        ("RNN", "opset5", "tanh"),
    ],
)
def test_default_activations(type: str, version: str, text: str, kind: str) -> None:
    found = resolve(f"{type}{kind}", "opset5" if kind == "Sequence" else version)
    activations = next(attribute for attribute in found.attributes if attribute.name == "activations")
    assert write_attribute(activations.default) == text
