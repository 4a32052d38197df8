"""Packing and rounding, exact for every type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from irexec.dtypes.elements import ELEMENTS, Element, element
from irexec.dtypes.minifloats import table
from irexec.dtypes.packing import pack, packed_size, unpack
from irexec.dtypes.rounding import encode, round_to
from irexec.errors import OpError
from irexec.ops.conversion import converted
from tests.data.elements import elements

_INTEGERS = [e for e in ELEMENTS if not e.native and not e.is_float]
_FLOATS = ["f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"]


@pytest.mark.parametrize("name", ["u1", "u2", "u3", "u4", "u6", "i4"])
def test_bytes_are_those_of_models_that_openvino_saved(name: str) -> None:
    whole, raw = elements(f"whole {name}"), elements(f"packed {name}")
    values = converted(whole, element(name))
    np.testing.assert_array_equal(pack(name, values), raw)
    for count in (whole.size, whole.size - 3):
        np.testing.assert_array_equal(unpack(name, raw, count), values[:count])
        np.testing.assert_array_equal(unpack(name, pack(name, values[:count]), count), values[:count])
        assert pack(name, values[:count]).size == packed_size(name, count)


def test_texts_are_those_of_models_that_openvino_saved() -> None:
    texts, raw = elements("whole string").astype(object), elements("packed string")
    np.testing.assert_array_equal(pack("string", texts), raw)
    np.testing.assert_array_equal(unpack("string", raw, texts.size), texts)


@pytest.mark.parametrize("kind", [e for e in ELEMENTS if e.kind != "string"], ids=str)
@given(data=st.data())
def test_what_is_packed_is_unpacked(kind: Element, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 40))
    raw = data.draw(nps.arrays(np.uint8, packed_size(kind.name, count)))
    if kind.name == "boolean":
        raw &= 1
    values = unpack(kind.name, raw, count)
    assert values.dtype == kind.carrier
    assert len(values) == count
    packed = pack(kind.name, values)
    assert len(packed) == len(raw)
    again = unpack(kind.name, packed, count)
    np.testing.assert_array_equal(again, values)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6))
def test_strings(texts: list[str]) -> None:
    packed = pack("string", np.array(texts, object))
    assert unpack("string", packed, len(texts)).tolist() == texts


@pytest.mark.parametrize(
    ("raw", "count", "says"),
    [
        (b"\1\0\0\0", 1, "1 strings take at least 12 bytes, there are 4"),
        (b"", 1, "1 strings take at least 12 bytes, there are 0"),
        (b"\1\0\0\0\0\0\0\0\0\0\0\0", 10**30, "strings take at least"),
        (b"\2\0\0\0\0\0\0\0\1\0\0\0", 1, "holds 2 strings, its shape has 1"),
        (b"\xff\xff\xff\xff\0\0\0\0\1\0\0\0a", 1, "holds -1 strings, its shape has 1"),
        (b"\1\0\0\0\0\0\0\0\xff\0\0\0ab", 1, "do not rise within its 2 bytes of text"),
        (b"\1\0\0\0\0\0\0\0\xff\xff\xff\xffab", 1, "do not rise within its 2 bytes of text"),
        (b"\1\0\0\0\xff\xff\xff\xff\1\0\0\0ab", 1, "do not rise within its 2 bytes of text"),
        (b"\2\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0ab", 2, "do not rise within its 2 bytes of text"),
        (b"\1\0\0\0\0\0\0\0\1\0\0\0\xff", 1, "holds text that is not UTF-8"),
    ],
)
def test_damaged_strings_are_refused(raw: bytes, count: int, says: str) -> None:
    with pytest.raises(OpError, match=says):
        unpack("string", np.frombuffer(raw, np.uint8), count)


@pytest.mark.parametrize("kind", [e for e in ELEMENTS if e.kind != "string"], ids=str)
def test_too_few_bytes_are_refused(kind: Element) -> None:
    with pytest.raises(OpError, match=f"9 elements of {kind} take {packed_size(kind.name, 9)} bytes, there are 1"):
        unpack(kind.name, np.zeros(1, np.uint8), 9)


@pytest.mark.parametrize("name", _FLOATS)
def test_every_code_stands_for_itself(name: str) -> None:
    values = table(name)
    kept = values[~np.isnan(values)]
    np.testing.assert_array_equal(round_to(name, kept), kept)
    codes = encode(name, kept)
    np.testing.assert_array_equal(table(name)[codes], kept)


@pytest.mark.parametrize("name", [*_FLOATS, "bf16"])
@given(st.floats(width=32, allow_nan=False))
def test_rounding_is_to_the_nearest(name: str, x: float) -> None:
    value = np.float32(x)
    (rounded,) = round_to(name, np.array([value]))
    np.testing.assert_array_equal(round_to(name, np.array([rounded])), [rounded])
    if name == "bf16" or not np.isfinite(rounded):
        return
    finite = table(name)[np.isfinite(table(name))].astype(np.float64)
    if finite.min() <= value <= finite.max():
        assert abs(float(rounded) - float(value)) <= np.abs(finite - float(value)).min() * (1 + 1e-6)


@pytest.mark.parametrize("kind", _INTEGERS, ids=str)
def test_integers_keep_their_low_bits(kind: Element) -> None:
    everything = np.arange(256).astype(np.uint8).view(kind.carrier)
    span = 1 << kind.bits
    expected = everything.astype(int) % span
    if kind.kind == "signed":
        expected = (expected + span // 2) % span - span // 2
    np.testing.assert_array_equal(round_to(kind.name, everything), expected)
