"""Fast kernels of ConvolutionBackpropData and GroupConvolutionBackpropData against the reference kernel."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, task_of
from tests.support.convolutions import check_candidates, check_with_chain, random_arrays

ALL = {"phases by columns", "phases by columns, channels last"}
ONES = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
TWO = ONES | {"strides": (2, 2)}
PADDED = TWO | {"pads_begin": (1, 1), "pads_end": (1, 1)}

ROWS = [
    ("2x2 of stride 2", (1, 16, 9, 8), (16, 12, 2, 2), TWO),
    ("3-D, tiles", (2, 4, 3, 5, 4), (4, 3, 2, 3, 2), {"strides": (2, 3, 2), "dilations": (1, 1, 1), "pads_begin": (0, 0, 0), "pads_end": (0, 0, 0)}),
    ("1-D, tiles", (2, 4, 9), (4, 5, 3), {"strides": (3,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,)}),
    ("4x4 of stride 2, padded", (1, 24, 7, 9), (24, 10, 4, 4), PADDED),
    ("several images", (3, 4, 5, 5), (4, 6, 4, 4), PADDED),
    ("one pixel", (1, 100, 1, 1), (100, 64, 4, 4), ONES),
    ("3x3 of stride 2", (1, 8, 7, 6), (8, 5, 3, 3), PADDED | {"output_padding": (1, 1)}),
    ("3x3 of stride 1", (1, 8, 7, 6), (8, 5, 3, 3), PADDED | {"strides": (1, 1)}),
    ("stride beyond the kernel", (1, 4, 5, 4), (4, 3, 2, 2), ONES | {"strides": (3, 4)}),
    ("dilations", (1, 4, 6, 7), (4, 3, 3, 2), TWO | {"dilations": (2, 3)}),
    ("stride 3, dilation 2, uneven", (1, 4, 6, 7), (4, 3, 5, 4), ONES | {"strides": (3, 2), "dilations": (2, 1), "pads_begin": (2, 1)}),
    ("more is cropped than the kernel", (1, 3, 8, 8), (3, 3, 2, 2), TWO | {"pads_begin": (5, 4), "pads_end": (3, 6)}),
    ("large images", (1, 16, 64, 70), (16, 3, 4, 4), PADDED),
    ("1-D", (1, 12, 30), (12, 8, 5), {"strides": (3,), "dilations": (1,), "pads_begin": (1,), "pads_end": (2,)}),
    ("3-D", (1, 4, 3, 4, 5), (4, 3, 2, 3, 2), {"strides": (2, 1, 2), "dilations": (1, 1, 1), "pads_begin": (1, 0, 0), "pads_end": (0, 1, 0)}),
]  # fmt: skip
GROUPED = [
    ("4x4 of stride 2", (2, 12, 7, 9), (3, 4, 5, 4, 4), PADDED),
    ("one channel in each group", (1, 6, 7, 9), (6, 1, 1, 4, 4), PADDED),
]
KINDS = (("ConvolutionBackpropData", ROWS), ("GroupConvolutionBackpropData", GROUPED))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "data", "filter", "attributes"),
    [pytest.param(kind, *row[1:], id=f"{kind}, {row[0]}") for kind, rows in KINDS for row in rows],
)
@pytest.mark.parametrize("constants", [(1,), ()], ids=["known weights", "weights as input"])
def test_candidates(kind, data, filter, attributes, constants):
    seen = check_with_chain(kind, data, filter, attributes, constants)
    assert seen == ALL


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("shape", [(7, 9), (11, 12), (14, 17)])
def test_output_shape(auto_pad, shape):
    """It crops, and gives zeros beyond the natural end."""
    x, weights, _ = random_arrays((1, 5, 5, 6), (5, 4, 3, 3))
    attributes = TWO | {"auto_pad": auto_pad}
    sizes = np.array(shape, np.int64)
    task = task_of("ConvolutionBackpropData", "opset1", [x, weights, sizes], attributes, constants=(1, 2))
    definition = resolve("ConvolutionBackpropData", "opset1")
    expected = definition(x, weights, sizes, **definition.arguments(attributes))
    assert expected.shape[2:] == shape
    assert check_candidates(task, [x, weights, sizes], expected) >= ALL


def test_random_geometry():
    rng = np.random.default_rng(0)
    definition = resolve("ConvolutionBackpropData", "opset1")
    checked = 0
    for _ in range(80):
        rank = int(rng.integers(1, 3))
        sizes, kernel, strides, dilations = (tuple(rng.integers(1, maximum, rank).tolist()) for maximum in (7, 5, 4, 4))
        natural = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
        begins = tuple(int(rng.integers(0, n)) for n in natural)
        ends = tuple(int(rng.integers(0, n - b)) for n, b in zip(natural, begins, strict=True))
        attributes = {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}
        x, weights, _ = random_arrays((1, 3, *sizes), (3, 2, *kernel))
        task = task_of("ConvolutionBackpropData", "opset1", [x, weights], attributes, constants=(1,))
        check_candidates(task, [x, weights], definition(x, weights, **definition.arguments(attributes)), tolerance=1e-4)
        checked += 1
    assert checked == 80


@pytest.mark.parametrize(
    ("data", "filter"),
    [((1, 1024, 4, 4), (1024, 512, 4, 4)), ((1, 32, 512, 512), (32, 8, 4, 4)), ((1, 64, 128, 128), (64, 32, 2, 2))],
)
def test_workspace_is_bounded(data, filter):
    x, weights = (np.broadcast_to(np.float32(0), shape) for shape in (data, filter))
    found = candidates(task_of("ConvolutionBackpropData", "opset1", [x, weights], PADDED, constants=[1]))
    assert found
    assert max(kernel.workspace for kernel in found) <= 8 << 20


@pytest.mark.parametrize(
    ("data", "outputs", "shares"), [((1, 64, 14, 14), 128, [1, 2, 3, 4]), ((1, 3, 56, 56), 256, [4, 4, 4, 4])]
)
def test_a_thread_computes_several_ranges_of_channels_where_they_fit(data, outputs, shares):
    """Where they do not, each is a block of its own, and the kernel is offered all the same."""
    x, weights, _ = random_arrays(data, (data[1], outputs, 4, 4))
    task = task_of("ConvolutionBackpropData", "opset1", [x, weights], PADDED, constants=[1])
    found = [kernel for n in (1, 2, 3, 4) for kernel in candidates(dataclasses.replace(task, threads=n))]
    assert [len(kernel.shares) for kernel in found] == shares
    assert all(sum(map(len, kernel.shares)) == 4 and kernel.workspace <= 8 << 20 for kernel in found)


@pytest.mark.parametrize(("kernel", "strides"), [((2, 1 << 40), (1, 1)), ((2, 2), (1 << 20, 1 << 20))])
def test_phases_and_taps_without_number_are_not_listed(kernel, strides):
    x, weights = (np.broadcast_to(np.float32(0), shape) for shape in ((1, 4, 5, 5), (4, 3, *kernel)))
    assert not candidates(task_of("ConvolutionBackpropData", "opset1", [x, weights], ONES | {"strides": strides}))
