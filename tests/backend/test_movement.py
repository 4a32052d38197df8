"""Kernels that move elements against the reference kernels: copies of the C library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.backend.calls import Binding, Job
from irexec.backend.copies import Copy, bind_copies
from irexec.backend.native.movement import common_shape
from irexec.backend.pool import Pool
from irexec.native.library import library
from irexec.testing.kernels import check_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

TYPES = [np.float32, np.int16, np.int64, np.int8]


def data(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Random elements."""
    return np.asarray(np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)


def copied(copies: list[Copy], threads: int = 1) -> None:
    """Run copies."""
    binding = Binding()
    bind_copies(copies, binding)
    Job([binding]).run(Pool(threads))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (2, 300), (300, 2), (3, 5), (17, 19), (64, 64), (130, 257), (1, 70000)])
def test_planes_in_any_order(dtype: Any, threads: int, shape: tuple[int, ...]) -> None:
    x = data((3, *shape), dtype)
    for view in (
        x,
        x.transpose(0, 2, 1),
        x.transpose(2, 1, 0),
        x[::-1, :, ::-1],
        x[:, ::2],
        np.broadcast_to(x[:1], x.shape),
    ):
        out = np.full(view.shape, 77, dtype)
        copied([Copy(view, out)], threads)
        np.testing.assert_array_equal(out, view)
        wide = np.full((*view.shape[:-1], 2 * view.shape[-1]), 77, dtype)
        copied([Copy(view, wide[..., ::2])], threads)
        np.testing.assert_array_equal(wide[..., ::2], view)
        assert (wide[..., 1::2] == 77).all()


def test_more_axes_than_a_copy_has() -> None:
    x = data((2, 3) * 5)
    for order in ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]):
        view = x.transpose(order)
        out = np.zeros(view.shape, np.float32)
        copied([Copy(view, out)])
        np.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("shape", [(5, 18, 7), (3, 300, 260)], ids=["one block", "blocks of rows"])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1, 2), (1, 2)])
def test_tables_along_axes(axes: tuple[int, ...], step: int, shape: tuple[int, ...]) -> None:
    x, rng = data(shape)[..., ::step], np.random.default_rng(1)
    tables = {axis: rng.integers(0, x.shape[axis], shape[1] // 2) for axis in axes}
    expected = x
    for axis, table in tables.items():
        expected = np.take(expected, table, axis)
    out = np.zeros(expected.shape, np.float32)
    copied([Copy(x, out, tables)])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "to"), [((2, 6, 4, 5), (2, 24, 5)), ((2, 6, 4, 5), (2, 2, 3, 20)), ((1, 4), (4,)), ((), (1,))]
)
def test_reshape(dtype: Any, shape: tuple[int, ...], to: tuple[int, ...]) -> None:
    assert check_kernels(
        "Reshape", "opset1", [data(shape, dtype), np.array(to)], {"special_zero": False}, constants=[1]
    )


def test_common_shapes() -> None:
    assert common_shape((6, 4), (3, 8)) == (3, 2, 4)
    assert common_shape((6, 4), (4, 6)) is None
    assert common_shape((0, 4), (4, 0)) is None
    assert not check_kernels(
        "Reshape", "opset1", [data((6, 4)), np.array([4, 6])], {"special_zero": False}, constants=[1], only=False
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", [[0, 2, 3, 1], [3, 1, 2, 0], [], [0, 1, 3, 2]])
def test_transpose(dtype: Any, order: list[int]) -> None:
    assert check_kernels("Transpose", "opset1", [data((2, 6, 4, 5), dtype), np.array(order, np.int64)], constants=[1])


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize("shape", [(2, 8, 4, 6), (1, 4, 6), (1, 8, 2, 4, 2)])
def test_blocks_of_depth_and_space(mode: str, shape: tuple[int, ...]) -> None:
    for type in ("DepthToSpace", "SpaceToDepth"):
        assert check_kernels(type, "opset1", [data(shape)], {"mode": mode, "block_size": 2})


def test_shuffled_channels() -> None:
    for axis, group in ((1, 2), (-3, 3), (0, 2)):
        assert check_kernels("ShuffleChannels", "opset1", [data((2, 6, 4, 5))], {"axis": axis, "group": group})


def test_repeated_data() -> None:
    for repeats in ([2, 1, 3], [1, 2], [2, 1, 1, 2]):
        assert check_kernels("Tile", "opset1", [data((2, 3, 4)), np.array(repeats)], constants=[1])
    for target in ([2, 3, 4], [5, 2, 3, 4]):
        assert check_kernels(
            "Broadcast", "opset3", [data((2, 1, 4)), np.array(target)], {"mode": "numpy"}, constants=[1]
        )
    inputs = [data((3, 4)), np.array([2, 3, 5, 4]), np.array([1, 3])]
    assert check_kernels("Broadcast", "opset3", inputs, {"mode": "explicit"}, constants=[1, 2])
    assert check_kernels(
        "Broadcast", "opset3", [data((2, 3, 4)), np.array([3, 1])], {"mode": "bidirectional"}, constants=[1]
    )
    assert check_kernels("Broadcast", "opset1", [data((2, 3)), np.array([2, 3, 4])], {"mode": "pdpd"}, constants=[1])


def test_rotated_data() -> None:
    for shift, axes in (([3], [1]), ([1, -9], [0, 3]), (2, [1, -2]), ([1, 1], [2, 2])):
        assert check_kernels("Roll", "opset7", [data((2, 6, 4, 5)), np.array(shift), np.array(axes)], constants=[1, 2])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("indices", "axis"), [([0, 2, -1], 1), ([[3, 0], [-4, 1]], 0), (1, 2), ([2, -5, 9], -1), ([4], 0)]
)
def test_gather_at_run_time(dtype: Any, kind: Any, indices: list, axis: int) -> None:
    """Indices out of range give zeros."""
    inputs = [data((4, 3, 5), dtype), np.array(indices, kind), np.array(axis)]
    found = check_kernels("Gather", "opset8", inputs, constants=[2])
    assert {kernel.algorithm for kernel in found} == {"C, gathered slices"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [*TYPES, np.bool_])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    ("begin", "end"),
    [((0, 0, 1, 2), (0, 0, 2, 3)), ((1, 0, 0, 0), (0, 1, 0, 1)), ((0, 0, 0, 0), (0, 0, 0, 0)), ((1, 1, 1, 1),) * 2],
)
def test_pad(dtype: type, mode: str, begin: tuple[int, ...], end: tuple[int, ...]) -> None:
    inputs = [data((2, 3, 4, 5), dtype), np.array(begin), np.array(end)]
    check_kernels("Pad", "opset1", inputs, {"pad_mode": mode}, constants=[1, 2])
    check_kernels("Pad", "opset12", [*inputs, data((), dtype)], {"pad_mode": mode}, constants=[1, 2])


def test_pads_that_remove_elements() -> None:
    inputs = [
        data((2, 3, 4, 5), np.float32),
        np.array([0, -1, 2, -2]),
        np.array([0, 0, -3, 1]),
        np.array(7, np.float32),
    ]
    check_kernels("Pad", "opset12", inputs, {"pad_mode": "constant"}, constants=[1, 2])
    assert not check_kernels("Pad", "opset12", inputs, {"pad_mode": "edge"}, constants=[1, 2], only=False)


@pytest.mark.parametrize("dtype", [*TYPES, np.bool_])
@pytest.mark.parametrize(("indices", "axis"), [([0, 2, -1], 1), ([[3, 0], [-4, 1]], 0), (1, 2), ([2], -1)])
def test_gather(dtype: type, indices: list, axis: int) -> None:
    inputs = [data((4, 3, 5), dtype), np.array(indices, np.int32), np.array(axis)]
    check_kernels("Gather", "opset8", inputs, constants=[1, 2])


def test_indices_out_of_range_are_left_to_the_reference_kernel() -> None:
    inputs = [data((4, 3), np.float32), np.array([0, 4]), np.array(0)]
    assert not check_kernels("Gather", "opset8", inputs, constants=[1, 2], only=False)
