"""Products and convolutions in C: all candidates, what is added, transposed forms, Winograd's algorithm, equal shares and staged arrays."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.backend.calls import COPIED, Job, NativeKernel, loaded
from irexec.backend.chain import Chain
from irexec.backend.kernel import KernelContext, Order, Task
from irexec.backend.native import convolution
from irexec.backend.native.convolution import NativeConvolution, NativeWinograd
from irexec.backend.native.matmul import NativeConstantMatrices, NativeFeatures, NativeLinear, NativeMatrices
from irexec.backend.native.panels import Cut, blocks_for, imbalance
from irexec.backend.pool import Pool
from irexec.native.library import library
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, check_kernels, in_order, task_of
from tests.backend.test_rows import natives
from tests.support.convolutions import bias_residual_relu
from tests.support.passes import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

PRODUCT = {"transpose_a": False, "transpose_b": False}
TRANSPOSED = {"transpose_a": False, "transpose_b": True}
# Rows that fill tiles, one more, and few; columns of whole panels, of several that a single row is multiplied by, and odd.
SIZES = [(24, 16, 48), (25, 10, 192), (1, 16, 192), (97, 5, 96), (50, 7, 35), (3, 9, 5)]


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.sampled(4)
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
    if images > 1:
        # Matrices of experts: tokens that are the same for all, or those of each.
        for tokens in (inputs[0], inputs[0][:1]):
            for matrices, attributes in (((depth, columns), PRODUCT), ((columns, depth), TRANSPOSED)):
                stack = [tokens, _random(images, *matrices)]
                found = check_kernels("MatMul", "opset1", stack, attributes, constants=[1])
                packed = [kernel for kernel in found if isinstance(kernel, NativeConstantMatrices)]
                assert packed and all(kernel.shared_workspace == 0 for kernel in packed)


@pytest.mark.sampled(4)
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


# Products in C: two threads get equal shares, and results are the same whatever the shares are.


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(196, 64, 384), (49, 960, 160), (1, 1280, 1000), (3136, 24, 144)]
)
def test_threads_share_the_products_of_small_networks_equally(rows: int, inputs: int, outputs: int) -> None:
    """Layers of MobileNetV2; of each, the second thread would have had nothing or a third."""
    for threads in (2, 3):
        cut = Cut.of(1, rows, 1, inputs, outputs, threads)
        assert imbalance(cut.rows * cut.panels, threads) < 1.1


def test_blocks_are_as_many_for_each_thread() -> None:
    assert [blocks_for(nanoseconds, 2) for nanoseconds in (5e3, 2e4, 1e5, 2.1e5, 1e9)] == [1, 2, 2, 4, 16]
    assert blocks_for(1e9, 1) == 1


@pytest.mark.parametrize(("height", "width"), [(7, 7), (1, 1), (13, 11), (5, 97)])
@pytest.mark.parametrize("outputs", [7, 40, 160, 1000])
def test_shares_do_not_change_values(height: int, width: int, outputs: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 96, height, width)).astype(np.float32)
    kernel = rng.standard_normal((outputs, 96, 1, 1)).astype(np.float32)
    builder = irexec.Builder("m")
    made = builder.emit(
        "Convolution", builder.parameter("f32", x.shape, "x"), kernel, strides=(1, 1), pads_begin=(0, 0),
        pads_end=(0, 0), dilations=(1, 1),
    )  # fmt: skip
    builder.result(made)
    model = builder.model()
    compiled = irexec.compile_model(model, threads=1)
    if not compiled.plan.native:
        pytest.skip("NumPy is estimated to be faster")
    alone = compiled([x])[0]
    expected = np.einsum("oc,chw->ohw", kernel[:, :, 0, 0].astype(np.float64), x[0])
    np.testing.assert_allclose(alone[0], expected, rtol=1e-4, atol=1e-4)
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(irexec.compile_model(model, threads=threads)([x])[0], alone)


# Arrays that a C kernel cannot read or write as they lie: small ones are copied by calls, so that a step is bound once.


def softmax(x: np.ndarray) -> np.ndarray:
    exponentials = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "is_bound_once"), [(7, True), (COPIED // 16, False)])
def test_one_binding_serves_the_next_values(rows: int, is_bound_once: bool, threads: int) -> None:
    """The columns of the data and of the result do not follow each other."""
    rng = np.random.default_rng(rows)
    data, out = (in_order(np.zeros((2, 3, rows, 5), np.float32), (0, 2, 3, 1)) for _ in range(2))
    task = task_of("Softmax", "opset8", [np.zeros(data.shape, np.float32)], {"axis": -1}, native=True)
    (kernel,) = natives(task)
    context = KernelContext.of(kernel, threads)
    binding = kernel.bound([data], [out], context)
    assert binding.repeatable == is_bound_once
    if is_bound_once:
        job = Job([binding])
        for _ in range(3):
            data[...] = rng.standard_normal(data.shape)
            job.run(Pool(threads))
            np.testing.assert_allclose(out, softmax(data), rtol=1e-5)
    else:
        data[...] = rng.standard_normal(data.shape)
        kernel.run([data], [out], context)
        np.testing.assert_allclose(out, softmax(data), rtol=1e-5)


# Transposed convolution by the C library against the reference kernel.


ALGORITHM = "C, phases as products"


def attributes(strides: Any, dilations: Any, begins: Any, ends: Any) -> dict[str, Any]:
    """The attributes of a transposed convolution."""
    return {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}


@pytest.mark.parametrize(
    ("data", "filter", "given"),
    [
        ((1, 16, 5, 6), (16, 8, 2, 2), attributes((2, 2), (1, 1), (0, 0), (0, 0))),
        ((2, 5, 7, 4), (5, 17, 4, 3), attributes((2, 1), (1, 1), (1, 1), (1, 0))),
        ((1, 3, 4, 5), (3, 33, 3, 3), attributes((3, 4), (2, 1), (0, 2), (1, 0))),
        ((1, 3, 8, 8), (3, 3, 2, 2), attributes((2, 2), (1, 1), (5, 4), (3, 6))),
        ((2, 4, 9), (4, 6, 5), attributes((3,), (1,), (1,), (2,))),
        ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), attributes((2, 1, 2), (1, 1, 1), (0, 1, 0), (0, 0, 1))),
        ((1, 3, 4, 4), (3, 2, 1, 1), attributes((3, 3), (1, 1), (0, 0), (0, 0))),
    ],
)
def test_one_group(data: tuple[int, ...], filter: tuple[int, ...], given: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in (data, filter)]
    found = check_kernels("ConvolutionBackpropData", "opset1", inputs, given, constants=[1])
    assert ALGORITHM in {kernel.algorithm for kernel in found}


@pytest.mark.parametrize("filter", [(3, 4, 5, 4, 4), (12, 1, 1, 4, 4), (2, 6, 3, 2, 2)])
def test_groups(filter: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 12, 7, 5), filter)]
    given = attributes((2, 2), (1, 1), (1, 1), (1, 1))
    found = check_kernels("GroupConvolutionBackpropData", "opset1", inputs, given, constants=[1])
    assert ALGORITHM in {kernel.algorithm for kernel in found}


def test_size_beyond_the_natural_end() -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 5, 5, 6), (5, 4, 3, 3))]
    given = {"strides": (2, 2), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "auto_pad": "valid"}
    found = check_kernels("ConvolutionBackpropData", "opset1", [*inputs, np.array([14, 17])], given, constants=[1, 2])
    assert ALGORITHM in {kernel.algorithm for kernel in found}


# Winograd's algorithm in C against a direct convolution in f64.


LAST: Order = (0, 2, 3, 1)
PADS = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
UNEVEN = PADS | {"pads_begin": (2, 0), "pads_end": (0, 3)}
# Images, channels, height and width; outputs.
WINOGRAD_SIZES = [
    ((1, 16, 12, 12), 24), ((2, 5, 11, 13), 7), ((1, 20, 9, 31), 70), ((3, 33, 6, 5), 130), ((1, 1, 3, 3), 1),
]  # fmt: skip


def _arrays(data: tuple[int, ...], outputs: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in (data, (outputs, data[1], 3, 3))]


def _results(task: Task, inputs: list[np.ndarray], operands: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The results of each tile size, by the name of the algorithm."""
    given = [in_order(inputs[0], LAST), *inputs[1:]]
    found = [kernel for kernel in candidates(task) if isinstance(kernel, NativeWinograd)]
    return {kernel.algorithm: run_kernel(kernel, task, given, operands)[0] for kernel in found}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("part", [1, 20_000, 1 << 20], ids=["a tile at once", "some tiles", "all tiles"])
@pytest.mark.parametrize("written", [LAST, None], ids=["channels last", "channels first"])
@pytest.mark.parametrize("attributes", [PADS, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(("data", "outputs"), WINOGRAD_SIZES, ids=str)
def test_results(
    data: tuple[int, ...], outputs: int, attributes: dict[str, tuple[int, int]], written: Order | None, part: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A result, and one with bias, residual and limit; one thread and two give the same bits."""
    monkeypatch.setattr(convolution, "_PART", part)
    inputs = _arrays(data, outputs)
    definition = resolve("Convolution", "opset1")
    plain = definition(*[x.astype(np.float64) for x in inputs], **definition.arguments(attributes))
    operands = [np.linspace(-1, 1, outputs, dtype=np.float32).reshape(1, -1, 1, 1), plain.astype(np.float32)[..., ::-1]]
    operands = [np.ascontiguousarray(operand) for operand in operands]
    chained = np.maximum(plain + operands[0] + operands[1], 0)

    cases: list[tuple[Chain | None, list[np.ndarray], np.ndarray]] = [
        (None, [], plain), (bias_residual_relu(), operands, chained),
    ]  # fmt: skip
    for chain, added, expected in cases:
        task = task_of(
            "Convolution", "opset1", inputs, attributes, constants=[1], chain=chain, operands=added, native=True
        )
        orders = (LAST, *task.input_orders[1:])
        one, two = (
            _results(
                dataclasses.replace(task, input_orders=orders, output_orders=(written,), threads=threads), inputs, added
            )
            for threads in (1, 2)
        )
        assert len(one) == (3 if loaded().vector >= 8 else 2)
        for name, result in one.items():
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * np.abs(expected).max(), err_msg=name)
            np.testing.assert_array_equal(result, two[name])
