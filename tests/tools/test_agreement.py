"""Whether two tensors agree, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from irexec import InputError
from irexec.tools.arrays import agreement
from irexec.tools.arrays.agreement import Tolerance, agreement_of

NAN, INF = math.nan, math.inf
EXACT = Tolerance(rtol=0, atol=0)


def found(actual: object, reference: object, tolerance: Tolerance = EXACT, dtype: str = "f4") -> agreement.Agreement:
    return agreement_of("t", np.array(actual, dtype), np.array(reference, dtype), tolerance)


@pytest.mark.parametrize(
    ("actual", "reference", "dtype", "tolerance", "agrees", "largest", "message"),
    [
        ([1, 2], [1, 2], "f4", EXACT, True, 0, ""),
        ([1, 2.5], [1, 2], "f4", EXACT, False, 0.5, "1 of 2 values differ, the first at [1]: 2.5, the reference has 2"),
        (3, 2, "f4", EXACT, False, 1, "the value differs: 3, the reference has 2"),
        ([1, 2.5], [1, 2], "f4", Tolerance(rtol=0.25, atol=0), True, 0.5, ""),
        ([1, 2.5], [1, 2], "f4", Tolerance(rtol=0.2, atol=0.1), True, 0.5, ""),
        ([1, 2.5], [1, 2], "f4", Tolerance(rtol=0.2, atol=0.05), False, 0.5, None),
        # The root of the mean square of [3, 4, 0, 0] is 2.5.
        ([3, 4, 0, 0.24], [3, 4, 0, 0], "f4", Tolerance(rtol=0, atol=0.1, scaled=True), True, pytest.approx(0.24), ""),
        ([3, 4, 0, 0.26], [3, 4, 0, 0], "f4", Tolerance(rtol=0, atol=0.1, scaled=True), False, pytest.approx(0.26), None),
        ([NAN, INF, -INF], [NAN, INF, -INF], "f4", EXACT, True, 0, ""),
        ([NAN, 1], [1, 1], "f4", Tolerance(rtol=1, atol=1), False, pytest.approx(NAN, nan_ok=True), None),
        ([NAN, 1], [1, 3], "f4", EXACT, False, 2, None),
        ([INF, 1], [-INF, 1], "f4", Tolerance(rtol=1, atol=1), False, INF, None),
        ([INF, 1], [1e30, 1], "f4", Tolerance(rtol=1, atol=1), False, INF, None),
        ([100, 7], [101, 7], "i8", Tolerance(rtol=0.1), False, 1, "1 of 2 values differ, the first at [0]: 100, the reference has 101"),
        ([100, 7], [101, 7], "i8", Tolerance(atol=1), True, 1, ""),
        ([2**60 + 1], [2**60], "i8", EXACT, False, 1, None),
        ([2**64 - 1], [2**64 - 2], "u8", EXACT, False, 1, None),
        ([True, False], [True, True], "?", Tolerance(rtol=1, atol=0.5), False, 1, None),
        ([], [], "f4", EXACT, True, 0, ""),
        (["a", "b"], ["a", "c"], "O", EXACT, False, None, "differs from the reference"),
        (["a", "b"], ["a", "b"], "O", EXACT, True, None, ""),
        # The power of [3, 4] is 25, that of the difference 0.25: 20 dB; it is 0.125 of the largest magnitude.
        ([3, 4.5], [3, 4], "f4", Tolerance("snr", threshold=19.9), True, 0.5, ""),
        ([3, 4.5], [3, 4], "f4", Tolerance("snr", threshold=20.1), False, 0.5, "SNR 20 dB; the largest difference is at [1]: 4.5, the reference has 4"),
        ([3, 4.5], [3, 4], "f4", Tolerance("rel", threshold=0.126), True, 0.5, ""),
        ([3, 4.5], [3, 4], "f4", Tolerance("rel", threshold=0.124), False, 0.5, None),
        # cos of 45 degrees.
        ([1, 1], [1, 0], "f4", Tolerance("cosine", threshold=0.7), True, 1, ""),
        ([1, 1], [1, 0], "f4", Tolerance("cosine", threshold=0.71), False, 1, None),
        ([0, 0], [0, 0], "f4", Tolerance("cosine", threshold=1), True, 0, ""),
        ([0, 0], [1, 0], "f4", Tolerance("cosine", threshold=0), False, 1, None),
        ([NAN, 1e6], [0, 1e6], "f4", Tolerance("snr", threshold=1), False, pytest.approx(NAN, nan_ok=True), None),
        ([1, 2], [1, 3], "i4", Tolerance("snr", threshold=1), False, 1, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [1, 1 << 18])
def test_agreement(
    block: int, actual: object, reference: object, dtype: str, tolerance: Tolerance, agrees: bool, largest: object, message: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(agreement, "_BLOCK", block)
    one = found(actual, reference, tolerance, dtype)
    assert one.agrees is agrees
    assert one.largest == largest
    if message is not None:
        assert one.message == message
    assert bool(one.message) is not agrees


def test_measures() -> None:
    one = found([[3, 4.5], [0, 0]], [[3, 4], [0, 0]])
    assert (one.relative, one.differing) == (0.125, 1)
    assert one.snr == pytest.approx(20)
    assert one.cosine == pytest.approx((9 + 18) / 5 / math.hypot(3, 4.5))
    assert found([1.0], [1.0]).snr == INF
    assert found([1.0], [0.0]).snr == -INF


def test_types_of_other_precision_are_compared_as_numbers() -> None:
    half, single = np.array([0.1], "f2"), np.array([0.1], "f4")
    assert agreement_of("t", half, single, Tolerance(rtol=1e-3, atol=0)).agrees
    assert not agreement_of("t", half, single, Tolerance(rtol=1e-5, atol=0)).agrees
    assert agreement_of("t", np.array([3], "i4"), np.array([3.0], "f4"), EXACT).agrees


def test_shapes() -> None:
    one = agreement_of("t", np.zeros((2, 3)), np.zeros((3, 2)), EXACT, "A")
    assert (one.agrees, one.largest, one.message) == (False, None, "shape [2, 3], A has [3, 2]")


def test_strided_arrays() -> None:
    data = np.arange(24.0).reshape(4, 6)
    assert agreement_of("t", data.T, np.ascontiguousarray(data.T), EXACT).agrees
    assert agreement_of("t", data[::2, ::-1], data[::2, ::-1].copy(), EXACT).agrees


@pytest.mark.parametrize("values", [{"rtol": -1.0}, {"atol": NAN}, {"threshold": INF}])
def test_a_wrong_tolerance(values: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(values))} is .*, expected a finite value"):
        Tolerance(**values)
