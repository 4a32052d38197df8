"""What the shape inference of the package onnx says, and models on which it crashes or does not end."""

from __future__ import annotations

import contextlib
import os
import re

import pytest
from onnx import helper, parser

from converters.onnx import inference
from converters.onnx.inference import infer_shapes
from irexec.errors import ConversionError, EngineError, RunTimeoutError

HEADER = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>'
PLAIN = 'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = Einsum <equation = "{}"> (x, y) }}'
CALL = (
    'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = local.Product <terms = "{}"> (x, y) }}'
    '<domain: "local", opset_import: ["" : 20]> Product <terms> (x, y) => (z) {{ z = Einsum <equation: string = @terms> (x, y) }}'
)
WITHOUT = 'agraph (float[2,3] x) => (float[2,3] z) {{ z = local.Own <equation = "{}"> (x) }}'


@pytest.mark.parametrize("text", [PLAIN, CALL])
@pytest.mark.parametrize(
    "equation", ["i.j,jk->ik", "ij..,jk->ik", "ij,j-k", "ij,jk-", "_ij,jk", "ij,j\tk->ik", "ij;jk"]
)
def test_an_equation_that_is_never_read_to_its_end(text: str, equation: str) -> None:
    model = parser.parse_model(HEADER + text.format(equation))
    with pytest.raises(ConversionError, match=r"Einsum: equation .* has terms of other characters than letters"):
        infer_shapes(model)


@pytest.mark.parametrize("equation", ["ij,jk->ik", " i j , j k -> i k ", "ij,jk", "...ij,...jk->...ik"])
def test_shapes_of_an_equation(equation: str) -> None:
    model = infer_shapes(parser.parse_model(HEADER + PLAIN.format(equation)))
    assert helper.printable_value_info(model.graph.output[0]) == "%z[FLOAT, 2x4]"


def test_an_attribute_of_the_same_name_elsewhere() -> None:
    infer_shapes(parser.parse_model(HEADER + WITHOUT.format("i.j")))


def test_what_the_package_refuses() -> None:
    model = parser.parse_model(
        f"{HEADER} agraph (float[2,3] x, float[4,5] y) => (float[N,M] z) {{ z = MatMul (x, y) }}"
    )
    with pytest.raises(ConversionError, match="Incompatible dimensions"):
        infer_shapes(model, strict=True)


def test_a_crash_ends_a_process_of_its_own() -> None:
    """onnx 1.23 aborts for a Split of more outputs than num_outputs; one that does not may infer the shapes."""
    text = f"{HEADER} agraph (float[4] x) => (float[2] a) {{ a, b, c = Split <num_outputs = 2> (x) }}"
    with contextlib.suppress(EngineError, ConversionError):
        infer_shapes(parser.parse_model(text))
    assert infer_shapes(parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))).graph.output


def test_after_a_minute_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_READABLE", re.compile(b".*"))
    monkeypatch.setattr(inference, "_SECONDS", 0.5)
    with pytest.raises(RunTimeoutError):
        infer_shapes(parser.parse_model(HEADER + PLAIN.format("i.j,jk->ik")))
    monkeypatch.setattr(inference, "_SECONDS", 60.0)
    assert infer_shapes(parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))).graph.output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork() -> None:
    """The child does not speak with the process of its parent, and does not end it."""
    model = parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))
    infer_shapes(model)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if infer_shapes(model).graph.output else 1
            inference._process.stop()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert infer_shapes(model).graph.output
