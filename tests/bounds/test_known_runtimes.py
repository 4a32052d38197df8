"""Values of runtimes that compute rightly in f32 are inside of the bounds, however they compute; others are not."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, FUNCTIONS, Interval, arithmetic
from irexec.testing import Case, case
from tests.bounds.rows import row_bounds

# The results of OpenVINO (CPU plugin in f32, 2026.4 unless named) and ONNX Runtime 1.32 at arguments where their approximations are
# worst, or overflow.
_INSIDE = (
    (case("Sigmoid", 1, np.float32([-17.01365, -9, -15.5]), id="ONNX Runtime"), [1.7881393e-07, 1.2338161e-04, 2.0861626e-07]),
    (case("Erf", 1, np.float32([0.028455092, -0.05186925]), id="OpenVINO"), [0.032099962, -0.058475655]),
    (case("Exp", 1, np.float32([88.4, 88.3]), id="OpenVINO"), [np.inf, 2.2294822e38]),
    (case("Softmax", 8, np.float32([[-8.214947, 8.956656, -5.469995, 4.012068]]), id="OpenVINO 2023.1"),
     [[2.0360233e-07, 0.99292773, 5.388932e-07, 0.0070714755]]),
    (case("Cosh", 1, np.float32([89.0]), id="overflow"), [np.inf]),
    (case("Power", 1, np.float32([1.8e19]), np.float32([2.0]), id="overflow"), [np.inf]),
)  # fmt: skip
_OUTSIDE = (
    (case("Sigmoid", 1, np.float32([-9]), id="relative"), [1.25e-4]),
    (case("Erf", 1, np.float32([0.028455092]), id="rounding"), [0.0321010]),
    (case("Exp", 1, np.float32([88.0]), id="too early"), [np.inf]),
    (case("Softmax", 8, np.float32([[0, -np.inf]]), id="masked"), [[0.5, 1e-7]]),
    (case("SoftPlus", 4, np.float32([-29.100761]), id="negative"), [-1.9073486e-06]),
)


def _bound(row: Case) -> Interval:
    found = row_bounds(row, ARITHMETICS["f32"])[0]
    assert isinstance(found, Interval)
    return found


@pytest.mark.parametrize(("row", "given"), _INSIDE, ids=lambda part: getattr(part, "type", ""))
def test_values_of_runtimes_are_inside(row: Case, given: list[float]) -> None:
    assert not _bound(row).outside(np.float32(given)).any()


@pytest.mark.parametrize(("row", "given"), _OUTSIDE, ids=lambda part: getattr(part, "type", ""))
def test_wrong_values_are_outside(row: Case, given: list[float]) -> None:
    assert _bound(row).outside(np.float32(given)).all()


_POINTS = np.linspace(0.05, 0.95, 3001, dtype=np.float32)
_ARGUMENTS = {"Acosh": _POINTS + 1, "Log": 20 * _POINTS, "Exp": 20 * _POINTS, "Tan": 1.2 * _POINTS}


@pytest.mark.parametrize("functions", FUNCTIONS)
@pytest.mark.parametrize("type", sorted({type for one in FUNCTIONS.values() for type in one} - {"Softmax"}))
def test_a_function_may_have_its_published_error(type: str, functions: str) -> None:
    """The exact result and as many units in the last place more are inside, and hundreds are not."""
    x = _ARGUMENTS.get(type, _POINTS)
    inputs = [x, np.float32([1.7])] if type in ("Divide", "Power") else [x]
    since = {"Acosh": 4, "Asinh": 4, "Atanh": 4, "ErfInv": 17}.get(type, 1)
    bound = row_bounds(case(type, since, *inputs, id="a"), arithmetic("f32", functions))[0]
    assert isinstance(bound, Interval)
    unit = 2.0 ** (np.frexp(np.asarray(bound.exact, np.float64))[1] - 24)
    allowed = FUNCTIONS[functions].get(type, 0)
    for side in (-1, 1):
        assert not bound.outside(bound.exact + side * allowed * unit).any()
        if type != "ErfInv":
            assert bound.outside(bound.exact + side * 3000 * unit).all()


def test_a_division_of_a_gpu_may_have_two_and_a_half_units() -> None:
    """3 / 1.4935 as OpenCL C allows it: a CPU that rounds it so is wrong."""
    a, b = np.float32([3.0]), np.float32([1.4935])
    value = np.float32(np.float64(a) / np.float64(b))
    off = np.nextafter(np.nextafter(value, np.float32(9)), np.float32(9))
    row = case("Divide", 1, a, b, id="a")
    for functions, is_outside in (("ieee", True), ("opencl", False)):
        assert bool(row_bounds(row, arithmetic("f32", functions))[0].outside(off).all()) == is_outside  # type: ignore[union-attr]


def _estimate(x: np.ndarray) -> np.ndarray:
    """x with 12 significant bits."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.rint(mantissa * 4096) / 4096, exponent).astype(np.float32)


def test_estimates_with_one_step_of_newton() -> None:
    x = np.linspace(1, 9, 4001, dtype=np.float32)
    y = np.linspace(7, 3, 4001, dtype=np.float32)
    held, one, two = arithmetic("f32", "estimates"), np.float32(1), np.float32(2)
    first = _estimate(one / x)
    quotient = y * (first * (two - x * first))
    root = _estimate(one / np.sqrt(x))
    root = x * (root * (np.float32(1.5) - np.float32(0.5) * x * root * root))
    for type, inputs, given in (("Divide", [y, x], quotient), ("Sqrt", [x], root)):
        assert not row_bounds(case(type, 1, *inputs, id="a"), held)[0].outside(given).any()  # type: ignore[union-attr]


def test_a_softmax_by_the_logarithm_of_the_sum_and_a_clamped_exponential() -> None:
    x = np.float32([[500.3, 499.1, 480.7, 500.25]])
    largest = x.max()
    logarithm = largest + np.log(np.exp(x - largest).sum(dtype=np.float32))
    given = np.exp(x - logarithm)
    row = case("Softmax", 8, x, id="a", axis=1)
    assert not row_bounds(row, arithmetic("f32", "estimates"))[0].outside(given).any()  # type: ignore[union-attr]
    low = np.float32([-200, -90, -87.3])
    clamped = np.exp(np.maximum(low, np.float32(-87.3365)))
    assert not row_bounds(case("Exp", 1, low, id="a"), arithmetic("f32"))[0].outside(clamped).any()  # type: ignore[union-attr]


@pytest.mark.parametrize("channels", [1, 8])
def test_winograd_with_tiles_of_f16(channels: int) -> None:
    """F(2x2, 3x3) of Lavin and Gray, whose tiles are rounded to f16: outside of f16 with finer tiles."""
    rng = np.random.default_rng(0)
    data, filters = (
        rng.standard_normal(shape).astype(np.float16).astype(np.float32)
        for shape in ((channels, 10, 10), (8, channels, 3, 3))
    )
    before = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64)
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    after = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64)

    def half(x: np.ndarray) -> np.ndarray:
        return x.astype(np.float16).astype(np.float64)

    tiles = half(np.einsum("ij,ocjk,lk->ocil", weights, filters, weights))
    found = np.zeros((1, 8, 8, 8))
    for i in range(0, 8, 2):
        for j in range(0, 8, 2):
            part = half(np.einsum("ij,cjk,lk->cil", before, data[:, i : i + 4, j : j + 4], before))
            product = half(np.einsum("ocil,cil->oil", tiles, part))
            found[0, :, i : i + 2, j : j + 2] = np.einsum("ij,ojk,lk->oil", after, product, after)
    windows = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    row = case("Convolution", 1, data[None], filters, id="a", auto_pad="explicit", **windows)
    assert not row_bounds(row, arithmetic("f16-winograd"))[0].outside(half(found)).any()  # type: ignore[union-attr]
    if channels == 1:
        assert row_bounds(row, arithmetic("f16"))[0].outside(half(found)).any()  # type: ignore[union-attr]
