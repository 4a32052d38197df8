"""Products in C with a tensor among what is added: all candidates against the reference kernel, with and without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from irexec.backend.calls import NativeKernel
from irexec.backend.native.convolution import NativeConvolution
from irexec.backend.native.matmul import NativeFeatures, NativeLinear, NativeMatrices
from irexec.native.library import library
from irexec.testing.kernels import candidates, check_kernels, task_of
from tests.support.convolutions import bias_residual_relu
from tests.support.run_kernel import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

PRODUCT = {"transpose_a": False, "transpose_b": False}
TRANSPOSED = {"transpose_a": False, "transpose_b": True}
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
    found = check_kernels("MatMul", "opset1", [inputs[0], inputs[1].T.copy()], TRANSPOSED, constants=[1])
    assert any(isinstance(kernel, NativeFeatures) for kernel in found)
    found = check_kernels("MatMul", "opset1", [inputs[0], _random(images, depth, columns)], PRODUCT)
    assert any(isinstance(kernel, NativeMatrices) for kernel in found)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("channels", "outputs"), [(16, 48), (20, 35)])
def test_convolutions(kernel: int, channels: int, outputs: int) -> None:
    windows = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 0), "pads_end": (1, 0)}
    inputs = [_random(2, channels, 11, 9), _random(outputs, channels, kernel, kernel)]
    found = check_kernels("Convolution", "opset1", inputs, windows, constants=[1])
    assert any(isinstance(kernel, NativeConvolution) for kernel in found)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_residuals_of_whole_tiles(sizes: tuple[int, int, int]) -> None:
    """Bias, residual and limit alone, which the sums begin and end with."""
    rows, depth, columns = sizes
    x, weights = _random(2, rows, depth), _random(depth, columns)
    operands = [_random(columns), _random(2, rows, columns) + 1]
    task = task_of(
        "MatMul", "opset1", [x, weights], PRODUCT, constants=[1], chain=bias_residual_relu(), operands=operands,
        threads=2, native=True,
    )  # fmt: skip
    expected = np.maximum(x.astype(np.float64) @ weights + operands[0] + operands[1], 0)
    kernels = [kernel for kernel in candidates(task) if isinstance(kernel, NativeLinear)]
    for kernel in kernels:
        assert kernel.chain.program is not None and not kernel.chain.program.lines
        (found,) = run_kernel(kernel, task, [x, weights], operands)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert kernels


def test_matrices_with_a_tensor_that_some_images_share() -> None:
    """It repeats along a part of the images: the chain is computed on the whole result, in C as well."""
    a, b = _random(2, 3, 7, 5), _random(2, 3, 5, 9) - 1
    operands = [_random(1), _random(2, 1, 7, 9)]
    task = task_of("MatMul", "opset1", [a, b], PRODUCT, chain=bias_residual_relu(), operands=operands, native=True)
    (kernel,) = (kernel for kernel in candidates(task) if isinstance(kernel, NativeKernel))
    assert kernel.runs_chain
    (found,) = run_kernel(kernel, task, [a, b], operands)
    np.testing.assert_allclose(found, np.maximum(a @ b + operands[0] + operands[1], 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("order", "second"), [(None, (2, 3, 5, 8)), ((0, 2, 1, 3), (2, 1, 1, 1))])
def test_attention(order: tuple[int, ...] | None, second: tuple[int, ...]) -> None:
    """The chain is a call of the same binding, and does not end a segment."""
    inputs = [_random(2, 3, size, 8) + i for i, size in enumerate((5, 7, 7))]
    operands = [_random(8), _random(*second) - 1]
    task = task_of(
        "ScaledDotProductAttention", "opset13", inputs, {"causal": False}, chain=bias_residual_relu(),
        operands=operands, native=True,
    )  # fmt: skip
    (kernel,) = (
        kernel for kernel in candidates(replace(task, output_orders=(order,))) if isinstance(kernel, NativeKernel)
    )
    assert kernel.runs_chain
    (found,) = run_kernel(kernel, task, inputs, operands)
    expected = task.definition(*inputs, causal=False) + operands[0] + operands[1]
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-5, atol=1e-5)
