"""Values of other runtimes lie inside of the bounds, and planted faults outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irexec.analysis.portability import DIFFERENCES
from irexec.bounds import ARITHMETICS, FUNCTIONS, Interval, arithmetic
from irexec.bounds.readings import READINGS
from irexec.conformance import case_bounds, cases
from irexec.testing import Case, Typed, case
from irexec.testing.laws import kernel, read_only
from irexec.testing.random_cases import random_cases
from tests.bounds.opponents import Opponents, Tally, judge
from tests.bounds.rows import row_bounds
from tests.support.cases import families

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


# Bounds of operations of language models exclude the faults that people make; tests.bounds.test_soundness has what is
# right.


Change = Callable[[np.ndarray], np.ndarray]
_ROWS = {
    f"{row.type} {row.name}": row
    for family in ("language", "recurrences")
    for row in families()[family]
    if isinstance(row, Case)
}
_PAGED = "PagedAttentionExtension"


def later(x: np.ndarray) -> np.ndarray:
    """The table one position late."""
    return np.roll(x, 1, -2)


def times(factor: float) -> Change:
    return lambda x: (x * factor).astype(x.dtype)


# A row, its outputs, and a fault: changed inputs by their index, or attributes.
FAULTS: list[tuple[str, Mapping[int, Change], Mapping[str, str]]] = [
    ("RMS scale", {}, {"epsilon": "1.1e-5"}),
    ("RMS scale", {1: lambda x: x + np.float32(1e-5)}, {}),
    ("RoPE halves", {1: later, 2: later}, {}),
    ("RoPE halves", {2: np.negative}, {}),
    ("RoPE positions", {3: lambda x: (x + 1) % 9}, {}),
    ("RoPE neighbours", {1: lambda x: np.roll(x, 4, -1)}, {}),
    (f"{_PAGED} limited context", {12: lambda x: x + 1}, {}),
    (f"{_PAGED} two sequences", {9: times(1.0001)}, {}),
    (f"{_PAGED} two sequences", {1: later}, {}),
    (f"{_PAGED} two sequences", {3: later}, {}),
    (f"{_PAGED} two sequences", {4: times(1.0001)}, {}),
    (f"{_PAGED} sliding window", {10: lambda x: x - 1}, {}),
    (f"{_PAGED} slopes", {11: times(1.001)}, {}),
    (f"{_PAGED} sinks", {20: np.zeros_like}, {}),
    (f"{_PAGED} tree of tokens", {26: np.ones_like}, {}),
    (f"{_PAGED} images", {25: np.zeros_like}, {}),
    ("GatedDeltaNet plain", {4: times(0.9999)}, {}),
    ("GatedDeltaNet plain", {5: times(1.0001)}, {}),
    ("GatedDeltaNet plain", {3: later}, {}),
    ("GatedDeltaNet normalized", {}, {"k_l2_norm_eps": "0.2001"}),
    ("SelectiveSSM plain", {0: times(1.0001)}, {}),
    ("SelectiveSSM plain", {4: later}, {}),
    ("AUGRUCell plain", {5: lambda x: 1 - x}, {}),
    ("AUGRUSequence plain", {6: lambda x: np.roll(x, 1, 1)}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes"), FAULTS)
def test_a_fault_is_outside(name: str, inputs: Mapping[int, Change], attributes: dict[str, Any]) -> None:
    row = _ROWS[name]
    bound = row_bounds(row, ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    changed = tuple(
        Typed(x.element, np.asarray(inputs[i](x.array))) if i in inputs else x for i, x in enumerate(row.inputs)
    )
    wrong = replace(row, inputs=changed, attributes=row.attributes | attributes)
    assert bound.outside(kernel(wrong, read_only(wrong))[0]).any()


@pytest.mark.parametrize("tokens", [200])
def test_the_bound_of_a_long_delta_rule_does_not_grow(tokens: int) -> None:
    """With normalized keys an error decays with the state."""
    rng = np.random.default_rng(2)
    row = _ROWS["GatedDeltaNet normalized"]
    shapes = [(1, tokens, *x.array.shape[2:]) if i != 3 else (1, *x.array.shape[1:]) for i, x in enumerate(row.inputs)]
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    arrays[4], arrays[5] = -np.abs(arrays[4]), np.abs(arrays[5])
    long = replace(row, inputs=tuple(Typed(x.element, a) for x, a in zip(row.inputs, arrays, strict=True)))
    bound = row_bounds(long, ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    assert not bound.outside(kernel(long, read_only(long))[0]).any()
    assert bound.radius[:, -1].max() < 3 * bound.radius[:, 20].max() < 1e-4


# Bounds have power: faults planted in the results of rows lie outside, and other implementations inside.


_FAMILIES = {
    "deformable convolution": ("DeformableConvolution",),
    "normalization": ("MVN", "GroupNormalization", "NormalizeL2", "GRN", "LRN", "BatchNormInference"),
    "attention": ("ScaledDotProductAttention", "Softmax", "LogSoftmax"),
    "recurrence": ("LSTMCell", "GRUCell", "RNNCell", "LSTMSequence", "GRUSequence", "RNNSequence"),
    "quantization": ("FakeQuantize", "FakeConvert"),
    "resampling": ("Interpolate", "GridSample"),
    "transforms": ("DFT", "IDFT", "RDFT", "IRDFT", "STFT", "ISTFT"),
    "gathering": ("Einsum", "EmbeddingBagOffsetsSum", "EmbeddingSegmentsSum", "EmbeddingBagPacked", "SegmentMax",
                  "ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate"),
    "detections": (
        "DetectionOutput", "MulticlassNms", "GenerateProposals", "ExperimentalDetectronDetectionOutput",
        "ExperimentalDetectronGenerateProposalsSingleImage", "Proposal",
    ),
    "regions": ("ROIPooling", "PSROIPooling", "DeformablePSROIPooling"),
    "functions": ("Swish", "Power", "Tan", "Cosh", "ErfInv", "Mod", "FloorMod", "Round", "ReduceL2", "ReduceProd"),
}  # fmt: skip
_SHARES = {"detections": 0.55, "regions": 0.6}
"""Share of faults outside: rows of detections are a set, so that other rows of it are right, and a bin of a region near
an edge is open."""


@pytest.mark.parametrize("family", _FAMILIES)
@pytest.mark.sampled(4)
def test_planted_faults_are_outside_and_other_arithmetics_inside(family: str) -> None:
    tally = Tally()
    pairs = [pair for pair in sorted(random_cases()) if pair[0] in _FAMILIES[family]]
    assert {type for type, _ in pairs} == set(_FAMILIES[family])
    for row in cases(pairs, 100, 6):
        judge(row, Opponents(["reference", "emulated", "half"]), tally)
    assert not [verdict for verdict in tally.verdicts if "outside" in verdict]
    assert tally.found.total() >= _SHARES.get(family, 0.95) * tally.planted.total() > 20
    assert tally.found["wrong scale"] >= 0.95 * tally.planted["wrong scale"]


# Readings of known differences: each contains what OpenVINO gives, and nothing else.


def test_readings_are_of_rows_of_the_portability_table() -> None:
    assert READINGS.keys() <= DIFFERENCES.keys()
    assert {"fails"}.isdisjoint(DIFFERENCES[code].effect for code in READINGS)


# By code: a layer, the value of OpenVINO's CPU plugin by the text of its row, and a value that the row does not explain.
_READING_ROWS: tuple[tuple[str, Case, list, list], ...] = (
    ("IR911", case("Divide", 1, np.int32([-3, 5]), np.int32([2, 2]), id="a", m_pythondiv=True), [-1, 2], [0, 2]),
    ("IR912", case("Less", 1, np.float32([[1, 4], [2, 3]]), np.float32([0, 3.5]), id="a", auto_broadcast="pdpd"),
     [[False, False], [False, True]], [[True, True], [True, True]]),
    ("IR913", case("ReduceSum", 1, np.uint8([200, 100]), np.int64(0), id="a", keep_dims=False), 255, 254),
    ("IR913", case("Subtract", 1, np.uint8([100, 5]), np.uint8([127, 3]), id="a"), [0, 2], [229, 2]),
    ("IR913", case("MatMul", 1, np.int8([[100, 5]]), np.int8([[2], [3]]), id="a"), [[127]], [[-41]]),
    ("IR939", case("FakeQuantize", 1, np.float32([0.01]), *(np.float32(end) for end in (-2.9, 2.6, -2.9, 2.6)), id="a", levels=256), [0.0117651], [0.0118]),
    ("IR1001", case("FakeQuantize", 1, np.float32([1]), *(np.float32(end) for end in (-0.504, 2.046, -0.504, 2.046)), id="a", levels=256), [1.0], [1.002]),
    ("IR1002", case("ScaledDotProductAttention", 13, np.float32([[[1]]]), np.float32([[[1], [1]]]), np.float32([[[1], [2]]]), id="a", causal=True),
     [[[1.5]]], [[[2]]]),
    ("IR946", case("LRN", 1, np.float32([[[1]], [[2]]]).reshape(1, 2, 1, 1), np.int64([1]), id="a", alpha=2.0, beta=1.0,
                   bias=1.5, size=1), [[[[1 / 3]], [[2 / 9]]]], [[[[0.5]], [[0.3]]]]),
    ("IR969", case("Range", 1, np.int32(5), np.int32(8), np.int32(-1), id="a"), [5, 4, 3], [5, 4, 2]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "row", "theirs", "wrong"), _READING_ROWS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_reading_has_the_size_of_its_difference(code: str, row: Case, theirs: list, wrong: list) -> None:
    (right,) = case_bounds(row, ARITHMETICS["f32"])
    (read,) = case_bounds(row, ARITHMETICS["f32"], [code])
    assert isinstance(read, Interval)
    assert not read.outside(np.array(theirs, read.exact.dtype)).any()
    assert read.outside(np.array(wrong, read.exact.dtype)).any()
    if code != "IR939" and isinstance(right, Interval) and right.exact.shape == read.exact.shape:
        assert right.outside(np.array(theirs, right.exact.dtype)).any()


def test_a_cell_is_read_without_input_forget() -> None:
    """Gates of 3/4 to forget and 1/2 for the input, a candidate of 1/2: the cell is 3/4 + 1/4, where the coupled gate
    of the specification gives less."""
    one, zeros = np.float32([[1]]), np.zeros((4, 1), np.float32)
    gates = np.float32([np.log(3), 0, np.arctanh(0.5), 0])
    row = case("LSTMCell", 1, one, one, one, zeros, zeros, gates, id="a", hidden_size=1, input_forget=True)
    _, right = case_bounds(row, ARITHMETICS["f32"])
    _, read = case_bounds(row, ARITHMETICS["f32"], ["IR925"])
    assert isinstance(right, Interval) and isinstance(read, Interval)
    assert right.outside(one).all() and not read.outside(one).any()
