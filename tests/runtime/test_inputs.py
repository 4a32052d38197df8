"""Arrays of other element types: taken where every value stays the same, and where the caller allows the cast."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import irexec

BIG = 2**63 + 5
LONG = 2**53 + 1


def _identity(kind: Any, *shape: int) -> irexec.CompiledModel:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Identity", builder.parameter(kind, shape, "x"), version=16), "y")
    return irexec.compile_model(builder.model())


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("f32", np.float64([0.5, -0.0, np.inf, np.nan])),
        ("f32", np.int64([1, -3, 2**24])),
        ("f32", np.bool_([True, False])),
        ("f32", np.float16([0.1, 2])),
        ("f32", np.zeros(2, ">f4")),
        ("f64", np.float32([0.1])),
        ("f16", np.float64([0.5, 65504])),
        ("bf16", np.float64([0.5, 3])),
        ("i32", np.int64([-(2**31), 2**31 - 1])),
        ("i32", np.float64([3, -4])),
        ("u8", np.int64([0, 255])),
        ("i4", np.int64([-8, 7])),
        ("boolean", np.int64([0, 1])),
        ("i64", np.uint64([2**63 - 1])),
        ("f32", [0.1, 1]),
        ("i64", [1, 2]),
        ("u4", [15, 0]),
        ("i64", [1.0, 2.0]),
        ("f32", []),
    ],
)
def test_values_that_stay_the_same_are_taken(kind: str, given: Any) -> None:
    compiled = _identity(kind, len(given))
    (result,) = compiled(given if isinstance(given, np.ndarray) else {"x": given}).values()
    assert result.dtype == compiled.inputs[0].element.carrier
    np.testing.assert_array_equal(result, np.asarray(given).astype(result.dtype))


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("f32", np.float64([0.5, 0.1]), "0.1"),
        ("f32", np.float64([1e300]), "1e+300"),
        ("f32", np.int64([2**24 + 1]), "16777217"),
        ("f64", np.int64([LONG]), str(LONG)),
        ("i32", np.int64([2**31]), "2147483648"),
        ("i32", np.float64([1.5]), "1.5"),
        ("i32", np.float32([np.nan]), "nan"),
        ("i64", np.float64([2.0**63]), "9.223372036854775808e+18"),
        ("u8", np.int64([-1]), "-1"),
        ("u64", np.int64([-1]), "-1"),
        ("i64", np.uint64([BIG]), str(BIG)),
        ("i4", np.int64([8]), "8"),
        ("boolean", np.int64([2]), "2"),
        ("bf16", np.float64([1.001]), "1.001"),
        ("i64", [0.5], "0.5"),
    ],
)
def test_values_that_would_change_are_refused_unless_a_cast_is_allowed(kind: str, given: Any, value: str) -> None:
    compiled = _identity(kind, len(given))
    shown = re.escape(value) if "e+18" not in value else r"9\.22337203685477\d+e\+18"
    with pytest.raises(irexec.InputError, match=f"which cannot hold {shown}: convert it, or pass allow_cast=True"):
        compiled({"x": given})
    assert compiled({"x": given}, allow_cast=True)[0].dtype == compiled.inputs[0].element.carrier


def test_a_cast_is_that_of_convert() -> None:
    compiled = _identity("u8", 3)
    for run in (compiled, compiled.session(), compiled.run):
        assert run(np.float64([-1.5, 2.9, 300]), allow_cast=True)["y"].tolist() == [255, 2, 44]
    assert compiled.run([[1, 2, 3.5]], outputs="x", allow_cast=True)["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("given", ["text", [None], [[1], [1, 2]], np.array(["a"]), np.complex64([1])], ids=str)
def test_what_is_not_numbers_is_refused(given: Any) -> None:
    with pytest.raises(irexec.InputError, match="input 'x' is "):
        _identity("f32", 1)({"x": given})


def test_bytes_are_text_in_utf_8() -> None:
    model = _identity("string", 2)
    assert model(np.array(["déjà".encode(), b""]))["y"].tolist() == ["déjà", ""]
    with pytest.raises(irexec.InputError, match="input 'x' is bytes that are not UTF-8: invalid start byte"):
        model(np.array([b"a", b"\xff"]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.array(["a", "\ud800"], object), "0xD800"),
        (np.array(["a", "\udfffb"]), "0xDFFF"),
        (np.array([[0x61], [0x110000]], np.uint32).view("U1")[:, 0], "0x110000"),
    ],
    ids=["a surrogate", "a surrogate of U", "beyond Unicode"],
)
def test_text_that_is_not_of_unicode(given: np.ndarray, says: str) -> None:
    with pytest.raises(
        irexec.InputError,
        match=f"^input 'x' is not text: it holds the code point {says}, which is not a character of Unicode",
    ):
        _identity("string", 2)(given)


def test_constants_that_are_not_of_unicode() -> None:
    builder = irexec.Builder("text")
    with pytest.raises(irexec.IrexecError, match="it holds the code point 0xD800"):
        builder.constant(np.array(["\ud800"], object))
