"""Every row of the table of element types is complete, and a type can be asked for by any of its names."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import onnx
import pytest

import irexec
from irexec.dtypes.elements import (
    ELEMENTS,
    F16,
    F32,
    F64,
    I64,
    STRING,
    Element,
    as_element,
    element,
    element_of,
    pack,
    packed_size,
    round_to,
    unpack,
)
from irexec.errors import InputError, IrexecError, OpError, UnsupportedError

# onnx has these too; IR does not.
_ONNX_ONLY = {
    "UNDEFINED", "COMPLEX64", "COMPLEX128", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "INT2", "FLOAT6E2M3", "FLOAT6E3M2",
}  # fmt: skip
# What ml_dtypes does not have before 0.6.
_NEW_EXTENSIONS = {"uint1"}


def test_there_are_25_types_and_their_names_are_unique() -> None:
    assert len(ELEMENTS) == 25
    spellings = [spelling for row in ELEMENTS for spelling in {row.name, row.precision.lower()}]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("row", ELEMENTS, ids=str)
def test_a_row_is_complete(row: Element) -> None:
    ones = np.array(["a", "b", "c"], object) if row is STRING else np.ones(3, row.carrier)
    packed = pack(row, ones)
    assert packed.dtype == np.uint8
    assert unpack(row, packed, 3).tolist() == ones.tolist()
    rounded = round_to(row, ones)
    assert rounded.dtype == row.carrier
    assert rounded.tolist() == ones.tolist()
    assert row.native == (row.kind in ("boolean", "string") or row.carrier.itemsize * 8 == row.bits)
    if row is not STRING:
        assert packed_size(row, 24) * 8 == 24 * row.bits


def test_the_size_of_texts_does_not_follow_from_their_count() -> None:
    with pytest.raises(OpError, match="does not follow from its count"):
        packed_size(STRING, 3)


@pytest.mark.parametrize("row", ELEMENTS, ids=str)
def test_the_onnx_type_is_that_of_onnx(row: Element) -> None:
    # Older versions of onnx do not know the newest types.
    if row.onnx is not None and row.onnx.name in set(onnx.TensorProto.DataType.keys()):
        assert onnx.TensorProto.DataType.Value(row.onnx.name) == row.onnx.number


def test_no_onnx_type_is_missing() -> None:
    rows = {row.onnx.name for row in ELEMENTS if row.onnx is not None}
    assert set(onnx.TensorProto.DataType.keys()) <= rows | _ONNX_ONLY


@pytest.mark.parametrize("row", [row for row in ELEMENTS if row.extension is not None], ids=str)
def test_the_extension_is_a_type_of_ml_dtypes(row: Element) -> None:
    assert row.extension is not None
    if row.extension not in _NEW_EXTENSIONS or hasattr(ml_dtypes, row.extension):
        dtype = np.dtype(getattr(ml_dtypes, row.extension))
        assert as_element(dtype) is row
        values = np.array([1, 0, 1]).astype(dtype)
        np.testing.assert_array_equal(pack(row, values.astype(row.carrier)).size, packed_size(row, 3))


@pytest.mark.parametrize("row", ELEMENTS, ids=str)
def test_a_type_is_public_and_answers_to_its_names(row: Element) -> None:
    assert getattr(irexec, row.name) is row
    for spelling in (row, row.name, row.name.upper(), row.precision, f" {row.precision.lower()} "):
        assert as_element(spelling) is row
    if row.native:
        assert as_element(row.carrier) is row


def test_numpy_types_name_element_types() -> None:
    assert [as_element(t) for t in (np.float32, np.dtype("f2"), np.int64, np.float64, np.str_)] == [
        F32, F16, I64, F64, STRING,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("like", "error", "message"),
    [
        ("f33", UnsupportedError, "element type 'f33' is not known"),
        (np.complex64, UnsupportedError, "NumPy type complex64 is not an element type of IR"),
        (float, InputError, "<class 'float'> is not an element type: expected one such as irexec.f32"),
        (None, InputError, "None is not an element type"),
    ],
)
def test_what_is_not_a_type_is_refused(like: object, error: type[IrexecError], message: str) -> None:
    with pytest.raises(error, match=message):
        as_element(like)


@pytest.mark.parametrize("row", ELEMENTS, ids=str)
def test_copies_and_pickles_are_the_type_itself(row: Element) -> None:
    assert pickle.loads(pickle.dumps(row)) is row
    assert copy.deepcopy(row) is row


def test_arrays_have_the_type_of_their_values() -> None:
    assert element_of(np.zeros(1, ">f4").dtype.newbyteorder("=")) is F32
    assert element("FP16") is F16
