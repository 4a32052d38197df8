"""Compressed constants: decompressed whole, by rows, and in products that keep them compressed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.backend.chain import Chain, Formula, Instruction
from irexec.backend.compressed import CompressedSource
from irexec.backend.compressed_kernels import GroupedLinear
from irexec.backend.constants import ConstantStore, Holding
from irexec.backend.kernel import Kernel, Task
from irexec.backend.linear import DirectLinear, LinearKernel, TransposedLinear
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import F16, F32, I4, I8, U2, U4, U8, Element, pack, unpack
from irexec.ir.constants import BytesInMemory, Constant
from irexec.native.library import library
from irexec.testing.kernels import candidates, task_of
from tests.support.passes import run_kernel

RANGES = {U4: (0, 16), I4: (-8, 8), U8: (0, 256), I8: (-128, 128), U2: (0, 4)}

needs_library = pytest.mark.skipif(library() is None, reason="the C library was not built")

# Shape of the integers, and of the scales.
GROUPINGS = [
    ((6, 3, 8), (6, 3, 1)), ((6, 24), (6, 1)), ((5, 24), (1,)), ((5, 24), ()), ((5, 2, 8), (1, 2, 1)),
    ((5, 2, 8), (2, 1)), ((4, 3, 2, 8), (4, 3, 1, 1)), ((5, 7), (5, 1)), ((3, 3, 3), (3, 3, 1)),
    ((200, 12, 64), (200, 12, 1)), ((24,), (24,)), ((5, 8), (5, 8)),
]  # fmt: skip


def constant(element: Element, shape: tuple[int, ...]) -> tuple[Constant, np.ndarray]:
    """Random integers, packed and as they are."""
    values = np.random.default_rng(1).integers(*RANGES[element], shape).astype(element.carrier)
    raw = pack(element, values)
    return Constant(element, shape, BytesInMemory(raw), raw.size), values


def source_of(
    element: Element,
    shape: tuple[int, ...],
    scales: tuple[int, ...],
    with_zeros: bool,
    computed: Element = F32,
    factor: float = 0.01,
) -> tuple[CompressedSource, np.ndarray]:
    """A source and its value, computed as the model says."""
    rng = np.random.default_rng(2)
    packed, values = constant(element, shape)
    scale = (factor * (1 + rng.random(scales))).astype(np.float16)
    zeros = rng.integers(*RANGES[element], scales).astype(element.carrier) if with_zeros else None
    kind = computed.carrier
    expected = values.astype(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        if zeros is not None:
            expected = expected - zeros.astype(kind)
        expected = (expected * scale.astype(kind)).astype(np.float32)
    result = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else shape
    return CompressedSource(packed, zeros, scale, result, computed), expected.reshape(result)


@pytest.mark.parametrize("element", [*RANGES])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize("computed", [F32, F16])
@pytest.mark.parametrize(("shape", "scales"), GROUPINGS)
@pytest.mark.covering(2)
def test_value(
    element: Element, with_zeros: bool, computed: Element, shape: tuple[int, ...], scales: tuple[int, ...]
) -> None:
    """Exactly what the operations of the model give one after another, in f16 as well."""
    source, expected = source_of(element, shape, scales, with_zeros, computed)
    assert source.fact.shape == expected.shape
    np.testing.assert_array_equal(source.array(), expected)
    if source.has_rows:
        np.testing.assert_array_equal(source.rows(1, 3), expected[1:3])


@pytest.mark.parametrize("factor", [1e-5, 1e-7, 300, 3e4])
@pytest.mark.parametrize("element", [U4, I8])
def test_f16_outside_its_normal_range(factor: float, element: Element) -> None:
    source, expected = source_of(element, (6, 3, 8), (6, 3, 1), True, F16, factor)
    np.testing.assert_array_equal(source.array(), expected)


def test_rounding_to_f16_is_to_even() -> None:
    """Products that lie in the middle between two numbers of f16."""
    values = np.arange(256, dtype=np.uint8).reshape(1, 256)
    scales = (1 + np.arange(1024) / 1024).astype(np.float16).reshape(1024, 1)
    raw = np.repeat(values, 1024, 0).reshape(-1)
    source = CompressedSource(Constant(U8, (1024, 256), BytesInMemory(raw), raw.size), None, scales, (1024, 256), F16)
    np.testing.assert_array_equal(source.array(), (values.astype(np.float16) * scales).astype(np.float32))


def test_empty() -> None:
    source, expected = source_of(I4, (0, 2, 8), (0, 2, 1), True)
    assert source.array().shape == expected.shape == (0, 16)


def test_zero_points_that_are_not_integers() -> None:
    packed, values = constant(U8, (4, 8))
    scale, zeros = np.full((4, 1), 0.013, np.float16), np.full((4, 1), 100.7, np.float16)
    expected = ((values.astype(np.float16) - zeros) * scale).astype(np.float32)
    np.testing.assert_array_equal(CompressedSource(packed, zeros, scale, (4, 8), F16).array(), expected)


@pytest.mark.parametrize("element", [U4, I4, U8])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize(
    ("shape", "scales"),
    [((40, 3, 32), (40, 3, 1)), ((70, 96), (70, 1)), ((33, 2, 33), (33, 2, 1)), ((600, 8, 64), (600, 8, 1))],
)
@pytest.mark.parametrize("tokens", [1, 2, 5, 32, 100])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("holding", ["packed", "bytes"])
@pytest.mark.covering(2)
def test_products(
    element: Element,
    with_zeros: bool,
    shape: tuple[int, ...],
    scales: tuple[int, ...],
    tokens: int,
    threads: int,
    holding: Holding,
) -> None:
    """Every candidate, with a chain, against the product with the decompressed weights."""
    check_products(element, with_zeros, shape, scales, tokens, threads, holding)


@pytest.mark.parametrize("element", [U4, I4, U8, I8])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize(
    ("shape", "scales"),
    [((1, 2, 16), (1, 2, 1)), ((65, 1030), (65, 1)), ((9, 40, 7), (9, 40, 1)), ((31, 128, 4), (31, 128, 1)),
     ((17, 2, 300), (17, 2, 1)), ((40, 16, 2), (40, 16, 1))],
)  # fmt: skip
@pytest.mark.parametrize("tokens", [1, 3, 13, 201])
@pytest.mark.covering(2)
def test_products_of_odd_sizes(
    element: Element, with_zeros: bool, shape: tuple[int, ...], scales: tuple[int, ...], tokens: int
) -> None:
    """Groups that fill no words, are unpacked in several parts or share one; rows of several tiles."""
    check_products(element, with_zeros, shape, scales, tokens, 2, "packed")


def check_products(
    element: Element,
    with_zeros: bool,
    shape: tuple[int, ...],
    scales: tuple[int, ...],
    tokens: int,
    threads: int,
    holding: Holding,
) -> None:
    source, weights = source_of(element, shape, scales, with_zeros)
    x = np.random.default_rng(3).standard_normal((2, tokens, weights.shape[1]), np.float32)
    bias = np.random.default_rng(4).standard_normal(weights.shape[0], np.float32)
    expected = x @ weights.T + bias
    for order in (None, (0, 2, 1)):
        for kernel in kernels_of(source, [x, weights], bias, threads, order, holding):
            (actual,) = run_kernel(*kernel, [x, None], [bias])
            np.testing.assert_allclose(
                actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(), err_msg=kernel[0].algorithm
            )


@needs_library
@pytest.mark.parametrize("tokens", [1, 2, 30])
def test_native_values_that_are_not_finite(tokens: int) -> None:
    """A row with infinity or NaN is as in the product with the decompressed weights, and no other row changes."""
    source, weights = source_of(I4, (40, 3, 32), (40, 3, 1), False)
    x = np.random.default_rng(3).standard_normal((1, tokens, 96), np.float32)
    x[0, 0, 5], x[0, -1, 95] = np.inf, np.nan if tokens > 1 else 1
    bias = np.zeros(40, np.float32)
    with np.errstate(invalid="ignore"):
        expected = x @ weights.T
    for threads in (1, 2):
        kernel = native_kernel(source, [x, weights], bias, threads)
        (actual,) = run_kernel(*kernel, [x, None], [bias])
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@needs_library
@pytest.mark.parametrize("tokens", [1, 30, 1100])
def test_native_threads_give_the_same_bits(tokens: int) -> None:
    """More rows than a block has, too."""
    source, weights = source_of(U4, (600, 8, 64), (600, 8, 1), True)
    x = np.random.default_rng(3).standard_normal((1, tokens, 512), np.float32)
    bias = np.ones(600, np.float32)
    results = [run_kernel(*native_kernel(source, [x, weights], bias, n), [x, None], [bias])[0] for n in (1, 2, 3)]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    np.testing.assert_allclose(results[0], x @ weights.T + bias, rtol=1e-5, atol=1e-4)


@needs_library
@pytest.mark.parametrize("tokens", [2, 9, 14])
def test_native_limits_are_those_of_the_whole_sum(tokens: int) -> None:
    """Not of a part of the depth: large values that cancel each other lie 256 apart."""
    rng = np.random.default_rng(3)
    x, integers = rng.standard_normal((tokens, 1024), np.float32), rng.integers(-127, 128, (48, 1024)).astype(np.int8)
    x[:, 512:768], integers[:, 512:768] = -x[:, :256], integers[:, :256]
    scale = np.full((48, 1), 0.0625, np.float32)
    weights = integers * scale
    b = Builder("m")
    scaled = b.emit("Multiply", b.emit("Convert", b.constant(integers), destination_type="f32"), scale)
    product = b.emit("MatMul", b.parameter(F32, x.shape, "x"), scaled, transpose_b=True)
    b.result(b.emit("Clamp", product, min=-1.0, max=1.0))
    compiled = irexec.compile_model(b.model())
    assert "weights of 8 bits" in str(compiled.plan)
    (result,) = compiled({"x": x}).values()
    np.testing.assert_allclose(result, np.clip(x @ weights.T, -1, 1), atol=2e-3)


@needs_library
@pytest.mark.parametrize("tokens", [1, 6])
@pytest.mark.parametrize("group", [12, 32])
def test_native_weights_of_two_bits(tokens: int, group: int) -> None:
    """They are packed with four bits, in groups that may fill no word."""
    rng, b = np.random.default_rng(3), Builder("m")
    integers, zeros = rng.integers(0, 4, (120, 4, group)), rng.integers(0, 4, (120, 4, 1)).astype(np.float32)
    scale = rng.uniform(0.01, 0.1, (120, 4, 1)).astype(np.float32)
    stored = b.emit("Convert", b.constant(integers.astype(np.uint8), U2), destination_type="f32")
    scaled = b.emit("Multiply", b.emit("Subtract", stored, zeros), scale)
    weights = b.emit("Reshape", scaled, np.array([120, 4 * group]), special_zero=False)
    b.result(b.emit("MatMul", b.parameter(F32, (tokens, 4 * group), "x"), weights, transpose_b=True))
    compiled = irexec.compile_model(b.model())
    assert "weights of 2 bits" in str(compiled.plan)
    x = rng.standard_normal((tokens, 4 * group), np.float32)
    (result,) = compiled({"x": x}).values()
    expected = x @ ((integers - zeros) * scale).reshape(120, -1).T
    np.testing.assert_allclose(result, expected, atol=1e-5)


def native_kernel(
    source: CompressedSource, inputs: Sequence[np.ndarray], bias: np.ndarray, threads: int
) -> tuple[Kernel, Task]:
    found = kernels_of(source, inputs, bias, threads, None, "packed")
    return next((kernel, task) for kernel, task in found if not isinstance(kernel, LinearKernel))


@needs_library
@pytest.mark.parametrize("element", [U4, I4, U8, I8, U2])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "leading"),
    [
        # Matrices and stacks of inner by outputs, or of outputs by inner, in one group or several.
        ((96, 64), 0, ()), ((3, 32, 44), 1, ()), ((3, 96, 64), 1, (3,)), ((3, 2, 48, 64), 2, (3,)),
        ((3, 64, 96), 2, (3,)), ((2, 1, 32, 3, 32), 4, (2, 1)), ((2, 2, 64, 32), 3, (2, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tokens", [1, 3, 40])
@pytest.mark.parametrize("given", ["one", "all", "columns"])
@pytest.mark.covering(2)
def test_stacks_and_columns_stay_compressed(
    element: Element, with_zeros: bool, shape: tuple[int, ...], axis: int, leading: tuple[int, ...], tokens: int,
    given: str,
) -> None:  # fmt: skip
    """Beside NumPy in f64: one left operand for all matrices or one for each, as it is or transposed."""
    rng = np.random.default_rng([*shape, tokens])
    integers = rng.integers(*RANGES[element], shape).astype(element.carrier)
    sizes = [1 if i == axis else size for i, size in enumerate(shape)]
    scale = rng.uniform(0.01, 0.02, sizes).astype(np.float32)
    zero = rng.integers(*RANGES[element], sizes).astype(np.float32) * with_zeros
    by_column = axis < len(shape) - 1
    inner = math.prod(shape[len(leading) : -1] if by_column else shape[len(leading) + 1 :])
    outputs = shape[-1] if by_column else shape[len(leading)]
    whole = (*leading, inner, outputs) if by_column else (*leading, outputs, inner)
    b = Builder("stack")
    raw = pack(element, integers)
    stored = b.raw_constant(Constant(element, shape, BytesInMemory(raw), raw.size))
    weights = b.emit("Convert", stored, destination_type="f32")
    if with_zeros:
        weights = b.emit("Subtract", weights, zero)
    weights = b.emit("Reshape", b.emit("Multiply", weights, scale), np.int64(whole), special_zero=False)
    lead = leading if given == "all" else (1,) * len(leading)
    data = rng.normal(size=(*lead, tokens, inner)).astype(np.float32)
    swapped = given == "columns"
    x = b.parameter("f32", data.swapaxes(-1, -2).shape if swapped else data.shape, "x")
    product = b.emit("MatMul", x, weights, transpose_a=swapped, transpose_b=not by_column)
    bias = rng.normal(size=(*leading, 1, outputs)).astype(np.float32)
    b.result(b.emit("Relu", b.emit("Add", product, bias)), name="y")
    values = ((integers.astype(np.float64) - zero) * scale).reshape(whole)
    expected = np.maximum(data.astype(np.float64) @ (values if by_column else values.swapaxes(-1, -2)) + bias, 0)
    compiled = irexec.compile_model(b.model(), threads=2)
    assert f"weights of {element.bits} bits" in str(compiled.plan), compiled.plan
    result = compiled({"x": data.swapaxes(-1, -2) if swapped else data})["y"]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * inner)


@pytest.mark.parametrize("element", [U4, U8, I4, I8])
@pytest.mark.parametrize("spread", [0, 1])
@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("holding", ["packed", "bytes"])
@pytest.mark.parametrize(
    ("shape", "scales"), [((64, 32, 64), (64, 32, 1)), ((64, 16, 63), (64, 16, 1)), ((64, 2048), (64, 1))]
)
@pytest.mark.covering(2)
def test_little_is_left_of_zero_points(
    element: Element, spread: int, tokens: int, shape: tuple[int, ...], scales: tuple[int, ...], holding: Holding
) -> None:
    """Integers close to their zero points, and activations of one sign: the products of the two are much larger than the result."""
    rng, middle = np.random.default_rng(5), sum(RANGES[element]) // 2
    values = (middle + rng.integers(-3, 4, shape)).astype(element.carrier)
    zeros = (middle + rng.integers(-spread, spread + 1, scales)).astype(element.carrier)
    raw, scale = pack(element, values), np.full(scales, 0.0625, np.float32)
    source = CompressedSource(
        Constant(element, shape, BytesInMemory(raw), raw.size), zeros, scale, (shape[0], math.prod(shape[1:]))
    )
    weights = ((values.astype(np.int64) - zeros.astype(np.int64)) / 16).reshape(source.shape)
    x = rng.random((1, tokens, source.row), np.float32)
    bias = np.zeros(shape[0], np.float32)
    expected = x @ weights.T
    for kernel in kernels_of(source, [x, weights.astype(np.float32)], bias, 1, None, holding):
        (actual,) = run_kernel(*kernel, [x, None], [bias])
        np.testing.assert_allclose(
            actual, expected, rtol=0, atol=3e-6 * np.abs(expected).max(), err_msg=kernel[0].algorithm
        )


def _add(scratch: Scratch, out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    np.add(x, y, out=out)


def kernels_of(
    source: CompressedSource,
    inputs: Sequence[np.ndarray],
    bias: np.ndarray,
    threads: int,
    order: tuple[int, ...] | None,
    holding: Holding,
) -> list[tuple[Kernel, Task]]:
    chain = Chain(
        2, np.dtype(np.float32), (Instruction("Add", _add, (0, 1), np.dtype(np.float32), formula=Formula("Add")),)
    )
    made = task_of(
        "MatMul", "opset1", inputs, {"transpose_b": True}, constants=(1,), chain=chain, operands=[bias],
        threads=threads, native=True,
    )  # fmt: skip
    task = dataclasses.replace(made, constants=(None, source), holding=holding, output_orders=(order,))
    found = candidates(task)
    types = {type(kernel) for kernel in found if isinstance(kernel, LinearKernel)}
    assert DirectLinear in types
    assert types <= {DirectLinear, TransposedLinear, GroupedLinear}
    native = [kernel.algorithm for kernel in found if not isinstance(kernel, LinearKernel)]
    assert native == [f"C, product with weights of {source.packed.element.bits} bits"] * (library() is not None)
    for kernel in found:
        store = ConstantStore()
        kernel.pack(store)
        if isinstance(kernel, LinearKernel):
            assert [packed.dtype for _, packed in store.made()] == [np.int8] * (
                holding == "bytes" and source.fits_bytes
            )
        assert kernel.runs_chain
    return [(kernel, task) for kernel in found]


def test_unpacked_once_where_memory_allows() -> None:
    source, weights = source_of(U4, (40, 3, 32), (40, 3, 1), True)
    inputs = [np.ones((2, 96), np.float32), weights]
    made = task_of("MatMul", "opset1", inputs, {"transpose_b": True}, constants=(1,))
    task = dataclasses.replace(made, constants=(None, source))
    for kernel in candidates(task):
        store = ConstantStore()
        kernel.pack(store)
        ((_, packed),) = store.made()
        np.testing.assert_array_equal(packed, weights)


@pytest.mark.parametrize("element", [U4, I4])
def test_zero_points_that_do_not_fit_bytes_stay_packed(element: Element) -> None:
    packed, values = constant(element, (32, 2, 32))
    scale, zeros = np.full((32, 2, 1), 0.013, np.float32), np.full((32, 2, 1), 3.7, np.float32)
    source = CompressedSource(packed, zeros, scale, (32, 64), F32)
    weights = ((values - zeros) * scale).reshape(32, 64)
    x, bias = np.ones((1, 5, 64), np.float32), np.zeros(32, np.float32)
    assert not source.fits_bytes
    for kernel in kernels_of(source, [x, weights], bias, 1, None, "bytes"):
        (actual,) = run_kernel(*kernel, [x, None], [bias])
        np.testing.assert_allclose(actual, x @ weights.T, rtol=1e-5)


def test_packing_is_that_of_ir() -> None:
    """The low four bits come first."""
    np.testing.assert_array_equal(unpack(U4, np.array([0x21], np.uint8), 2), [1, 2])
    source = CompressedSource(
        Constant(U4, (1, 2), BytesInMemory(np.array([0x21], np.uint8)), 1), None, np.ones((), np.float32), (1, 2)
    )
    np.testing.assert_array_equal(source.array(), [[1, 2]])
