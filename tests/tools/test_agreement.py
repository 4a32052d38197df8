"""Agreement of two tensors, histograms, and what is reported of results."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import irexec
from irexec import InputError, display
from irexec.cli.main import run
from irexec.tools.arrays import agreement
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.arrays.statistics import BLOCK, Histogram, constant_histogram, find_constant, histogram
from irexec.tools.run.results import class_axis, describe, predictions, read_labels
from tests.support.paths import DIGITS

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


# Histograms: what NumPy counts, whatever the type; integers exactly; everything that is not finite apart.


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


# What is reported of results.


CLASSIFIER = DIGITS / "classifier.xml"


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((10,), 0), ((1, 1000), 1), ((8, 1000), 1), ((1, 1000, 1, 1), 1), ((1, 1, 1, 1000), 3), ((1, 7, 64), 2),
        ((1, 21, 32, 32), 1), ((2, 1, 5), 2), ((1, 1), 1),
    ],
)  # fmt: skip
def test_the_axis_of_the_classes(shape: tuple[int, ...], axis: int) -> None:
    assert class_axis(shape) == axis


def test_classes_are_ranked_at_every_position() -> None:
    scores = np.array([[[1, 5, 3], [9, 2, 4]]], np.float32)
    found = [(p.position, p.rank, p.index, p.label, p.score) for p in predictions({"y": scores}, 2, ["a", "b", "c"])]
    assert found == [((0, 0), 1, 1, "b", 5), ((0, 0), 2, 2, "c", 3), ((0, 1), 1, 0, "a", 9), ((0, 1), 2, 2, "c", 4)]
    by_column = [(p.position, p.index) for p in predictions({"y": scores}, 1, axis=1)]
    assert by_column == [((0, 0), 1), ((0, 1), 0), ((0, 2), 1)]


def test_ties_keep_their_order_and_nan_comes_last() -> None:
    assert [p.index for p in predictions({"y": np.array([2, np.nan, 2, 3])}, 4)] == [3, 0, 2, 1]


def test_what_has_no_classes_is_left_out() -> None:
    results = {"scalar": np.float32(1) * np.ones(()), "empty": np.zeros((1, 0)), "text": np.array(["a"], object)}
    assert predictions(results, 1) == []


def test_too_few_labels_and_axes_that_do_not_exist() -> None:
    with pytest.raises(
        InputError, match=r"there are 10 labels for the 1000 classes of result 'y' of shape \[1, 1000\]"
    ):
        predictions({"y": np.zeros((1, 1000))}, 1, ["label"] * 10)
    with pytest.raises(InputError, match=r"--axis 2 is not an axis of result 'y'"):
        predictions({"y": np.zeros((1, 10))}, 1, axis=2)


def test_the_length_of_the_list_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is an image has classes at each pixel: a record takes a thousand times the memory of the value."""
    results = {"y": np.zeros((1, 1000)), "mask": np.zeros((1, 3, 600, 1000), np.float16)}
    message = (
        r"^1,800,000 classes would be listed for result 'mask' of shape \[1, 3, 600, 1000\], "
        r"and 1,000,000 in all is the limit: -o writes the values themselves$"
    )
    with pytest.raises(InputError, match=message):
        predictions(results, 5)
    monkeypatch.setattr("irexec.tools.run.results.PREDICTIONS", 601)
    results["mask"] = results["mask"][:, :, :20, :30]
    assert len(predictions(results, 1)) == 1 + 600
    with pytest.raises(InputError, match=r"^1,800 classes .* and 601 in all is the limit"):
        predictions(results, 5)


@pytest.mark.parametrize("count", [9, 0])
def test_too_few_labels_are_wrong_usage(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.txt").write_text("label\n" * count)
    out = tmp_path / "out.npz"
    assert (
        run(
            [
                "infer", str(CLASSIFIER), "-i", "random", "--topk", "1", "--labels", str(tmp_path / "labels.txt"),
                "-o", str(out),
            ]
        )
        == 2
    )  # fmt: skip
    assert f"there are {count} labels for the 10 classes" in capsys.readouterr().err
    assert not out.exists()


def test_a_signalling_nan_is_a_nan() -> None:
    """Its conversion to another float is an invalid operation, of which NumPy warns."""
    signalling = np.array([[0x7F800001, 0x3F800000]], np.uint32).view(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = describe("y", signalling)
        assert (line.nans, line.min, line.max) == (1, 1, 1)
        assert [p.index for p in predictions({"y": signalling}, 1)] == [1]


def test_labels_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes("\ufeffcat\r\ndog\n".encode())
    assert read_labels(str(tmp_path / "labels.txt")) == ["cat", "dog"]
