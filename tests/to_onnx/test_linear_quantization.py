"""Compressed weights are DequantizeLinear, whatever their type, zero point and groups are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.ir.graph import Value
from tests.support.exported import run_onnx

_RNG = np.random.default_rng(3)
X = _RNG.uniform(-1, 1, (2, 8)).astype(np.float32)


def _model(
    element: str, levels: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, by: str = "f32"
) -> irexec.Model:
    """x times the transposed weights (levels - zero) * scale, of shape [6, 8]."""
    builder = Builder("m")
    weights: Value = builder.emit("Convert", builder.constant(levels, element), destination_type=by)
    if zero is not None:
        points = builder.emit("Convert", builder.constant(zero, element), destination_type=by)
        weights = builder.emit("Subtract", weights, points)
    weights = builder.emit("Multiply", weights, builder.constant(scale, by))
    if levels.ndim == 3:
        weights = builder.emit("Reshape", weights, builder.constant([6, 8]), special_zero=False)
    weights = builder.emit("Convert", weights, destination_type="f32")
    x = builder.parameter("f32", ["?", 8], "x")
    builder.result(builder.emit("MatMul", x, weights, transpose_b=True, name="y"))
    return builder.model()


def _levels(element: str, *shape: int) -> np.ndarray:
    low, high = {"u4": (0, 16), "i4": (-8, 8), "u8": (0, 256), "i8": (-128, 128)}[element]
    return _RNG.integers(low, high, shape)


CASES = [
    ("i8", (6, 8), (6, 1), None), ("u8", (6, 8), (6, 1), (6, 1)), ("u8", (6, 8), (), ()), ("i8", (6, 8), (1, 8), (1, 1)),
    ("i4", (6, 2, 4), (6, 2, 1), None), ("u4", (6, 2, 4), (6, 2, 1), (6, 2, 1)), ("u4", (6, 2, 4), (6, 2, 1), ()),
    ("u4", (6, 8), (6, 1), (6, 1)), ("i8", (6, 2, 4), (6, 2, 1), None),
]  # fmt: skip


@pytest.mark.parametrize("by", ["f32", "f16"])
@pytest.mark.parametrize(("element", "shape", "of_scale", "of_zero"), CASES)
def test_dequantize_linear(
    element: str, shape: tuple[int, ...], of_scale: tuple[int, ...], of_zero: tuple[int, ...] | None, by: str
) -> None:
    levels, zero = _levels(element, *shape), None if of_zero is None else _levels(element, *of_zero)
    scale = _RNG.uniform(0.01, 0.1, of_scale).astype(np.float32 if by == "f32" else np.float16)
    model = _model(element, levels, scale, zero, by)
    proto = irexec.to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    operators = [node.op_type for node in proto.graph.node]
    assert operators.count("DequantizeLinear") == 1
    assert "Sub" not in operators
    kinds = {onnx.TensorProto.DataType.Name(tensor.data_type) for tensor in proto.graph.initializer}
    assert {"i8": "INT8", "u8": "UINT8", "i4": "INT4", "u4": "UINT4"}[element] in kinds
    kind = np.dtype(scale.dtype)
    weights = ((levels - (0 if zero is None else zero)).astype(kind) * scale).astype(np.float32).reshape(6, 8)
    (result,), _ = run_onnx(proto, [X])
    np.testing.assert_allclose(result, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_an_older_opset_scales_halves_in_f32() -> None:
    """Until opset 19 the scale is f32. ONNX Runtime does not round the product where it is a Mul of halves."""
    levels, scale = _levels("i8", 6, 8), _RNG.uniform(0.01, 0.1, (6, 1)).astype(np.float16)
    proto = irexec.to_onnx(_model("i8", levels, scale, None, "f16"), opset=17)
    onnx.checker.check_model(proto, full_check=True)
    assert "DequantizeLinear" in [node.op_type for node in proto.graph.node]
    (result,), _ = run_onnx(proto, [X])
    weights = (levels.astype(np.float16) * scale).astype(np.float32)
    np.testing.assert_allclose(result, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_an_older_opset_has_no_blocks() -> None:
    model = _model("i8", _levels("i8", 6, 2, 4), np.ones((6, 2, 1), np.float32), None)
    operators = [node.op_type for node in irexec.to_onnx(model, opset=17).graph.node]
    assert "DequantizeLinear" not in operators
    assert "Cast" in operators


def test_a_zero_point_between_levels_is_subtracted() -> None:
    builder = Builder("m")
    weights = builder.emit("Convert", builder.constant(_levels("i8", 6, 8), "i8"), destination_type="f32")
    weights = builder.emit("Subtract", weights, builder.constant(0.5, "f32"))
    weights = builder.emit("Multiply", weights, builder.constant(0.1, "f32"))
    builder.result(builder.emit("MatMul", builder.parameter("f32", [2, 8], "x"), weights, transpose_b=True))
    assert "Sub" in [node.op_type for node in irexec.to_onnx(builder.model()).graph.node]
