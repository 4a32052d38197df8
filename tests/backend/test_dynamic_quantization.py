"""Rows that are quantised by groups before a product with compressed weights, as OpenVINO's CPU plugin does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.analysis.builder import Builder
from irexec.errors import InputError
from irexec.native.library import library, path_of
from irexec.native.sources import is_supported, levels
from irexec.tools.judge import judge
from tests.support.paths import ROOT
from tests.support.processes import said

RANGES = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}
Network = tuple[irexec.Model, np.ndarray]


def network(
    element: str = "u4",
    depth: int = 256,
    columns: int = 17,
    *,
    weights: int = 0,
    zeros: bool = False,
    transpose: bool = True,
    rows: int | str = "?",
    half: bool = False,
) -> Network:
    """MatMul of rows by compressed weights with groups of ``weights`` of them, and a bias; and the weights (columns, depth) in f64."""
    rng = np.random.default_rng(depth + columns)
    groups = depth // weights if weights else 1
    lead = (columns, groups) if weights else (columns,)
    shape, size = (*lead, depth // groups), (*lead, 1)
    kind = np.float16 if half else np.float32
    integers = rng.integers(*RANGES[element], shape)
    zero = rng.integers(*RANGES[element], size) if zeros else np.zeros(size, int)
    scale = (rng.random(size) * 0.01 + 0.005).astype(kind)
    exact = ((integers - zero) * scale.astype(np.float64)).reshape(columns, depth)
    axes = tuple(range(len(shape))) if transpose else (*range(1, len(shape)), 0)
    stored, zero, scale = (array.transpose(axes) for array in (integers, zero, scale))
    computed = "f16" if half else "f32"
    value = opset.convert(opset.constant(stored, element), destination_type=computed)
    if zeros:
        value = opset.subtract(value, opset.convert(opset.constant(zero, element), destination_type=computed))
    value = opset.multiply(value, opset.constant(np.ascontiguousarray(scale)))
    if weights:
        value = opset.reshape(value, np.array([columns, depth] if transpose else [depth, columns]), special_zero=False)
    if half:
        value = opset.convert(value, destination_type="f32")
    x = opset.parameter([rows, depth], "f32", "x")
    bias = (5 + rng.standard_normal(columns)).astype(np.float32)
    product = opset.matmul(x, value, transpose_a=False, transpose_b=transpose)
    return irexec.Model([opset.relu(opset.add(product, bias))], [x]), np.hstack([exact, bias[:, None]])


def expected(x: np.ndarray, weights: np.ndarray, group: int) -> np.ndarray:
    """The product of rows that are integers times the largest magnitude of each group over 127, in f64."""
    made = np.zeros(x.shape)
    for first in range(0, x.shape[1], group):
        part = x[:, first : first + group]
        scale = (np.abs(part).max(1, keepdims=True) / np.float32(127)).astype(np.float32)
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
        made[:, first : first + group] = np.rint(part * inverse) * scale.astype(np.float64)
    return np.maximum(made @ weights[:, :-1].T + weights[:, -1], 0)


def rows_of(count: int, depth: int) -> np.ndarray:
    x = (np.random.default_rng(count).standard_normal((count, depth)) + 0.3).astype(np.float32)
    x[0, :48] = 0
    return x


def run(model: irexec.Model, x: np.ndarray, group: int | None, **options: Any) -> np.ndarray:
    return next(iter(irexec.compile_model(model, dynamic_quantization=group, **options)(x).values()))


def is_near(actual: np.ndarray, exact: np.ndarray, most: float = 2e-6) -> bool:
    return bool(np.abs(actual - exact).max() <= most * np.abs(exact).max())


@pytest.mark.parametrize("count", [1, 5, 33])
@pytest.mark.parametrize(
    ("made", "group"),
    [
        (network("u8"), 32), (network("i8", 100, 5), 48), (network("u8", 136, 64, zeros=True), 64),
        (network("u4", 128, 130, weights=32, zeros=True), 16), (network("i4", 512, 2, weights=128), 128),
        (network("u8", weights=64, transpose=False, zeros=True), 32), (network("i8", transpose=False), 256),
        (network("u4", weights=64, half=True), 32), (network("i4", 1040, 33), 32),
    ],
)  # fmt: skip
def test_products_of_groups(made: Network, group: int, count: int) -> None:
    model, weights = made
    x = rows_of(count, weights.shape[1] - 1)
    exact = expected(x, weights, group)
    assert not is_near(exact, np.maximum(x.astype(np.float64) @ weights[:, :-1].T + weights[:, -1], 0), 2e-5)
    for options in ({"threads": 1}, {"threads": 3}, {"native": False}, {"optimize": False}):
        assert is_near(run(model, x, group, **options), exact), options


def test_the_plan_has_the_kernel_and_keeps_what_follows_in_it() -> None:
    model, _ = network(rows=3)
    plan = irexec.compile_model(model, dynamic_quantization=32).plan
    if library() is None:
        assert [step.operation for step in plan.steps] == ["DynamicMatMul", "Add+Relu"]
        return
    assert [step.operation for step in plan.steps] == ["DynamicMatMul+Add+Relu"]
    assert plan.steps[0].algorithm == "C, product of integers, rows by groups of 32"


@pytest.mark.parametrize(
    ("made", "group", "reason"),
    [
        (network("i8", zeros=True), 32, "its weights are i8 with zero points"),
        (network("u8", columns=1), 32, "its weights are one column"),
        (network("u8", 48), 64, "its 48 values of a row are fewer than a group of 64"),
        (network("u4", weights=64), 48, "its groups of 64 weights are not a multiple of 48"),
    ],
)
def test_elsewhere_the_plan_says_why(made: Network, group: int, reason: str) -> None:
    model, weights = made
    plan = irexec.compile_model(model, dynamic_quantization=group).plan
    assert [one.reason for one in plan.reasons() if one.pass_name == "quantise activations"] == [reason]
    x = rows_of(4, weights.shape[1] - 1)
    assert np.array_equal(run(model, x, group), run(model, x, None))


def test_quantised_data_is_left_alone() -> None:
    x = opset.parameter([2, 64], "f32", "x")
    ends = [np.float32(-1), np.float32(1)] * 2
    weights = opset.multiply(
        opset.convert(opset.constant(np.ones((3, 64), int), "i8"), destination_type="f32"), np.float32([[0.1]] * 3)
    )
    data = opset.fake_quantize(x, *ends, levels=256)
    model = irexec.Model([opset.matmul(data, weights, transpose_a=False, transpose_b=True)], [x])
    reasons = irexec.compile_model(model, dynamic_quantization=32).plan.reasons()
    assert "its data is quantised already" in [one.reason for one in reasons]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_row_with_nan_or_infinity_is_nan_and_no_other(native: bool, wrong: float) -> None:
    model, _ = network(rows=5)
    x = rows_of(5, 256)
    right = run(model, x, 32, native=native)
    x[3, 7] = wrong
    found = run(model, x, 32, native=native)
    assert np.isnan(found[3]).all()
    assert np.array_equal(np.delete(found, 3, 0), np.delete(right, 3, 0))


@pytest.mark.parametrize("group", [0, 8, 40, -16, True, 1 << 20])
def test_groups_of_another_size_are_refused(group: int) -> None:
    with pytest.raises(
        InputError, match=f"dynamic_quantization is {group}, expected a multiple of 16 from 16 to 32896"
    ):
        irexec.compile_model(network()[0], dynamic_quantization=group)


BITS = """
import hashlib
from tests.backend.test_dynamic_quantization import network, rows_of, run

for arguments in (("u4", 256, 17), ("i8", 100, 130), ("u8", 520, 64)):
    for count in (1, 4, 29):
        for threads in (1, 2, 4):
            found = run(network(*arguments)[0], rows_of(count, arguments[1]), 48, threads=threads)
            print(arguments, count, hashlib.sha256(found.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_all_builds_have_the_same_bits() -> None:
    found = []
    for level in levels():
        if is_supported(level) and path_of(level).exists():
            found.append(said(ROOT, "-c", BITS, IREXEC_NATIVE=level.name)[0].splitlines())
    if not found:
        pytest.skip("the C library was not built")
    assert all(each == found[0] for each in found)
    assert len(set(found[0])) == 9


def _has_vnni() -> bool:
    path = Path("/proc/cpuinfo")
    return path.exists() and any(name in path.read_text() for name in ("avx512_vnni", "avx_vnni"))


@pytest.mark.parametrize("group", [32, 48])
@pytest.mark.parametrize(
    "made",
    [network("u8", zeros=True), network("i4", weights=64), network("u4", weights=96, depth=384, transpose=False)],
)
def test_openvino_gives_the_same(made: Network, group: int, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    if not _has_vnni():
        pytest.skip("OpenVINO quantises no rows without VNNI")
    model, weights = made
    irexec.save_model(model, tmp_path / "m.xml")
    x = rows_of(6, weights.shape[1] - 1)
    properties = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": group, "INFERENCE_PRECISION_HINT": "f32"}
    theirs = openvino.Core().compile_model(tmp_path / "m.xml", "CPU", properties)(x)[0]
    assert is_near(run(model, x, group), theirs)


def _recorded(path: Path, model: irexec.Model, x: np.ndarray, product: np.ndarray) -> str:
    add, relu = model.nodes[-3:-1] if model.nodes[-1].type == "Result" else model.nodes[-2:]
    bias = add.inputs[1].node.array if add.inputs[1].node.constant is not None else add.inputs[0].node.array
    total = product + bias
    matmul = next(node for node in model.nodes if node.type == "MatMul")
    names = {matmul.name: product, add.name: total, relu.name: np.maximum(total, 0)}
    np.savez(path, x=x, **names)
    return str(path)


def _product(x: np.ndarray, weights: np.ndarray, group: int) -> np.ndarray:
    """The same as ``expected``, without bias."""
    bare = np.hstack([weights[:, :-1], np.zeros((len(weights), 1))])
    positive, negative = expected(x, bare, group), expected(x, -bare + 0.0, group)
    return (positive - negative).astype(np.float32)


@pytest.mark.parametrize("element", ["u4", "i8"])
def test_judge_holds_a_runtime_to_it(element: str, tmp_path: Path) -> None:
    model, weights = network(element, 512, 40, weights=64, rows=16)
    x = rows_of(16, 512)
    product = _product(x, weights, 32)

    def verdict(made: np.ndarray, group: int | None = 32) -> tuple[str, list[str]]:
        path = _recorded(tmp_path / "r.npz", model, x, made)
        found = judge(model, {"x": x}, runtime=path, dynamic_quantization=group, functions="ieee")
        return found.verdict, [one.layer.type for one in found.at]

    assert verdict(product) == ("agrees", [])
    # A processor without instructions for it quantises nothing, and rounding in another way is not accused.
    plain = (x.astype(np.float64) @ weights[:, :-1].T).astype(np.float32)
    assert verdict(plain)[0] == "precision"
    assert verdict(product, None) == ("bug", ["MatMul"])
    # The scale of one group of one row is doubled.
    twice = product.copy()
    part = np.zeros_like(x)
    part[5, 64:96] = x[5, 64:96]
    twice[5] += _product(part, weights, 32)[5]
    assert verdict(twice) == ("bug", ["MatMul"])
    # One row has the activations of another one.
    moved = product.copy()
    moved[7] = product[8]
    assert verdict(moved) == ("bug", ["MatMul"])


@pytest.mark.slow
def test_judge_does_not_accuse_openvino() -> None:
    pytest.importorskip("openvino")
    for group in (None, 32, 64):
        model, _ = network("u4", 256, 33, weights=64, zeros=True, rows=9)
        found = judge(model, {"x": rows_of(9, 256)}, dynamic_quantization=group)
        # On a processor without VNNI it quantises nothing.
        allowed = ("agrees", "precision") if group else ("agrees",)
        assert found.verdict in allowed, (group, found.sentence)


def test_rows_stay_in_one_piece_behind_a_convolution() -> None:
    """A layout with rows as columns, as the convolution writes them by itself, would be copied by each product."""
    b, rng = Builder("m"), np.random.default_rng(0)
    filters = rng.normal(size=(96, 16, 3)).astype(np.float32)
    pads: dict[str, Any] = {"strides": (1,), "pads_begin": (1,), "pads_end": (1,), "dilations": (1,)}
    x = b.emit("Convolution", b.parameter("f32", (1, 16, 150), "x"), filters, **pads)
    x = b.emit("Transpose", x, np.array([0, 2, 1]))
    for _ in range(2):
        rows = b.emit("MVN", x, np.array([-1]), normalize_variance=True, eps=1e-5, eps_mode="INSIDE_SQRT")
        stored = b.emit("Convert", rng.integers(-127, 128, (96, 96)).astype(np.int8), destination_type="f32")
        weights = b.emit("Multiply", stored, np.full((96, 1), 0.01, np.float32))
        x = b.emit("Add", x, b.emit("MatMul", rows, weights, transpose_b=True))
    b.result(x, "y")
    plan = irexec.compile_model(b.model(), threads=1, dynamic_quantization=32).program.plan((), None)
    products = [step.report for step in plan.steps if "Dynamic" in step.report.operation]
    assert [report.orders for report in products] == [(None,), (None,)]
