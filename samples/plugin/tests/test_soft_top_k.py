"""Rows of SoftTopK; expected values are those of a calculator: softmax of (2, 1) is (0.731059, 0.268941)."""

import pytest
import soft_top_k

import irexec
from irexec import opset, testing

HIGH, LOW = 0.7310586, 0.2689414
ROWS = [
    testing.case("SoftTopK", "my.ops", [[1.0, 2.0, 0.0]], k=2, gives=[[LOW, HIGH, 0.0]], id="two of three"),
    testing.case("SoftTopK", "my.ops", [3.0, 1.0], gives=[1.0, 0.0], id="the maximum"),
    testing.case("SoftTopK", "my.ops", [1.0, 1.0, 0.0], k=1, gives=[0.5, 0.5, 0.0], id="equal values"),
    testing.case(
        "SoftTopK",
        "my.ops",
        testing.typed("f16", [1.0, 2.0]),
        k=2,
        gives=testing.typed("f16", [LOW, HIGH]),
        id="f16",
    ),
    testing.facts_case("SoftTopK", "my.ops", "f32[?,3]", k=2, gives="f32[?,3]", id="rows of any number"),
    testing.facts_case("SoftTopK", "my.ops", "f32[...]", k=2, gives="f32[...]", id="any rank"),
    testing.refuses("SoftTopK", "my.ops", [1.0, 2.0], k=3, says="the last axis has 2 elements", id="too many"),
    testing.refuses("SoftTopK", "my.ops", "f32[]", says="a scalar", id="scalar"),
]


@testing.parametrize(ROWS)
def test_row(row: testing.Row) -> None:
    testing.check(row)


def test_conversion() -> None:
    pytest.importorskip("onnx")
    testing.check_conversion(ROWS[0], "my.domain", "SoftTopK")


def test_the_fast_kernel_is_selected() -> None:
    x = opset.parameter([2, 8], "f32", "x")
    model = irexec.Model([opset.extension("my.ops").soft_top_k(x, k=2)], [x])
    assert "partition of rows" in str(irexec.compile_model(model).plan)


@pytest.mark.parametrize(("k", "codes"), [(1, ["my.ops:101"]), (2, [])])
def test_the_check(k: int, codes: list[str]) -> None:
    x = opset.parameter([2, 8], "f32", "x")
    found = irexec.validate(irexec.Model([opset.extension("my.ops").soft_top_k(x, k=k)], [x]))
    assert [finding.code for finding in found] == codes


def test_the_definition_is_a_function() -> None:
    assert soft_top_k.soft_top_k.__doc__ is not None
