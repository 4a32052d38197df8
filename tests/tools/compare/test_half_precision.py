"""compare beside OpenVINO: f16 and bf16 tensors are observed rounded, and computed on from unrounded values, or from rounded ones."""

from __future__ import annotations

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.testing import typed
from irexec.tools.arrays.agreement import Agreement, Tolerance
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.compare.blame import is_more_than_rounding
from irexec.tools.compare.options import computed_from_bf16
from tests.tools.compare.recorded import stand_in

X = np.float32([1.0002, 1.0004, 1.01])
SUM = np.float32(3.0106)
"""Exact but for rounding of f32; 3.015625 in bf16."""


def summed() -> Model:
    """A sum in bf16, which is converted to f32 and doubled."""
    builder = Builder("m")
    half = builder.emit("Convert", builder.parameter("f32", (3,), "x"), destination_type="bf16", name="half")
    total = builder.emit("ReduceSum", half, np.array([0]), keep_dims=False, name="total")
    wide = builder.emit("Convert", total, destination_type="f32", name="wide")
    builder.result(builder.emit("Add", wide, wide, name="doubled"))
    return builder.model()


def less_one() -> Model:
    """A difference in f16 that nearly cancels out, converted to f32 and multiplied."""
    builder = Builder("m")
    half = builder.emit("Convert", builder.parameter("f32", (3,), "x"), destination_type="f16", name="half")
    less = builder.emit("Subtract", half, builder.constant(1.0, "f16"), name="less")
    wide = builder.emit("Convert", less, destination_type="f32", name="wide")
    builder.result(builder.emit("Multiply", wide, np.float32(1000), name="out"))
    return builder.model()


def _beside_openvino(monkeypatch: pytest.MonkeyPatch, model: Model, recorded: dict[str, np.ndarray]) -> Comparison:
    stand_in(monkeypatch, "openvino", lambda feeds: {"x": X} | recorded)
    return compare(model, options=CompareOptions(b_runtime="openvino"), inputs={"x": X})


def _sums(factor: float) -> dict[str, np.ndarray]:
    """The answers of OpenVINO 2026.4.1 on a processor with bf16, with another factor at the end."""
    total = np.float32(3.015625)
    return {"half": typed("bf16", X).array, "total": total, "wide": total, "doubled": np.float32(factor) * total}


def test_what_is_computed_from_bf16_has_its_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _beside_openvino(monkeypatch, summed(), _sums(2))
    assert found.agrees and found.first is None
    assert any("OpenVINO rounds every bf16 result" in note for note in found.notes)
    found = _beside_openvino(monkeypatch, summed(), _sums(2.5))
    assert found.first is not None and found.first.row.b.name == "doubled"


def test_values_that_are_computed_from_bf16() -> None:
    model = summed()
    names = {value.node.name for value in computed_from_bf16(model)}
    assert names == {"half", "total", "wide", "doubled"}
    assert computed_from_bf16(less_one()) == set()


def test_equal_tensors_are_not_blamed_for_what_rounding_their_inputs_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What irexec computes from 1.0002 as observed, which is 1 in f16, is 0; the fault is in another branch."""
    builder = Builder("m")
    x = builder.parameter("f32", (3,), "x")
    half = builder.emit("Convert", x, destination_type="f16", name="half")
    less = builder.emit("Subtract", half, builder.constant(1.0, "f16"), name="less")
    builder.result(builder.emit("Convert", less, destination_type="f32", name="wide"))
    scaled = builder.emit("Multiply", x, np.float32(30), name="scaled")
    builder.result(builder.emit("Exp", scaled, name="exp"))
    less_one, off = X - np.float32(1), X * np.float32(30 * (1 + 5e-5))
    right = {"half": X.astype(np.float16), "less": less_one.astype(np.float16), "wide": less_one}
    found = _beside_openvino(monkeypatch, builder.model(), right | {"scaled": off, "exp": np.exp(off)})
    assert found.first is not None and found.first.row.b.name == "scaled"


def test_layers_of_f16_in_front_of_f32_are_not_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    less = (X - np.float32(1)) * np.float32(1.0002)
    recorded = {"half": X.astype(np.float16), "less": less.astype(np.float16), "wide": less, "out": less * 1000}
    found = _beside_openvino(monkeypatch, less_one(), recorded)
    assert found.first is not None and found.first.row.b.name == "wide"
    assert [one.layer.name for one in found.first.between] == ["less", "half"]


@pytest.mark.parametrize(("rtol", "snr", "expected"), [(1e-4, 75, True), (1e-2, 75, False), (1e-2, 45, True)])
def test_more_than_rounding(rtol: float, snr: float, expected: bool) -> None:
    agreement = Agreement("x", True, 1e-3, "", snr=snr)
    assert is_more_than_rounding(agreement, Tolerance(rtol=rtol)) is expected


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_isolated_layers_of_one_model_read_the_same_rounded_tensors(element: str) -> None:
    """In a run in f32 the difference is computed from a product that is not rounded."""
    builder = Builder("m")
    x = builder.parameter(element, (64,), "x")
    product = builder.emit("Multiply", x, builder.constant(1.01, element), name="product")
    builder.result(builder.emit("Subtract", product, x, name="difference"))
    options = CompareOptions(b_runtime="reference", precision="f32", isolate=True)
    values = typed(element, np.linspace(0.5, 3, 64)).array
    assert compare(builder.model(), options=options, inputs={"x": values}).agrees
