"""Products whose operands are rounded to bf16, beside exact products of rounded operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.errors import InputError
from irexec.native.library import library

HAS_PAIRS = (found := library()) is not None and found.has_pairs
needs_pairs = pytest.mark.skipif(not HAS_PAIRS, reason="the processor has no products of bf16")
# A tile, one row more, single rows, columns of one to three vectors, and depths that are not whole vectors.
SIZES = [(24, 16, 48), (25, 10, 33), (1, 64, 192), (97, 34, 16), (3, 2, 5)]


@pytest.fixture(autouse=True)
def _preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose them for small products, too."""
    if HAS_PAIRS:
        from irexec.backend.native import pairs

        monkeypatch.setattr(pairs, "_TIME", -1e6)


def bf16(x: np.ndarray) -> np.ndarray:
    """The nearest values of 8 significant bits, in f64."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.round(fraction * 256) / 256, exponent)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def check(model: irexec.Model, x: np.ndarray, exact: np.ndarray, size: np.ndarray) -> None:
    """The result is as near as sums in f32 are to the exact one, on any number of threads; ``size`` has magnitudes."""
    compiled = [irexec.compile_model(model, precision="bf16", threads=threads) for threads in (1, 3)]
    assert all("of bf16" in str(one.plan) for one in compiled)
    first, second = (one(x)[0] for one in compiled)
    np.testing.assert_array_equal(first, second)
    assert (abs(first - exact) <= 1e-6 * size + 1e-30).all()
    in_f32 = irexec.infer(model, x)[0]
    assert abs(in_f32 - exact).max() > 1e-4 * size.max()


@needs_pairs
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("side", [0, 1])
def test_products(sizes: tuple[int, int, int], side: int) -> None:
    (rows, depth, columns), images = sizes, 1 if sizes[0] == 1 else 2
    x, weights, residual = random(images, rows, depth), random(depth, columns), random(images, rows, columns)
    given = opset.parameter(x.shape, "f32", "x")
    product = opset.matmul(
        given, opset.constant(weights.T if side else weights), transpose_a=False, transpose_b=bool(side)
    )
    model = irexec.Model([opset.relu(opset.add(product, opset.constant(residual)))], [given])
    exact = np.maximum(bf16(x) @ bf16(weights) + residual, 0)
    check(model, x, exact, abs(x) @ abs(weights) + abs(residual))


@needs_pairs
@pytest.mark.parametrize(("kernel", "stride", "groups"), [(1, 1, 1), (1, 2, 1), (5, 1, 1), (3, 2, 2), (2, 1, 2)])
def test_convolutions(kernel: int, stride: int, groups: int) -> None:
    # What the second convolution rounds is exact in f32, with numbers in the middle between two of bf16.
    x, first = (np.round(16 * random(*shape)) / 16 for shape in ((2, 5, 17, 13), (40, 5, 1, 1)))
    weights = random(groups, 48, 40 // groups, kernel, kernel)
    given = opset.parameter(x.shape, "f32", "x")
    # Five channels do not make pairs. The second convolution reads channels last.
    ones: dict[str, Any] = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    windows = {**ones, "strides": [stride, stride], "pads_begin": [1, 0]}
    data = opset.relu(opset.convolution(given, opset.constant(first), **ones))
    model = irexec.Model([opset.group_convolution(data, opset.constant(weights), **windows)], [given])
    inner = np.maximum(np.einsum("nchw,oc->nohw", x, first[..., 0, 0], dtype=np.float64), 0)
    padded = np.pad(inner, ((0, 0), (0, 0), (1, 0), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    views = views.reshape(2, groups, -1, *views.shape[2:])

    def product(views: np.ndarray, weights: np.ndarray) -> np.ndarray:
        whole = np.einsum("ngchwij,gocij->ngohw", views, weights)
        return whole.reshape(2, -1, *whole.shape[3:])

    size = product(abs(views), abs(weights.astype(np.float64)))
    check(model, x, product(bf16(views.astype(np.float32)), bf16(weights)), size)


@needs_pairs
def test_values_that_are_not_finite() -> None:
    x = np.array([[np.inf, 1], [np.nan, 1], [-3.4e38, 1], [1e-40, 1]] * 8, np.float32)
    given = opset.parameter(x.shape, "f32", "x")
    model = irexec.Model([opset.matmul(given, opset.constant(np.ones((2, 16), np.float32)))], [given])
    found = irexec.compile_model(model, precision="bf16")(x)[0]
    np.testing.assert_array_equal(found[:4, 0], np.array([np.inf, np.nan, -np.inf, 1], np.float32))


@needs_pairs
def test_judge_holds_it_to_bf16(tmp_path: Path) -> None:
    x, weights = random(1, 64, 128), random(96, 128)
    given = opset.parameter(x.shape, "f32", "x")
    model = irexec.Model([opset.matmul(given, opset.constant(weights), transpose_b=True)], [given])
    tensors = {model.results[0].inputs[0].node.name: irexec.compile_model(model, precision="bf16")(x)[0]}
    np.savez(tmp_path / "made.npz", **tensors)
    for arithmetic, verdict in (("bf16", "agrees"), ("f32", "bug")):
        assert (
            irexec.judge(model, {"x": x}, runtime=str(tmp_path / "made.npz"), arithmetic=arithmetic).verdict == verdict
        )


@needs_pairs
def test_compare_knows_the_precision() -> None:
    given = opset.parameter([1, 64, 128], "f32", "x")
    model = irexec.Model([opset.matmul(given, opset.constant(random(96, 128)), transpose_b=True)], [given])
    options = irexec.CompareOptions(a_runtime="reference", precision="bf16")
    found = irexec.compare(model, inputs={"x": random(1, 64, 128)}, options=options)
    assert found.agrees and any(row.agreement.largest for row in found.results)


def test_it_is_refused_without_such_products(monkeypatch: pytest.MonkeyPatch) -> None:
    given = opset.parameter([1, 2], "f32", "x")
    model = irexec.Model([opset.matmul(given, opset.constant(np.ones((2, 2), np.float32)))], [given])
    refused = "for which C kernels need a processor with AVX-512 BF16; here are "
    for options in ({"native": False}, {"optimize": False}):
        with pytest.raises(InputError, match=refused + "reference kernels or NumPy alone"):
            irexec.compile_model(model, precision="bf16", **options)
    if found is not None:
        monkeypatch.setattr(found, "has_pairs", False)
        with pytest.raises(InputError, match=f"{refused}C kernels for {found.level.name}"):
            irexec.compile_model(model, precision="bf16")
