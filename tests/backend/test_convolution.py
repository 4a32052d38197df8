"""Fast kernels of convolutions against the reference kernels."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from irexec.analysis.builder import Builder
from irexec.backend.calls import NativeKernel
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.convolution import depthwise
from irexec.backend.convolution import windows as depthwise_windows
from irexec.backend.convolution.columns import Columns
from irexec.backend.convolution.depthwise import DepthwiseProducts
from irexec.backend.convolution.filter_weights import equal_outputs
from irexec.backend.convolution.geometry import blocks_of, pixels_of
from irexec.backend.convolution.windows import DepthwiseWindows
from irexec.backend.convolution.winograd import Winograd, minimal_filtering
from irexec.backend.kernel import KernelContext
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, check_kernels, task_of
from tests.support.convolutions import (
    bias_residual_relu,
    check_candidates,
    check_with_chain,
    operands_of,
    random_arrays,
)
from tests.support.passes import run_kernel

ONES = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
PADS = ONES | {"pads_begin": (1, 1), "pads_end": (1, 1)}

# Shapes of data and filter, attributes, algorithms that there must be among others.
ROWS = [
    ("1x1", (2, 24, 9, 7), (32, 24, 1, 1), ONES, {"1x1 product"}),
    ("1x1, grid of small products", (1, 40, 40, 40), (48, 40, 1, 1), ONES, {"1x1 product"}),
    ("1x1, grid with a rest", (1, 40, 37, 29), (40, 40, 1, 1), ONES, {"1x1 product"}),
    ("1x1, few pixels", (1, 256, 5, 5), (512, 256, 1, 1), ONES, {"1x1 product"}),
    ("1x1, several blocks", (1, 64, 48, 48), (192, 64, 1, 1), ONES, {"1x1 product"}),
    ("1x1, stride 2", (1, 16, 9, 8), (8, 16, 1, 1), ONES | {"strides": (2, 2)}, {"columns"}),
    ("1x1, padded", (1, 3, 4, 4), (5, 3, 1, 1), PADS, {"columns"}),
    ("3x3", (1, 16, 12, 12), (24, 16, 3, 3), PADS, {"columns", "Winograd F(2x2, 3x3)", "Winograd F(4x4, 3x3)", "Winograd F(6x6, 3x3)"}),
    ("3x3, odd sizes", (2, 5, 11, 13), (7, 5, 3, 3), PADS, {"columns", "Winograd F(4x4, 3x3)"}),
    ("3x3, several blocks", (1, 32, 50, 54), (48, 32, 3, 3), PADS, {"columns", "Winograd F(4x4, 3x3)"}),
    ("3x3, uneven pads", (1, 8, 9, 9), (8, 8, 3, 3), ONES | {"pads_begin": (2, 0), "pads_end": (0, 3)}, {"Winograd F(4x4, 3x3)"}),
    ("3x3, stride 2", (1, 16, 15, 14), (8, 16, 3, 3), PADS | {"strides": (2, 2)}, {"columns"}),
    ("3x3, same_upper, stride 2", (1, 4, 10, 10), (8, 4, 3, 3), ONES | {"auto_pad": "same_upper", "strides": (2, 2)}, {"columns"}),
    ("3x3, dilation 2", (1, 8, 12, 11), (8, 8, 3, 3), ONES | {"dilations": (2, 2), "pads_begin": (2, 2), "pads_end": (2, 2)}, {"columns"}),
    ("7x7 stem", (1, 3, 40, 44), (16, 3, 7, 7), ONES | {"strides": (2, 2), "pads_begin": (3, 3), "pads_end": (3, 3)}, {"columns"}),
    ("stride 3 of kernel 2", (1, 4, 11, 14), (4, 4, 2, 2), ONES | {"strides": (3, 3)}, {"columns"}),
    ("5x1", (1, 6, 12, 9), (6, 6, 5, 1), ONES | {"pads_begin": (2, 0), "pads_end": (2, 0)}, {"columns"}),
    ("pads beyond the data", (1, 2, 3, 3), (2, 2, 3, 3), ONES | {"pads_begin": (7, 7), "pads_end": (5, 6), "strides": (2, 3)}, {"columns"}),
    ("1-D", (1, 20, 50), (12, 20, 3), {"strides": (1,), "dilations": (1,), "pads_begin": (1,), "pads_end": (1,)}, {"columns"}),
    ("1-D, stride 2", (1, 20, 51), (12, 20, 3), {"strides": (2,), "dilations": (1,), "pads_begin": (1,), "pads_end": (1,)}, {"columns"}),
    ("3-D", (1, 4, 6, 7, 8), (5, 4, 3, 3, 3), {"strides": (1, 1, 2), "dilations": (1, 2, 1), "pads_begin": (1, 1, 1), "pads_end": (1, 1, 0)}, {"columns"}),
]  # fmt: skip

GROUPED = [
    ("1x1", (2, 24, 9, 7), (3, 10, 8, 1, 1), ONES, {"1x1 product"}),
    ("3x3", (1, 32, 14, 14), (8, 4, 4, 3, 3), PADS, {"columns"}),
    ("3x3, stride 2", (2, 12, 9, 9), (3, 2, 4, 3, 3), PADS | {"strides": (2, 2)}, {"columns"}),
    ("more outputs than inputs", (1, 4, 8, 8), (4, 3, 1, 3, 3), PADS, {"columns"}),
]


def _rows():
    return [pytest.param(kind, *row[1:], id=f"{kind}, {row[0]}") for kind, rows in KINDS for row in rows]


KINDS = (("Convolution", ROWS), ("GroupConvolution", GROUPED))


@pytest.mark.parametrize(("kind", "data", "filter", "attributes", "algorithms"), _rows())
@pytest.mark.parametrize("constants", [(1,), ()], ids=["known weights", "weights as input"])
def test_candidates(kind, data, filter, attributes, algorithms, constants):
    seen = check_with_chain(kind, data, filter, attributes, constants)
    if constants:
        assert algorithms <= seen


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-3), (np.float64, 1e-12)])
def test_other_float_types(dtype, tolerance):
    """float16 is computed in float32 and rounded before the chain."""
    x, weights, rng = random_arrays((1, 8, 12, 12), (16, 8, 3, 3), dtype)
    task = task_of("Convolution", "opset1", [x, weights], PADS, constants=[1])
    definition = resolve("Convolution", "opset1")
    wide = definition(x.astype(np.float64), weights.astype(np.float64), **definition.arguments(PADS))
    assert check_candidates(task, [x, weights], wide.astype(dtype), tolerance=tolerance)
    operands = operands_of(wide.shape, np.dtype(dtype), rng)
    chained = task_of(
        "Convolution",
        "opset1",
        [x, weights],
        PADS,
        constants=[1],
        chain=bias_residual_relu(np.dtype(dtype)),
        operands=operands,
    )
    check_candidates(
        chained, [x, weights], np.maximum(wide + operands[0] + operands[1], 0).astype(dtype), operands, 2 * tolerance
    )


@pytest.mark.parametrize("channels", [64, 65, 256])
def test_the_error_is_bounded_however_many_channels_are_summed(channels):
    """Large tiles of Winograd are for few channels: their error grows with the root of the number."""
    x, weights, _ = random_arrays((1, channels, 12, 12), (32, channels, 3, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.float64))
    task = task_of("Convolution", "opset1", [x, weights], ONES, constants=[1])
    seen = check_candidates(task, [x, weights], expected.astype(np.float32), tolerance=1e-5)
    assert {"columns", "Winograd F(4x4, 3x3)"} <= seen
    assert ("Winograd F(6x6, 3x3)" in seen) == (channels <= 64)


def test_one_constant_is_packed_for_each_way_in_which_it_is_read():
    """The filter of a convolution of volumes is that of a convolution of images in groups, too."""
    rng, store = np.random.default_rng(0), ConstantStore()
    weights = rng.standard_normal((2, 3, 4, 3, 3)).astype(np.float32)
    volumes, images = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 5, 4, 4), (1, 8, 5, 5)))
    source = ConstantSource.of(weights, F32)
    blocks = np.lib.stride_tricks.sliding_window_view(volumes, (4, 3, 3), axis=(2, 3, 4))
    windows = np.lib.stride_tricks.sliding_window_view(images.reshape(1, 2, 4, 5, 5), (3, 3), axis=(3, 4))
    three = {name: tuple(value[:1]) * 3 for name, value in ONES.items()}
    for type, x, attributes, expected in (
        ("Convolution", volumes, three, np.einsum("ncdhwijk,ocijk->nodhw", blocks, weights)),
        ("GroupConvolution", images, ONES, np.einsum("ngchwij,gocij->ngohw", windows, weights).reshape(1, 6, 3, 3)),
    ):
        task = dataclasses.replace(
            task_of(type, "opset1", [x, weights], attributes, constants=[1]), constants=(None, source)
        )
        for kernel in candidates(task):
            kernel.pack(store)
            out = np.full(expected.shape, np.nan, np.float32)
            kernel.run([x, None], [out], KernelContext.of(kernel, 1))
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4, err_msg=kernel.algorithm)


@pytest.mark.parametrize("kind", ["i32", "empty data", "empty filter"])
def test_left_to_the_reference_kernel(kind):
    dtype = np.int32 if kind == "i32" else np.float32
    x = np.ones((0 if kind == "empty data" else 1, 2, 4, 4), dtype)
    weights = np.ones((0 if kind == "empty filter" else 1, 2, 3, 3), dtype)
    assert candidates(task_of("Convolution", "opset1", [x, weights], PADS, constants=[1])) == []


@pytest.mark.parametrize(
    "view", [np.s_[:, :, ::2, ::-1], np.s_[:, ::2], np.s_[:, :, 1:-1, 2:]], ids=["reversed", "channels", "inner part"]
)
@pytest.mark.parametrize("kernel", [1, 3])
def test_strided_data(view, kernel):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 8, 20, 22)).astype(np.float32)[view]
    weights = rng.standard_normal((6, x.shape[1], kernel, kernel)).astype(np.float32)
    task = task_of("Convolution", "opset1", [x, weights], ONES, constants=[1])
    definition = resolve("Convolution", "opset1")
    expected = definition(x, weights, **definition.arguments(ONES))
    for kernel_ in candidates(task):
        (result,) = run_kernel(kernel_, task, [x, weights])
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def test_an_output_of_any_strides():
    x, weights, _ = random_arrays((1, 4, 6, 6), (4, 4, 3, 3))
    task = dataclasses.replace(
        task_of("Convolution", "opset1", [x, weights], PADS, constants=[1]), output_orders=((0, 3, 1, 2),)
    )
    definition = resolve("Convolution", "opset1")
    expected = definition(x, weights, **definition.arguments(PADS))
    for kernel in candidates(task):
        np.testing.assert_allclose(run_kernel(kernel, task, [x, weights])[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 3])
def test_equal_output_channels_are_computed_once(size):
    """They are then equal bit by bit."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 16, 12, 12)).astype(np.float32)
    weights = np.tile(rng.standard_normal((1, 16, size, size)), (40, 1, 1, 1)).astype(np.float32)
    weights[3] = 1
    pads = PADS if size == 3 else ONES
    task = task_of("Convolution", "opset1", [x, weights], pads, constants=[1])
    for kernel in candidates(task):
        store = ConstantStore()
        kernel.pack(store)
        packed = kernel.weights.packed(None)
        assert packed.rows == 2
        (result,) = run_kernel(kernel, task, [x, weights])
        assert all(np.array_equal(result[0, 0], result[0, i]) for i in range(40) if i != 3)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8])
def test_threads_share_the_outputs_of_few_pixels(threads, monkeypatch):
    """Columns: each makes all of them once, for products of four ranges. Winograd: none transforms the tiles of others."""
    x, weights, _ = random_arrays((1, 192, 8, 8), (256, 192, 3, 3))
    task = task_of("Convolution", "opset1", [x, weights], PADS, constants=[1])
    pairs = zip(candidates(task), candidates(dataclasses.replace(task, threads=threads)), strict=True)
    pairs = [(one, kernel) for one, kernel in pairs if isinstance(one, (Columns, Winograd))]
    assert {type(kernel) for _, kernel in pairs} == {Columns, Winograd}
    for one, kernel in pairs:
        is_winograd = isinstance(kernel, Winograd)
        calls, name = [], "_transform" if is_winograd else "_columns"
        whole = getattr(kernel, name)
        monkeypatch.setattr(kernel, name, lambda *given, whole=whole, calls=calls: calls.append(1) or whole(*given))
        kernel.pack(ConstantStore())
        out = [np.full((1, 256, 8, 8), np.nan, np.float32)]
        kernel.run([x, None], out, KernelContext.of(kernel, threads))
        assert kernel.by_points if is_winograd else sum(map(len, kernel.shares)) == 4
        assert len(calls) == (len(kernel.rows) if is_winograd else min(threads, 4))
        assert np.array_equal(run_kernel(one, task, [x, weights])[0], out[0])


def test_equal_outputs():
    assert equal_outputs(np.arange(40).reshape(4, 10)) is None
    same = np.zeros((4, 100))
    same[2, 99] = 1
    assert equal_outputs(same).tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize(
    ("counts", "pixels"), [((7, 9), 30), ((7, 9), 5), ((7, 9), 1000), ((3, 4, 5), 6), ((3, 4, 5), 2), ((11,), 4)]
)
def test_blocks_cover_the_positions_once_in_order(counts, pixels):
    spans = [pixels_of(block, counts) for block in blocks_of(counts, pixels)]
    assert [index for span in spans for index in range(span.start, span.stop)] == list(range(np.prod(counts)))
    assert all(span.stop - span.start <= pixels for span in spans)


# Layers of networks whose blocks must stay small.
LARGE = [
    ((1, 3, 640, 640), (16, 3, 3, 3), (2, 2)),
    ((1, 64, 224, 224), (64, 64, 3, 3), (1, 1)),
    ((1, 512, 28, 28), (512, 512, 3, 3), (1, 1)),
    ((1, 2048, 7, 7), (512, 2048, 1, 1), (1, 1)),
    ((1, 64, 256, 256), (128, 64, 1, 1), (1, 1)),
    ((1, 1024, 16, 16), (1024, 1024, 3, 3), (1, 1)),
    ((1, 64, 1500, 1500), (64, 64, 3, 3), (1, 1)),
]


@pytest.mark.parametrize(("data", "filter", "strides"), LARGE)
def test_workspace_is_bounded(data, filter, strides):
    x = np.broadcast_to(np.float32(0), data)
    weights = np.broadcast_to(np.float32(0), filter)
    task = task_of("Convolution", "opset1", [x, weights], PADS | {"strides": strides}, constants=[1])
    found = candidates(task)
    assert found
    assert max(kernel.workspace for kernel in found) <= 8 << 20


@pytest.mark.parametrize(
    ("results", "points"),
    [(2, (0, 1, -1)), (4, (0, 1, -1, 2, Fraction(-1, 2))), (6, (0, 1, -1, 2, -2, 3, Fraction(1, 7)))],
)
def test_minimal_filtering_is_exact(results, points):
    matrices = minimal_filtering(results, 3, points)
    data, filter = [Fraction(3 * i * i - 7, 2) for i in range(results + 2)], [Fraction(5, 3), Fraction(-2), Fraction(7)]

    def times(rows, vector):
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in rows]

    products = [a * b for a, b in zip(times(matrices.filter, filter), times(matrices.input, data), strict=True)]
    assert times(matrices.output, products) == [sum(filter[k] * data[i + k] for k in range(3)) for i in range(results)]
    with pytest.raises(ValueError, match="takes"):
        minimal_filtering(results, 3, points[1:])


@pytest.mark.parametrize(("tile", "limit"), [(2, 1e-6), (4, 6e-6), (6, 1.2e-5)])
def test_error_of_winograd(tile, limit):
    """Against float64, for the most input channels that a tile is used for."""
    rng = np.random.default_rng(0)
    inputs = 64 if tile == 6 else 512
    x = np.maximum(rng.standard_normal((1, inputs, 26, 26)), 0).astype(np.float32)
    weights = rng.standard_normal((16, inputs, 3, 3)).astype(np.float32)
    task = task_of("Convolution", "opset1", [x, weights], PADS, constants=[1])
    definition = resolve("Convolution", "opset1")
    exact = definition(x.astype(np.float64), weights.astype(np.float64), **definition.arguments(PADS))
    (kernel,) = (kernel for kernel in candidates(task) if kernel.algorithm == f"Winograd F({tile}x{tile}, 3x3)")
    (result,) = run_kernel(kernel, task, [x, weights])
    assert np.abs(result - exact).max() <= limit * np.abs(exact).max()


# Fast depthwise convolution against the reference kernel.


# Data (N, C, spatial...), kernel, strides, dilations, pads begin, pads end, output channels for each group.
DEPTHWISE_ROWS = [
    ((1, 8, 14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((2, 5, 13, 9), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 6, 14, 14), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
    ((1, 6, 15, 15), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 28, 28), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 1),
    ((1, 4, 28, 28), (5, 5), (2, 2), (1, 1), (2, 2), (2, 2), 1),
    ((1, 4, 17, 19), (3, 5), (2, 1), (1, 2), (1, 4), (1, 4), 1),
    ((1, 3, 9, 9), (3, 3), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    # No column of the kernel is inside the data at every position.
    ((1, 3, 9, 9), (4, 4), (3, 3), (2, 2), (5, 5), (5, 5), 1),
    ((1, 3, 40, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 3, 7, 40), (1, 7), (1, 2), (1, 1), (0, 3), (0, 3), 1),
    ((1, 3, 12, 12), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 3, 12, 12), (1, 1), (2, 2), (1, 1), (0, 0), (0, 0), 1),
    ((1, 4, 11, 10), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 2),
    ((2, 3, 11, 10), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 3),
    ((1, 5, 20), (5,), (1,), (1,), (2,), (2,), 1),
    ((1, 5, 20), (3,), (2,), (2,), (0,), (4,), 1),
    ((1, 3, 5, 6, 7), (3, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2), 1),
    # Channels that fill vectors, and some that fill none.
    ((1, 20, 9, 11), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((2, 33, 8, 13), (5, 5), (2, 2), (1, 1), (2, 2), (1, 2), 1),
    ((1, 136, 7, 7), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 1),
    ((1, 131, 7, 5), (3, 3), (2, 2), (1, 1), (0, 1), (1, 0), 1),
    ((1, 40, 9, 17), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2), 1),
    ((1, 17, 6, 30), (7, 7), (1, 1), (1, 1), (3, 3), (3, 3), 1),
    ((1, 24, 1, 5), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 19, 5, 6, 7), (3, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2), 1),
]


def weights_and_data(row: tuple[Any, ...], dtype: type[np.floating]) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The inputs and attributes of a row."""
    shape, kernel, strides, dilations, begins, ends, outputs = row
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    weights = rng.standard_normal((shape[1], outputs, 1, *kernel)).astype(dtype)
    return [x, weights], {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("row", DEPTHWISE_ROWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rows(row: tuple[Any, ...], dtype: type[np.floating]) -> None:
    inputs, attributes = weights_and_data(row, dtype)
    check_kernels(
        "GroupConvolution", "opset1", inputs, attributes, constants=[1], only=row[-1] == 1 or len(row[1]) == 2
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("row", DEPTHWISE_ROWS[:8], ids=str)
@pytest.mark.parametrize("cached", [1, 4000])
def test_small_blocks(monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], cached: int) -> None:
    """Images of several blocks."""
    monkeypatch.setattr(depthwise, "_CACHED", cached)
    monkeypatch.setattr(depthwise_windows, "_CACHED", cached)
    inputs, attributes = weights_and_data(row, np.float32)
    kernels = check_kernels("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    types = {type(kernel) for kernel in kernels if not isinstance(kernel, NativeKernel)}
    assert types == {DepthwiseProducts, DepthwiseWindows}
    assert cached > 1 or all(kernel.splits for kernel in kernels)


def test_random_geometry() -> None:
    """Sizes, kernels, strides, dilations and pads of every kind, also where nothing of the data is read."""
    rng = np.random.default_rng(0)
    for _ in range(120):
        rank = int(rng.integers(1, 4))
        sizes, kernel, strides, dilations = (tuple(rng.integers(1, maximum, rank).tolist()) for maximum in (9, 5, 4, 4))
        begins, ends = (tuple(rng.integers(0, 6, rank).tolist()) for _ in range(2))
        spans = zip(sizes, begins, ends, kernel, dilations, strict=True)
        if any(size + begin + end < (taps - 1) * gap + 1 for size, begin, end, taps, gap in spans):
            continue
        shape = (int(rng.integers(1, 3)), int(rng.integers(2, 5)), *sizes)
        inputs, attributes = weights_and_data((shape, kernel, strides, dilations, begins, ends, 1), np.float32)
        check_kernels("GroupConvolution", "opset1", inputs, attributes, constants=[1])


def test_cost_follows_the_orders_in_memory() -> None:
    """Products are cheaper for images in C order than for channels last, windows the other way round."""
    inputs, attributes = weights_and_data(((1, 96, 56, 56), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), np.float32)
    task = task_of("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    last = dataclasses.replace(task, input_orders=((0, 2, 3, 1), None), output_orders=((0, 2, 3, 1),))
    costs, costs_last = ({type(kernel): kernel.cost for kernel in candidates(t)} for t in (task, last))
    assert costs_last[DepthwiseWindows] < costs[DepthwiseWindows]
    assert costs_last[DepthwiseProducts] > costs[DepthwiseProducts]


def test_cost_does_not_depend_on_the_number_of_threads() -> None:
    """Or else results would differ in their last bits."""
    inputs, attributes = weights_and_data(((1, 576, 14, 14), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1), np.float32)
    task = task_of("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    shared = dataclasses.replace(task, threads=4)
    assert [kernel.cost for kernel in candidates(task)] == [kernel.cost for kernel in candidates(shared)]


# The fast kernel of DeformableConvolution against the reference kernel.


# Data, filter, deformable groups, groups, spatial attributes.
DEFORMABLE_ROWS = [
    ((2, 8, 9, 7), (6, 8, 3, 3), 1, 1, {"pads_begin": (1, 1), "pads_end": (1, 1)}),
    ((1, 8, 9, 7), (6, 4, 3, 3), 2, 2, {"strides": (2, 1)}),
    ((1, 12, 9, 7), (6, 4, 2, 3), 4, 3, {"dilations": (2, 1)}),
    ((1, 4, 40, 40), (4, 4, 3, 3), 1, 1, {}),
    ((1, 4, 6, 5), (4, 4, 1, 1), 2, 1, {}),
]
VERSIONS = [("opset1", False, False), ("opset8", True, False), ("opset8", True, True), ("irexec", False, True)]


def _arrays(data, filter, deformable, attributes, dtype, masked):
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape).astype(dtype) for shape in (data, filter))
    strides, dilations, begins, ends = (attributes[name] for name in ("strides", "dilations", "pads_begin", "pads_end"))
    axes = zip(data[2:], filter[2:], strides, dilations, begins, ends, strict=True)
    counts = [(size + b + e - ((k - 1) * d + 1)) // s + 1 for size, k, s, d, b, e in axes]
    points = deformable * int(np.prod(filter[2:]))
    offsets = rng.uniform(-3, 3, (data[0], points * len(counts), *counts)).astype(dtype)
    offsets.reshape(-1)[::7] = np.round(offsets.reshape(-1)[::7])
    offsets.reshape(-1)[5] = np.nan
    offsets.reshape(-1)[11] = 1e9
    mask = [rng.uniform(0, 1, (data[0], points, *counts)).astype(dtype)] if masked else []
    return [x, offsets, weights, *mask], rng


@pytest.mark.parametrize(("data", "filter", "deformable", "groups", "spatial"), DEFORMABLE_ROWS)
@pytest.mark.parametrize(("version", "masked", "zero_pad"), VERSIONS)
@pytest.mark.parametrize("constants", [(2,), ()], ids=["known weights", "weights as input"])
def test_against_the_reference_kernel(data, filter, deformable, groups, spatial, version, masked, zero_pad, constants):
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)} | spatial
    inputs, rng = _arrays(data, filter, deformable, attributes, np.float32, masked)
    attributes |= {"group": groups, "deformable_group": deformable}
    if version != "opset1":
        attributes["bilinear_interpolation_pad"] = zero_pad
    definition = resolve("DeformableConvolution", version)
    expected = definition(*inputs, **definition.arguments(attributes))
    task = task_of("DeformableConvolution", version, inputs, attributes, constants=constants)
    assert check_candidates(task, inputs, expected) == {"gathered pixels"}
    operands = operands_of(expected.shape, expected.dtype, rng)
    chained = task_of(
        "DeformableConvolution",
        version,
        inputs,
        attributes,
        constants=constants,
        chain=bias_residual_relu(),
        operands=operands,
        threads=2,
    )
    check_candidates(chained, inputs, np.maximum(expected + operands[0] + operands[1], 0), operands)


def test_infinite_pixels_count_only_where_they_are_met():
    """A position outside gives zero, not the product of zero and an infinite pixel."""
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    inputs, _ = _arrays((1, 2, 5, 5), (2, 2, 1, 1), 1, attributes, np.float32, False)
    inputs[0][...] = 1
    inputs[0][0, :, 0, 0] = np.inf
    inputs[1][...] = 100
    definition = resolve("DeformableConvolution", "opset8")
    expected = definition(*inputs, **definition.arguments(attributes))
    assert not expected.any()
    check_candidates(task_of("DeformableConvolution", "opset8", inputs, attributes, constants=(2,)), inputs, expected)


# Windows over axes of size 1 to 4, of which strides, dilations and pads say less than the number of windows does.


_TYPES = (
    "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MaxPool",
    "AvgPool",
)  # fmt: skip
_CASES = 120


def _attributes(rng: np.random.Generator, type: str, rank: int) -> dict[str, Any]:
    given = {name: rng.integers(1, 4, rank).tolist() for name in ("strides", "dilations")}
    given |= {
        name: rng.integers(0, 2, rank).tolist() if rng.random() < 0.4 else [0] * rank
        for name in ("pads_begin", "pads_end")
    }
    if type == "AvgPool" or rng.random() < 0.6:
        given["dilations"] = [1] * rank
    if type == "AvgPool":
        del given["dilations"]
    return given | {"auto_pad": str(rng.choice(["explicit", "explicit", "same_upper", "valid"]))}


def _filter(rng: np.random.Generator, type: str, channels: int, kernel: list[int]) -> np.ndarray:
    outputs = int(rng.integers(1, 4))
    shape = {
        "Convolution": [outputs, channels], "ConvolutionBackpropData": [channels, outputs],
        "GroupConvolution": [channels, outputs, 1], "GroupConvolutionBackpropData": [channels, 1, outputs],
    }[type]  # fmt: skip
    return rng.uniform(-1, 1, [*shape, *kernel]).astype(np.float32)


def _model(rng: np.random.Generator, type: str) -> tuple[Builder, np.ndarray]:
    """One operation, of data that is channels first or last in memory."""
    rank, channels = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 8]))
    sizes, kernel = rng.integers(1, 5, rank).tolist(), rng.choice([1, 1, 2, 3], rank).tolist()
    builder = Builder()
    data = rng.uniform(-1, 1, [int(rng.integers(1, 3)), channels, *sizes]).astype(np.float32)
    last = rng.random() < 0.5
    x = builder.parameter("f32", np.moveaxis(data, 1, -1).shape if last else data.shape, "x")
    if last:
        x = builder.emit("Transpose", builder.emit("Negative", x), [0, rank + 1, *range(1, rank + 1)])
    given = _attributes(rng, type, rank)
    if type.endswith("Pool"):
        extra = {"exclude_pad": bool(rng.integers(2)), "version": 1} if type == "AvgPool" else {"version": 8}
        y = builder.emit(type, x, kernel=kernel, **given, **extra)
        y = y[0] if isinstance(y, tuple) else y
    else:
        y = builder.emit(type, x, _filter(rng, type, channels, kernel), **given)
    y = builder.emit("Relu", builder.emit("Add", y, np.float32(0.25)))
    builder.result(builder.emit("Transpose", y, [0, *range(2, rank + 2), 1]) if last and rng.random() < 0.6 else y)
    return builder, np.ascontiguousarray(np.moveaxis(data, 1, -1)) if last else data


@pytest.mark.parametrize("type", _TYPES)
@pytest.mark.sampled(4)
def test_fast_kernels_agree_with_the_reference(type: str) -> None:
    run = 0
    for seed in range(_CASES):
        try:
            builder, data = _model(np.random.default_rng([seed, len(type)]), type)
        except OpError:
            continue
        run += 1
        model = builder.model()
        (expected,) = CompiledModel(model, optimize=False)([data]).values()
        for threads in (1, 2):
            (actual,) = CompiledModel(model, threads=threads)([data]).values()
            np.testing.assert_allclose(
                actual, expected, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}, {threads} threads"
            )
    assert run > _CASES // 3, "too few cases can be run"
