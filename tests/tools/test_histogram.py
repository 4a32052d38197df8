"""Histograms: what NumPy counts, whatever the type; integers exactly; everything that is not finite apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import irexec
from irexec import display
from irexec.errors import InputError
from irexec.tools.arrays.statistics import BLOCK, Histogram, constant_histogram, find_constant, histogram

FLOATS = st.sampled_from([np.float16, np.float32, np.float64])
INTEGERS = st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40)
BINS = st.integers(1, 50)


@given(FLOATS.flatmap(lambda dtype: arrays.arrays(dtype, SHAPES)), BINS)
def test_floats(array: np.ndarray, bins: int) -> None:
    found = histogram(array, bins)
    finite = array[np.isfinite(array)].astype(np.float64)
    assert sum(found.counts) == finite.size == found.statistics.finite
    assert found.statistics.nans == np.isnan(array).sum()
    assert found.statistics.infinities == (array == np.inf).sum()
    assert found.statistics.negative_infinities == (array == -np.inf).sum()
    assert found.statistics.zeros == (finite == 0).sum()
    if not finite.size:
        assert found.edges == ()
        return
    assert (found.edges[0], found.edges[-1]) == (finite.min(), finite.max())
    if len(found.counts) == bins and np.abs(finite).max() < 1e307 and finite.max() > finite.min():
        assert found.counts == tuple(np.histogram(finite, bins)[0])


@given(INTEGERS.flatmap(lambda dtype: arrays.arrays(dtype, SHAPES)), BINS)
def test_integers(array: np.ndarray, bins: int) -> None:
    """Counted one by one in Python's integers, which are exact."""
    found = histogram(array, bins)
    values = [int(value) for value in array.ravel()]
    if not values:
        assert found.edges == ()
        return
    low = min(values)
    width = -(-(max(values) - low + 1) // bins)
    counts = [0] * len(found.counts)
    for value in values:
        counts[(value - low) // width] += 1
    assert found.counts == tuple(counts)
    assert len(found.counts) <= bins
    assert found.edges[0] == low
    assert found.are_values == (width == 1)


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, 3 * BLOCK + 5])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_blocks(count: int, order: str) -> None:
    values = np.random.default_rng(count).normal(size=(count, 2)).astype(np.float32)
    array = np.asfortranarray(values) if order == "F" else values[::-1, ::2] if order == "strided" else values
    assert histogram(array, 13).counts == tuple(np.histogram(array.astype(np.float64), 13)[0])


def test_booleans() -> None:
    found = histogram(np.array([True, False, True]))
    assert (found.counts, found.edges, found.are_values) == ((1, 2), (0, 1, 2), True)
    assert [line.split()[0] for line in str(found).splitlines()[1:]] == ["false", "true"]


@pytest.mark.parametrize(
    ("array", "edges", "counts"),
    [
        (np.full(7, 1.5), (1.5, 1.5), (7,)),
        (np.array([1.7e308, -1.7e308]), (-1.7e308, 0, 1.7e308), (1, 1)),
        (np.array([1, np.nextafter(1, 2)]), (1, np.nextafter(1, 2)), (2,)),
        (np.array([0, 5e-324]), (0, 5e-324), (2,)),
        (np.array([-(2**63), 2**63 - 1]), (-(2**63), 0, 2**63), (1, 1)),
    ],
)
def test_limits_of_types(array: np.ndarray, edges: tuple[float, ...], counts: tuple[int, ...]) -> None:
    found = histogram(array, 2)
    assert found.counts == counts
    assert found.edges == edges


@pytest.mark.parametrize(
    ("element", "values", "counts"),
    [
        ("i4", [-8, -1, -1, 7], {-8: 1, -1: 2, 7: 1}),
        ("u4", [0, 15, 15], {0: 1, 15: 2}),
        ("u1", [0, 1, 1, 1, 0, 1, 0, 1], {0: 3, 1: 5}),
        ("i8", [-3, -3, 2], {-3: 2, 2: 1}),
    ],
)
def test_constants_of_few_bits_have_a_bar_for_each_value(
    element: str, values: list[int], counts: dict[int, int]
) -> None:
    found = _constant(np.array(values, np.int8 if min(values) < 0 else np.uint8), element)
    assert found.element == element
    assert {round(edge): count for edge, count in zip(found.edges, found.counts, strict=False) if count} == counts


@pytest.mark.parametrize("element", ["f16", "bf16", "f8e4m3", "f8e5m2", "nf4", "f4e2m1"])
def test_constants_of_small_floats(element: str) -> None:
    """All of these types have -1, 0 and 1."""
    found = _constant(np.array([-1, 0, 0, 1], np.float16 if element == "f16" else np.float32), element)
    assert (found.edges[0], found.edges[-1], found.statistics.zeros) == (-1, 1, 2)
    assert sum(found.counts) == 4


def _constant(values: np.ndarray, element: str) -> Histogram:
    builder = irexec.Builder("m")
    builder.result(builder.constant(values, element, "w"))
    model = builder.model()
    return constant_histogram(find_constant(model, "w"))


def test_a_constant_that_is_not_there_or_no_constant() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (1,), "x"), name="y"))
    model = builder.model()
    with pytest.raises(InputError, match="there is no constant 'w'"):
        find_constant(model, "w")
    with pytest.raises(InputError, match=r"'y' is a Relu, not a Constant: irexec infer --tensor"):
        find_constant(model, "y")


@pytest.mark.parametrize("bins", [0, -1, True, 1.5, 10_001])
def test_wrong_bins(bins: int) -> None:
    with pytest.raises(InputError, match="expected an integer from 1 to 10000"):
        histogram(np.zeros(3), bins)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("ascii", [False, True])
def test_lines_fit_and_bars_show_the_largest(width: int, ascii: bool) -> None:
    values = np.concatenate([np.zeros(5000), np.random.default_rng(0).normal(size=1000), [np.nan, np.inf]])
    drawn = display.lines(histogram(values, name="x").sections(), display.TextFormat(width, ascii=ascii))
    lines = ["".join(text for _, text in pieces) for pieces in drawn]
    bars = [line for line in lines if " .. " in line]
    assert len(bars) == 20
    assert max(map(len, bars)) <= width
    assert all(line.isascii() for line in lines) or not ascii
    # Zeros do not shorten the bars of the others.
    longest = max(range(20), key=lambda i: sum(bars[i].count(c) for c in "█#"))
    others = np.histogram(
        values[np.isfinite(values) & (values != 0)], 20, (np.nanmin(values), values[np.isfinite(values)].max())
    )[0]
    assert others[longest] == others.max()
    assert max(map(len, lines)) <= width
    text = " ".join(line.strip() for line in lines)
    assert text.endswith("5,000 (83.3%) zero (drawn lighter); 1 (0.0%) NaN; 1 (0.0%) inf")


def test_what_is_said_without_bars() -> None:
    assert str(histogram(np.zeros(0, np.float32), name="x")) == "x: float32[0], 0 elements\nthere are no elements"
    assert str(histogram(np.array([np.nan, np.inf]))).endswith("1 (50.0%) NaN; 1 (50.0%) inf; no element is finite")
    assert str(histogram(np.array(["a"], object))).endswith("strings have no histogram")


def test_html() -> None:
    assert "<svg" in histogram(np.arange(10))._repr_html_()
    assert "no element" in histogram(np.zeros(0))._repr_html_()
