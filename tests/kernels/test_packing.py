"""Packing and rounding, exact for every type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from irexec.errors import OpError
from irexec.ir.elements import ELEMENTS
from irexec.kernels.codes import table
from irexec.kernels.packing import pack, packed_size, unpack
from irexec.kernels.rounding import encode, round_to

_INTEGERS = [e for e in ELEMENTS if not e.native and not e.is_float]
_FLOATS = ["f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"]


@pytest.mark.parametrize("element", [e for e in ELEMENTS if e.kind != "string"], ids=str)
@given(data=st.data())
def test_what_is_packed_is_unpacked(element: object, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 40))
    raw = data.draw(nps.arrays(np.uint8, packed_size(element.name, count)))
    if element.name == "boolean":
        raw &= 1
    values = unpack(element.name, raw, count)
    assert values.dtype == element.carrier
    assert len(values) == count
    packed = pack(element.name, values)
    assert len(packed) == len(raw)
    again = unpack(element.name, packed, count)
    np.testing.assert_array_equal(again, values)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6))
def test_strings(texts: list[str]) -> None:
    packed = pack("string", np.array(texts, object))
    assert unpack("string", packed, len(texts)).tolist() == texts


@pytest.mark.parametrize(
    "raw", [b"\1\0\0\0", b"\2\0\0\0\0\0\0\0\1\0\0\0", b"\1\0\0\0\0\0\0\0\xff\0\0\0ab", b"\1\0\0\0\0\0\0\0\1\0\0\0\xff"]
)
def test_damaged_strings_are_refused(raw: bytes) -> None:
    with pytest.raises(OpError):
        unpack("string", np.frombuffer(raw, np.uint8), 1)


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


@pytest.mark.parametrize("element", _INTEGERS, ids=str)
def test_integers_keep_their_low_bits(element: object) -> None:
    everything = np.arange(256).astype(np.uint8).view(element.carrier)
    span = 1 << element.bits
    expected = everything.astype(int) % span
    if element.kind == "signed":
        expected = (expected + span // 2) % span - span // 2
    np.testing.assert_array_equal(round_to(element.name, everything), expected)
