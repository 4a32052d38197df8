"""Attention: every candidate gives what the reference kernel gives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from irexec.backend import attention
from irexec.backend.attention import RowAttention, TiledAttention
from irexec.backend.calls import NativeKernel
from irexec.backend.kernel import Kernel
from irexec.backend.native import attention as native_attention
from irexec.native.library import library
from irexec.testing.kernels import candidates, task_of
from tests.support.passes import run_kernel

# (leading axes of query and of key, rows, columns, width, width of the value)
SIZES = [
    ((2, 3), (2, 3), 7, 5, 4, 6),
    ((2, 3), (1, 3), 5, 9, 4, 4),
    ((1, 4), (1, 1), 1, 40, 8, 8),
    ((3,), (3,), 130, 150, 16, 8),
    ((1, 2), (1, 2), 260, 300, 64, 64),
    ((2, 1, 5), (2, 1, 5), 20, 20, 64, 64),
    ((1, 2), (1, 2), 20, 30, 300, 10),
]


@pytest.fixture(params=[24, 512], autouse=True)
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C kernel computes the same whatever the columns of a block."""
    monkeypatch.setattr(native_attention, "_COLUMNS", request.param)


def given(
    sizes: tuple[tuple[int, ...], tuple[int, ...], int, int, int, int], mask: str | None, sink: bool, scale: bool
) -> list[np.ndarray]:
    """Random inputs; a mask by name."""
    leading, of_key, rows, columns, width, values = sizes
    rng = np.random.default_rng(0)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    def masks() -> np.ndarray | None:
        if mask is None:
            return None
        shape = (*leading[:-1], 1, 1, columns) if "columns" in mask else (*leading, rows, columns)
        kept = rng.random(shape) < 0.7
        kept[..., 0] = True
        if "boolean" in mask:
            return kept
        return np.where(kept, random(*shape), -np.inf if "infinite" in mask else -65504).astype(np.float32)

    inputs = [random(*leading, rows, width), random(*of_key, columns, width), random(*of_key, columns, values)]
    known = masks()
    if known is not None or scale or sink:
        inputs.append(np.zeros((), np.float32) if known is None else known)
    if scale or sink:
        inputs.append(np.full((), 0.3, np.float32))
    return [*inputs, random(*leading, rows, 1)] if sink else inputs


def check(inputs: list[np.ndarray], causal: bool, threads: int = 1, largest: float = 0) -> list[Kernel]:
    """``largest`` is the largest score: it is rounded to a 2**-24 of itself, in another way by each BLAS, and becomes an exponent."""
    rounding = largest * 2**-23
    task = task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": causal}, threads=threads, native=True)
    expected = task.definition(*inputs, causal=causal)
    found = candidates(task)
    native = [kernel for kernel in found if isinstance(kernel, NativeKernel)]
    assert len(native) == (library() is not None)
    assert [type(kernel) for kernel in found if kernel not in native] == [RowAttention, TiledAttention]
    for kernel in found:
        (actual,) = run_kernel(kernel, task, inputs)
        np.testing.assert_allclose(
            actual,
            expected,
            rtol=1e-5 + rounding,
            atol=(3e-6 + rounding) * np.abs(expected[np.isfinite(expected)]).max(),
            err_msg=kernel.algorithm,
        )
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", [None, "boolean", "infinite", "finite", "boolean columns", "infinite columns"])
@pytest.mark.covering(2)
def test_masks_and_sinks(
    sizes: tuple[tuple[int, ...], tuple[int, ...], int, int, int, int], mask: str | None, threads: int
) -> None:
    for sink, scale in product((False, True), repeat=2):
        check(given(sizes, mask, sink, scale), False, threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.covering(2)
def test_causal(sizes: tuple[tuple[int, ...], tuple[int, ...], int, int, int, int], threads: int) -> None:
    for sink in (False, True):
        check(given(sizes, None, sink, False), True, threads)
    check(given(sizes, "boolean", False, False), True, threads)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scores", [1, 1000, 100_000])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.covering(2)
def test_small_blocks(monkeypatch: pytest.MonkeyPatch, scores: int, causal: bool) -> None:
    """Few scores at once, so that rows, columns and matrices are cut."""
    monkeypatch.setattr(attention, "_SCORES", scores)
    monkeypatch.setattr(attention, "_WORTH_A_BLOCK", 1000)
    for sizes in SIZES:
        check(given(sizes, None if causal else "infinite", True, False), causal, 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mask", [None, "boolean", "infinite", "finite", "boolean columns", "infinite columns"])
@pytest.mark.parametrize("columns", [1, 100], indirect=True)
@pytest.mark.covering(2)
def test_blocks_of_columns(mask: str | None) -> None:
    """Rows whose first columns are all hidden, and rows with a larger score in each block."""
    for sizes, sink in product(SIZES, (False, True)):
        inputs = given(sizes, mask, sink, False)
        if sizes[3] > 60 and mask is not None and "columns" not in mask:
            inputs[3][..., ::2, :50] = False if "boolean" in mask else -np.inf if "infinite" in mask else -1e38
        inputs[1] *= np.linspace(0.1, 3, sizes[3], dtype=np.float32)[:, None]
        check(inputs, False, 2, largest=20)
    for sizes in SIZES:
        check(given(sizes, None, False, False), True, 2)


@pytest.mark.parametrize("factor", [1e-3, 30, 1e4])
def test_large_scores(factor: float) -> None:
    """Scores whose exponentials would overflow, or all vanish."""
    inputs = given(SIZES[4], None, False, False)
    inputs[0] *= np.float32(factor)
    width = inputs[0].shape[-1]
    largest = float(np.abs(np.matmul(inputs[0], inputs[1].swapaxes(-1, -2))).max() / np.sqrt(width))
    check(inputs, False, largest=largest)
    check([*inputs, np.full((260, 300), -300, np.float32)], False, largest=largest + 300)


def test_rows_without_scores_are_nan() -> None:
    """A row that keeps nothing is NaN, the others are not touched by it."""
    for value in (False, -np.inf):
        inputs = given(SIZES[4], "boolean", False, False)
        mask = np.ones((260, 300), np.bool_) if value is False else np.zeros((260, 300), np.float32)
        mask[3] = value
        inputs[3] = mask
        found = check(inputs, False)
        task = task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": False})
        for kernel in found:
            (actual,) = run_kernel(kernel, task, inputs)
            assert np.isnan(actual[:, :, 3]).all()
            assert not np.isnan(actual[:, :, 4:]).any()


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_values_that_are_not_finite(causal: bool, strided: bool) -> None:
    """A hidden value has the weight 0, and 0 times infinity is NaN: every row is. So it is in OpenVINO 2026."""
    inputs = given(SIZES[4], None, False, False)
    inputs[2][0, 0, 280, 3] = np.inf
    inputs[2][0, 1, 8, 2] = 3e38
    if strided:
        inputs[2] = np.ascontiguousarray(inputs[2].swapaxes(1, 2)).swapaxes(1, 2)
    (*_, kernel) = check(inputs, causal)
    (actual,) = run_kernel(kernel, task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": causal}), inputs)
    assert (np.isnan(actual[0, 0, :, 3]) if causal else np.isinf(actual[0, 0, :, 3])).all()
    assert np.isfinite(actual[0, 0, :, :3]).all()


@pytest.mark.parametrize("mask", [-3.4e38, -65504.0])
def test_rows_that_finite_masks_hide_wholly(mask: float) -> None:
    """Softmax subtracts what all scores have in common. Scores vanish beside the lowest float32: the row is the mean of the values."""
    inputs = given(SIZES[4], None, False, False)
    inputs.append(np.zeros((260, 300), np.float32))
    inputs[3][3] = mask
    for kernel in check(inputs, False):
        (actual,) = run_kernel(
            kernel, task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": False}), inputs
        )
        if mask == -3.4e38:
            np.testing.assert_allclose(actual[:, :, 3], inputs[2].mean(-2, dtype=np.float64), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1, 3])
@pytest.mark.covering(2)
def test_queries_keys_and_masks_that_are_not_finite(which: int, bad: float) -> None:
    """Rows without finite values are those of the reference kernel, and no others."""
    for causal in (False, True):
        inputs = given(SIZES[4], "infinite", False, False)
        inputs[which][0, 0, 7, 3] = bad
        check(inputs, causal)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 3, 2), (1, 3, 0, 2)])
def test_orders(order: tuple[int, ...]) -> None:
    """Heads as views of (B, T, H * D), features first, and any other order."""
    for sizes in ((2, 3), (2, 3), 130, 150, 16, 16), ((1, 4), (1, 4), 33, 40, 8, 8):
        inputs = given(sizes, "boolean", False, False)
        for i in range(3):
            inputs[i] = np.ascontiguousarray(inputs[i].transpose(order)).transpose(np.argsort(order))
        check(inputs, False)


@pytest.mark.parametrize(
    "sizes",
    [
        ((0, 3), (0, 3), 7, 5, 4, 6),
        ((2, 3), (2, 3), 0, 5, 4, 6),
        ((2, 3), (2, 3), 7, 0, 4, 6),
        ((2,), (2,), 7, 5, 0, 6),
    ],
)
def test_nothing_to_attend(sizes: tuple[tuple[int, ...], tuple[int, ...], int, int, int, int]) -> None:
    inputs = given(sizes, None, False, False)
    assert not candidates(task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": False}))


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [(1, 500, RowAttention), (64, 64, TiledAttention), (197, 197, TiledAttention), (1500, 1500, TiledAttention)],
)
def test_selected_by_cost(rows: int, columns: int, expected: type[Kernel]) -> None:
    shapes = [(1, 12, rows, 64), (1, 12, columns, 64), (1, 12, columns, 64)]
    inputs = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    found = candidates(task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": False}))
    assert type(min(found, key=lambda kernel: kernel.cost)) is expected


@pytest.mark.skipif(library() is None, reason="the C library is not built")
@pytest.mark.parametrize("causal", [False, True])
def test_two_threads_compute_the_same_bits(causal: bool) -> None:
    inputs = given(SIZES[4], None, False, False)
    results = []
    for threads in (1, 2):
        task = task_of("ScaledDotProductAttention", "opset13", inputs, {"causal": causal}, threads=threads, native=True)
        (kernel,) = (kernel for kernel in candidates(task) if isinstance(kernel, NativeKernel))
        results.append(run_kernel(kernel, task, inputs)[0])
    assert np.array_equal(*results)
