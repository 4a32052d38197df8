"""Tensors of the protocol: what they hold must be what they say, in bytes and in lists."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec import InputError
from irexec.integrations.tensors import array_of, datatype_of

_TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64")
_NUMPY = ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


def tensor(kind: str, shape: list[Any], data: Any = None, raw: bytes | None = None) -> Any:
    return SimpleNamespace(name="x", datatype=kind, shape=shape, data=data, _raw_data=raw)


@pytest.mark.parametrize(("kind", "dtype"), list(zip(_TYPES, _NUMPY, strict=True)))
def test_every_type_in_bytes_and_in_lists(kind: str, dtype: str) -> None:
    expected = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    for each in (
        tensor(kind, [2, 3], raw=expected.astype(np.dtype(dtype).newbyteorder("<")).tobytes()),
        tensor(kind, [2, 3], data=expected.tolist()),
        tensor(kind, [2, 3], data=expected.ravel().tolist()),
    ):
        found = array_of(each, None)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert datatype_of(np.dtype(dtype)) == kind


@pytest.mark.parametrize("kind", ["BYTES", "INT64"])
def test_lists_deeper_than_calls(kind: str) -> None:
    value: Any = "text" if kind == "BYTES" else 1
    data = value
    for _ in range(10_000):
        data = [data]
    assert array_of(tensor(kind, [1], data=data), None).tolist() == [value]


@given(st.lists(st.text()))
def test_texts(texts: list[str]) -> None:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts if text.isprintable()]
    raw = b"".join(struct.pack("<I", len(each)) + each for each in encoded)
    expected = [each.decode() for each in encoded]
    assert array_of(tensor("BYTES", [len(expected)], raw=raw), None).tolist() == expected
    assert array_of(tensor("BYTES", [len(expected)], data=expected), None).tolist() == expected


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (tensor("FP33", [1], data=[1]), "has datatype 'FP33', expected BOOL, UINT8"),
        (tensor("FP32", [2], data=[1]), r"has 1 element, and shape \[2\] has 2"),
        (tensor("FP32", [-1], data=[1]), r"has shape \[-1\], expected at most 64 sizes of 0 and more"),
        (tensor("FP32", [1 << 40, 1 << 40], data=[1]), "expected at most 64 sizes of 0 and more"),
        (tensor("FP32", [0, 1 << 30, 1 << 30, 1 << 30], data=[]), "too large for an array"),
        (tensor("FP32", [None, "a"], data=[1]), r"has shape \[None, 'a'\], expected at most 64 sizes"),
        (tensor("FP32", [1] * 65, data=[1]), r"has shape \[1, 1, 1, 1, 1, 1, 1, 1 and 57 more\], expected at most 64 sizes"),
        # The product of these took minutes.
        (tensor("FP32", [2**31 - 1] * 1_000_000, data=[1]), "and 999,992 more"),
        (tensor("FP32", [1], data=["a"]), "has data that is not numbers"),
        # NumPy would make each a text of a million characters.
        (tensor("FP32", [1_000_000], data=[0] * 999_999 + ["x" * 1_000_000]), "has data that is not numbers"),
        (tensor("FP32", [2], data=[[1], [1, 2]]), "has data whose lists are not all of one length and depth"),
        (tensor("FP32", [2], data=[1, [1]]), "has data whose lists are not all of one length and depth"),
        (tensor("FP32", [1], data=[None]), "has data that is not numbers"),
        (tensor("FP32", [1], data=[10**400]), "has an integer of more than 64 bits"),
        (tensor("FP32", [1]), "has no data"),
        (tensor("FP32", [1], raw=b"abc"), "has 3 bytes, expected a multiple of the 4 of FP32"),
        (tensor("INT32", [1], data=[1.5]), "has the value 1.5, which INT32 cannot hold"),
        (tensor("INT8", [1], data=[300]), "has the value 300, which INT8 cannot hold"),
        (tensor("UINT8", [1], data=[-1]), "has the value -1, which UINT8 cannot hold"),
        (tensor("BYTES", [1], raw=b"\x05\0\0\0ab"), "ends within element 0"),
        (tensor("BYTES", [1], raw=b"\x01\0"), "ends within element 0"),
        (tensor("BYTES", [1], raw=b"\x01\0\0\0\xff"), "has text that is not UTF-8"),
        (tensor("BYTES", [1], data=[1]), "has the value 1, expected text"),
    ],
)  # fmt: skip
def test_what_does_not_fit(wrong: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        array_of(wrong, None)
