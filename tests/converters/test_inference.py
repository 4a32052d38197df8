"""Equations on which the shape inference of the package onnx would not end, and those that it reads."""

from __future__ import annotations

import pytest
from onnx import helper, parser

from converters.onnx.inference import infer_shapes
from irexec.errors import ConversionError

HEADER = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>'
PLAIN = 'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = Einsum <equation = "{}"> (x, y) }}'
CALL = (
    'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = local.Product <terms = "{}"> (x, y) }}'
    '<domain: "local", opset_import: ["" : 20]> Product <terms> (x, y) => (z) {{ z = Einsum <equation: string = @terms> (x, y) }}'
)
WITHOUT = 'agraph (float[2,3] x) => (float[2,3] z) {{ z = local.Own <equation = "{}"> (x) }}'


@pytest.mark.parametrize("text", [PLAIN, CALL])
@pytest.mark.parametrize("equation", ["i.j,jk->ik", "ij..,jk->ik", "ij,j-k", "ij,jk-", "_ij,jk", "ij,j\tk->ik", "ij;jk"])
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
