"""Products in C with a tensor among what is added: all candidates against the reference kernel, with and without it."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend.native.convolution import NativeConvolution
from irexec.backend.native.matmul import NativeLinear, NativeMatrices
from irexec.native.library import library
from irexec.testing.kernels import check_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

PRODUCT = {"transpose_a": False, "transpose_b": False}
# Rows that fill tiles, one more, and few; columns of whole panels, of several that a single row is multiplied by, and odd.
SIZES = [(24, 16, 48), (25, 10, 192), (1, 16, 192), (97, 5, 96), (50, 7, 35), (3, 9, 5)]


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("images", [1, 2])
def test_products(images: int, sizes: tuple[int, int, int]) -> None:
    rows, depth, columns = sizes
    inputs = [_random(images, rows, depth), _random(depth, columns)]
    found = check_kernels("MatMul", "opset1", inputs, PRODUCT, constants=[1])
    assert any(isinstance(kernel, NativeLinear) for kernel in found)
    found = check_kernels("MatMul", "opset1", [inputs[0], _random(images, depth, columns)], PRODUCT)
    assert any(isinstance(kernel, NativeMatrices) for kernel in found)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("channels", "outputs"), [(16, 48), (20, 35)])
def test_convolutions(kernel: int, channels: int, outputs: int) -> None:
    windows = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 0), "pads_end": (1, 0)}
    inputs = [_random(2, channels, 11, 9), _random(outputs, channels, kernel, kernel)]
    found = check_kernels("Convolution", "opset1", inputs, windows, constants=[1])
    assert any(isinstance(kernel, NativeConvolution) for kernel in found)
