"""What a run sets in NumPy, and where NaN and infinities of an input appear in the results of fast kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from irexec.analysis.evaluate import as_tuple
from irexec.backend.kernel import Task
from irexec.backend.pool import Pool
from irexec.backend.threads import set_for_run
from irexec.testing.kernels import candidates, in_order, task_of
from tests.support.convolutions import variants
from tests.support.passes import run_kernel


def test_a_run_leaves_numpy_as_it_was() -> None:
    before, size = np.geterr(), np.getbufsize()
    with set_for_run():
        assert np.getbufsize() < size
        assert set(np.geterr().values()) == {"ignore"}
    assert np.geterr() == before
    assert np.getbufsize() == size


def test_workers_use_the_same_buffers() -> None:
    """Each block waits for the other, so that the second one runs on a worker."""
    both, seen = threading.Barrier(2), dict[int, int]()

    def body(index: int, worker: int) -> None:
        both.wait(30)
        seen[worker] = np.getbufsize()

    with set_for_run():
        expected = np.getbufsize()
        Pool(2).run(2, body)
    assert seen == {0: expected, 1: expected}


# Where NaN and infinities of an input appear in the results of fast kernels.


SPREADING = ("Winograd", "depthwise by products")
"""Algorithms whose tiles become NaN, and never more than the tile: as many pixels."""
TILE = 8


def _windows(kernel: int, stride: int = 1) -> dict[str, Any]:
    pads = ((kernel - 1) // 2,) * 2
    return {"strides": (stride, stride), "pads_begin": pads, "pads_end": pads, "auto_pad": "explicit"}


def _convolution(kernel: int, stride: int = 1) -> dict[str, Any]:
    return _windows(kernel, stride) | {"dilations": (1, 1)}


# Type, version, shapes of the inputs, attributes, indexes of the constants.
ROWS: dict[str, tuple[str, str, list[tuple[int, ...]], dict[str, Any], tuple[int, ...]]] = {
    "3 x 3": ("Convolution", "opset1", [(1, 64, 20, 20), (32, 64, 3, 3)], _convolution(3), (1,)),
    "few channels": ("Convolution", "opset1", [(1, 3, 20, 20), (16, 3, 3, 3)], _convolution(3), (1,)),
    "5 x 5": ("Convolution", "opset1", [(1, 16, 20, 20), (16, 16, 5, 5)], _convolution(5), (1,)),
    "stride 2": ("Convolution", "opset1", [(1, 16, 20, 20), (16, 16, 3, 3)], _convolution(3, 2), (1,)),
    "pointwise": ("Convolution", "opset1", [(1, 64, 20, 20), (32, 64, 1, 1)], _convolution(1), (1,)),
    "groups": ("GroupConvolution", "opset1", [(1, 32, 14, 14), (4, 8, 8, 3, 3)], _convolution(3), (1,)),
    "depthwise": ("GroupConvolution", "opset1", [(1, 32, 14, 14), (32, 1, 1, 3, 3)], _convolution(3), (1,)),
    "large depthwise": ("GroupConvolution", "opset1", [(1, 160, 7, 7), (160, 1, 1, 7, 7)], _convolution(7), (1,)),
    "depthwise, stride 2": ("GroupConvolution", "opset1", [(1, 32, 14, 14), (32, 1, 1, 3, 3)], _convolution(3, 2), (1,)),
    "transposed": ("ConvolutionBackpropData", "opset1", [(1, 16, 10, 10), (16, 8, 4, 4)], _convolution(4, 2) | {"output_padding": (0, 0)}, (1,)),
    "tiles": ("ConvolutionBackpropData", "opset1", [(1, 16, 10, 10), (16, 8, 2, 2)], _convolution(2, 2) | {"output_padding": (0, 0)}, (1,)),
    "product": ("MatMul", "opset1", [(3, 50, 40), (40, 30)], {}, (1,)),
    "product of two tensors": ("MatMul", "opset1", [(3, 50, 40), (3, 40, 30)], {}, ()),
    "one row": ("MatMul", "opset1", [(1, 300), (300, 200)], {}, (1,)),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ROWS)
def test_they_are_where_the_reference_kernel_has_them(name: str, bad: float) -> None:
    type, version, shapes, attributes, constants = ROWS[name]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    position = tuple(int(rng.integers(size)) for size in shapes[0])
    inputs[0][position] = bad
    task = task_of(type, version, inputs, attributes, constants=constants)
    with np.errstate(all="ignore"):
        expected = as_tuple(task.definition(*inputs, **task.attributes))[0]
    assert not np.isfinite(expected).all()
    for variant in _orders(task):
        given = [in_order(inputs[0], variant.input_orders[0] or tuple(range(inputs[0].ndim))), *inputs[1:]]
        assert candidates(variant)
        for kernel in candidates(variant):
            actual = run_kernel(kernel, variant, given)[0]
            assert not np.isfinite(actual[~np.isfinite(expected)]).any(), kernel.algorithm
            spread = np.isfinite(expected) & ~np.isfinite(actual)
            if kernel.algorithm.startswith(SPREADING):
                assert all(_is_near(at, np.argwhere(~np.isfinite(expected))) for at in np.argwhere(spread)), (
                    kernel.algorithm
                )
            else:
                assert not spread.any(), kernel.algorithm


def _orders(task: Task) -> Iterator[Task]:
    if len(task.shape(0)) != 4:
        return iter([task])
    return variants(task)


def _is_near(at: np.ndarray, reached: np.ndarray) -> bool:
    """Whether an element is in the tile of one that the reference kernel makes NaN or infinite."""
    return bool((np.abs(reached - at).max(1) < TILE).any())
