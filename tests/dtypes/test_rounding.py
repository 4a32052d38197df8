"""Rounding held to every code that OpenVINO decodes and to values on, between and beside all of them."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.dtypes.elements import BF16, ELEMENTS, F8E4M3, Element, element, lowest, pack, round_to, unpack
from irexec.ops.conversion import converted
from tests.data.elements import elements

SMALL = ["f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"]


def bits(array: np.ndarray) -> np.ndarray:
    """The bits of float32 values, one NaN for all of either sign."""
    found = array.view(np.uint32)
    return np.where(np.isnan(array), found & np.uint32(0x80000000) | np.uint32(0x7FC00000), found)


@pytest.mark.parametrize("name", SMALL)
def test_every_code_stands_for_what_openvino_has(name: str) -> None:
    decoded = elements(f"decoded {name}")
    raw = np.arange(256, dtype=np.uint8) if decoded.size == 256 else np.arange(0x10, 0x100, 0x22, dtype=np.uint8)
    np.testing.assert_array_equal(bits(unpack(element(name), raw, decoded.size)), bits(decoded))


def _codes(kind: Element, values: np.ndarray) -> np.ndarray:
    packed = pack(kind, values)
    return packed if kind.bits == 8 else np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[: values.size]


@pytest.mark.parametrize("name", SMALL)
def test_values_become_the_codes_that_openvino_gives(name: str) -> None:
    values, codes = elements(f"given {name}"), elements(f"encoded {name}")
    np.testing.assert_array_equal(_codes(element(name), values), codes)
    np.testing.assert_array_equal(bits(round_to(element(name), values)), bits(elements(f"decoded {name}")[codes]))


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_all_codes_of_16_bits_and_the_ties_between_them(name: str) -> None:
    codes = np.arange(1 << 16).astype(np.uint16)
    decoded = np.cumsum(elements(f"decoded {name}"), dtype=np.uint32).view(np.float32)
    kept = ~np.isnan(decoded)
    values = unpack(element(name), codes.view(np.uint8), codes.size)
    np.testing.assert_array_equal(values.astype(np.float32)[kept].view(np.uint32), decoded[kept].view(np.uint32))
    np.testing.assert_array_equal(np.isnan(values), ~kept)
    # A NaN keeps its bits, signalling or not.
    np.testing.assert_array_equal(pack(element(name), values).view(np.uint16), codes)

    with np.errstate(invalid="ignore"):
        ties = ((decoded[:-1].astype(np.float64) + decoded[1:]) / 2).astype(np.float32)
    ordered = ~np.isnan(ties)
    rounded = pack(element(name), converted(ties[ordered], element(name))).view(np.uint16)
    np.testing.assert_array_equal(rounded, (elements(f"encoded {name}") + codes[:-1])[ordered])


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_bf16_is_the_nearest_and_even_where_two_are(x: float) -> None:
    value = np.array([x], np.float32)
    rounded = round_to(BF16, value)
    code = int(rounded.view(np.uint32)[0]) >> 16
    neighbours = [np.uint32(c << 16).view(np.float32) for c in (code - 1, code + 1) if 0 <= c < 1 << 16]
    # Beyond the largest value the next power of two stands for infinity.
    away = abs(_exact(rounded[0]) - Fraction(float(value[0])))
    for other in neighbours:
        if np.isnan(other) or np.signbit(other) != np.signbit(rounded[0]):
            continue
        distance = abs(_exact(other) - Fraction(float(value[0])))
        assert away < distance or (away == distance and code % 2 == 0)


def _exact(x: np.float32) -> Fraction:
    return Fraction(float(x)) if np.isfinite(x) else Fraction(2) ** 128 * (1 if x > 0 else -1)


def test_f8_are_rounded_by_way_of_f16() -> None:
    """432 lies halfway between 416 and 448; a little less becomes 432 in f16 and then the even code, 448."""
    just_less = np.nextafter(np.float32([432, -432]), np.float32(0))
    np.testing.assert_array_equal(round_to(F8E4M3, just_less), [448, -448])


def test_f64_becomes_f16_by_way_of_f32() -> None:
    tie = 1 + 2.0**-11
    np.testing.assert_array_equal(converted(np.array([tie + 2.0**-40, tie]), element("f16")), np.float16([1, 1]))


@pytest.mark.parametrize("name", ["bf16", *SMALL, "u4", "i4"])
def test_shapes_and_orders_are_kept(name: str) -> None:
    kind = element(name)
    array = np.arange(12).reshape(3, 4).astype(kind.carrier)
    plain = round_to(kind, array)
    np.testing.assert_array_equal(round_to(kind, np.asfortranarray(array)), plain)
    np.testing.assert_array_equal(round_to(kind, array[::-1, ::2]), plain[::-1, ::2])
    for shape in [(), (0,), (2, 0, 3)]:
        rounded = round_to(kind, np.ones(shape, kind.carrier))
        assert (rounded.shape, rounded.dtype) == (shape, kind.carrier)


# The lowest values of element types.


@pytest.mark.parametrize("one", [one for one in ELEMENTS if one.extension is not None], ids=str)
def test_it_is_that_of_ml_dtypes(one: object) -> None:
    kind = element(str(one))
    dtype = np.dtype(getattr(ml_dtypes, kind.extension)) if hasattr(ml_dtypes, kind.extension or "") else None
    if dtype is None:
        pytest.skip("ml_dtypes does not have it")
    limits = ml_dtypes.finfo(dtype) if kind.is_float else ml_dtypes.iinfo(dtype)
    assert lowest(kind) == float(limits.min)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("f16", -65504),
        ("f32", float(np.finfo(np.float32).min)),
        ("i8", -128),
        ("u8", 0),
        ("i64", -(2**63)),
        ("u3", 0),
        ("nf4", -1),
    ],
)
def test_others(name: str, value: float) -> None:
    assert lowest(element(name)) == value
