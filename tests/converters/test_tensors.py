"""Tensors of ONNX as constants: every type, inside and outside the file, sparse, damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import converters
import irexec
from converters.onnx.tensors import constant_of
from irexec.errors import OpError
from irexec.ir.constants import Constant, constant_value
from tests.support.onnx_models import model_of

# ONNX type, numbers, and the element type of IR. All numbers are of the type.
TYPES: list[tuple[int, list[Any], str]] = [
    (TensorProto.FLOAT, [0.5, -2, 3], "f32"),
    (TensorProto.DOUBLE, [0.1, -2, 3], "f64"),
    (TensorProto.FLOAT16, [0.5, -2, 65504], "f16"),
    (TensorProto.BFLOAT16, [0.5, -2, 3.0e38 / 3.0e38], "bf16"),
    (TensorProto.INT8, [-128, 0, 127], "i8"),
    (TensorProto.UINT8, [0, 7, 255], "u8"),
    (TensorProto.INT16, [-32768, 0, 32767], "i16"),
    (TensorProto.UINT16, [0, 7, 65535], "u16"),
    (TensorProto.INT32, [-(2**31), 0, 2**31 - 1], "i32"),
    (TensorProto.UINT32, [0, 7, 2**32 - 1], "u32"),
    (TensorProto.INT64, [-(2**63), 0, 2**63 - 1], "i64"),
    (TensorProto.UINT64, [0, 7, 2**64 - 1], "u64"),
    (TensorProto.BOOL, [True, False, True], "boolean"),
    (TensorProto.INT4, [-8, 0, 7], "i4"),
    (TensorProto.UINT4, [0, 9, 15], "u4"),
    (TensorProto.UINT2, [0, 3, 1], "u2"),
    (TensorProto.FLOAT8E4M3FN, [0.5, -448, 1.125], "f8e4m3"),
    (TensorProto.FLOAT8E5M2, [0.5, -57344, 1.25], "f8e5m2"),
    (TensorProto.FLOAT8E8M0, [0.5, 1, 256], "f8e8m0"),
    (TensorProto.FLOAT4E2M1, [0.5, -6, 1.5], "f4e2m1"),
    (TensorProto.STRING, ["a", "", "é,b"], "string"),
]
IDS = [row[2] for row in TYPES]


@pytest.mark.parametrize(("kind", "numbers", "element"), TYPES, ids=IDS)
def test_every_type_in_its_own_field(kind: int, numbers: list[Any], element: str) -> None:
    constant = constant_of(helper.make_tensor("t", kind, [3], numbers), None)
    assert (constant.element.name, constant.shape) == (element, (3,))
    assert constant_value(constant).tolist() == numbers


@pytest.mark.parametrize(("kind", "numbers", "element"), [row for row in TYPES if row[2] != "string"], ids=IDS[:-1])
def test_every_type_as_raw_bytes(kind: int, numbers: list[Any], element: str) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    tensor = numpy_helper.from_array(np.array(numbers, dtype), "t")
    assert tensor.HasField("raw_data")
    constant = constant_of(tensor, None)
    assert constant.element.name == element
    assert constant_value(constant).tolist() == numbers


@pytest.mark.parametrize("kind", [TensorProto.COMPLEX64, TensorProto.FLOAT8E4M3FNUZ, TensorProto.UNDEFINED, 99])
def test_types_that_ir_does_not_have(kind: int) -> None:
    with pytest.raises(irexec.UnsupportedError, match="is not a type of IR"):
        constant_of(TensorProto(data_type=kind, dims=[0], raw_data=b""), None)


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (TensorProto(name="t", data_type=1, dims=[3], raw_data=b"12345678"), "has 8 bytes, f32[3] takes 12"),
        (TensorProto(name="t", data_type=1, dims=[3], float_data=[1.0]), "is damaged"),
        (TensorProto(name="t", data_type=1, dims=[-3], raw_data=b""), "has the shape [-3]"),
    ],
)
def test_damaged_tensors(tensor: TensorProto, says: str) -> None:
    with pytest.raises(irexec.ConversionError) as caught:
        constant_of(tensor, None)
    assert says in str(caught.value)


def _external(**entries: object) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _with(tensor: TensorProto) -> onnx.ModelProto:
    model = model_of("(float[2] x) => (float[2] y) { y = Add(x, w) }")
    model.graph.initializer.append(tensor)
    return model


def test_data_outside_the_file_is_read_when_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"123" + np.array([3, 4], np.float32).tobytes())
    onnx.save(_with(_external(location="data/w.bin", offset=3, length=8)), tmp_path / "m.onnx")
    model = converters.convert(tmp_path / "m.onnx")
    constant = next(node.constant for node in model.nodes if node.constant is not None)
    assert isinstance(constant, Constant)
    assert isinstance(constant.raw, np.ndarray)
    assert not constant.raw.flags.writeable
    np.testing.assert_array_equal(irexec.compile_model(model)(np.array([1, 1], np.float32))[0], [4, 5])


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"location": "absent.bin"}, "which does not exist"),
        ({"location": "../w.bin"}, "outside the model's folder"),
        ({"location": "inner/../../w.bin"}, "outside the model's folder"),
        ({"location": "/etc/hostname"}, "outside the model's folder"),
        ({}, "outside the model's folder"),
        ({"location": "w.bin", "offset": 4}, "is at 4..12 of w.bin, which has 8 bytes"),
        ({"location": "w.bin", "length": 4}, "has 4 bytes of external data, f32[2] takes 8"),
        ({"location": "w.bin", "offset": "-1"}, "has offset '-1' of its external data"),
        ({"location": "link.bin"}, "outside the model's folder"),
    ],
)
def test_data_that_is_not_where_it_may_be(tmp_path: Path, entries: dict[str, object], says: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for where in (tmp_path, folder):
        (where / "w.bin").write_bytes(bytes(8))
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    onnx.save(_with(_external(**entries)), folder / "m.onnx")
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(folder / "m.onnx")
    assert says in str(caught.value)


def test_data_outside_the_file_of_a_model_in_memory() -> None:
    with pytest.raises(irexec.ConversionError, match="the model is not a file"):
        converters.convert(_with(_external(location="w.bin")))


def _sparse(indices: list[Any], dims: list[int]) -> onnx.SparseTensorProto:
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [5.0, 7.0])
    return helper.make_sparse_tensor(
        values, helper.make_tensor("i", TensorProto.INT64, np.shape(indices), np.ravel(indices)), dims
    )


@pytest.mark.parametrize("indices", [[1, 3], [[0, 1], [1, 1]]], ids=["linear", "coordinates"])
def test_sparse_initializers(indices: list[Any]) -> None:
    model = model_of("(float[2,2] x) => (float[2,2] y) { y = Add(x, w) }")
    model.graph.sparse_initializer.append(_sparse(indices, [2, 2]))
    result = irexec.compile_model(converters.convert(model))(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(result[0], [[1, 6], [1, 8]])


@pytest.mark.parametrize("indices", [[1, 4], [-1, 0], [[0, 0], [2, 0]], [[0, 0, 0], [1, 0, 0]]])
def test_sparse_indices_out_of_range(indices: list[Any]) -> None:
    with pytest.raises(OpError, match="indices out of range for its shape"):
        constant_of(_sparse(indices, [2, 2]), None)


def test_initializers_that_are_inputs_too_are_constants() -> None:
    model = converters.convert(
        model_of("(float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }", w=np.ones(2, np.float32))
    )
    assert [port.name for port in model.inputs] == ["x"]


def test_two_initializers_of_one_name() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Add(x, w) }", w=np.ones(2, np.float32))
    model.graph.initializer.append(model.graph.initializer[0])
    with pytest.raises(irexec.ConversionError, match="two initializers have the name 'w'"):
        converters.convert(model)
