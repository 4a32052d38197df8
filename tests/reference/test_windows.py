"""Windows, blocks, and the memory that reference kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irexec
from irexec.analysis.evaluate import as_tuple
from irexec.errors import OpError
from irexec.reference import products, special, windows
from irexec.reference.windows import SlidingWindows, window_populations
from irexec.schema.registry import newest
from tests.support.memory import traced_peak

LARGEST = 2**63 - 1
X = np.arange(36, dtype=np.float32).reshape(1, 4, 3, 3) % 7
ONE_WINDOW = {"strides": (LARGEST, LARGEST), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
ONE_POINT = {"strides": (1, 1), "dilations": (LARGEST, LARGEST), "pads_begin": (0, 0), "pads_end": (0, 0)}
WEIGHTS = (np.arange(4 * 4 * 9, dtype=np.float32).reshape(4, 4, 3, 3) % 5) - 2


def _results(
    type: str, inputs: list[np.ndarray], optimize: bool, attributes: dict[str, Any], native: bool = True
) -> np.ndarray:
    builder = irexec.Builder(type)
    found = builder.emit(type, builder.parameter("f32", X.shape, "x"), *inputs, **attributes)
    builder.result(found[0] if isinstance(found, tuple) else found)
    return irexec.compile_model(builder.model(), optimize=optimize, native=native)([X])[0]


@pytest.mark.parametrize("optimize", [True, False])
def test_one_window(optimize: bool) -> None:
    found = {
        "Convolution": _results("Convolution", [WEIGHTS], optimize, ONE_WINDOW),
        "GroupConvolution": _results("GroupConvolution", [WEIGHTS[:, None, :1]], optimize, ONE_WINDOW),
        "MaxPool": _results("MaxPool", [], optimize, {**ONE_WINDOW, "kernel": (3, 3)}),
        "AvgPool": _results("AvgPool", [], optimize, {**ONE_WINDOW, "kernel": (3, 3), "exclude_pad": True}),
    }
    expected = {
        "Convolution": (X * WEIGHTS).sum((1, 2, 3)),
        "GroupConvolution": (X[0] * WEIGHTS[:, 0]).sum((1, 2)),
        "MaxPool": X.max((0, 2, 3)),
        "AvgPool": X.mean((0, 2, 3)),
    }
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name].reshape(1, 4, 1, 1), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("optimize", [True, False])
def test_one_point(optimize: bool) -> None:
    weights = WEIGHTS[:, :, :1, :1]
    found = {
        "Convolution": _results("Convolution", [weights], optimize, ONE_POINT),
        "GroupConvolution": _results("GroupConvolution", [weights[:, None, :1]], optimize, ONE_POINT),
        "MaxPool": _results("MaxPool", [], optimize, {**ONE_POINT, "kernel": (1, 1)}),
    }
    expected = {"Convolution": (X * weights).sum(1)[None], "GroupConvolution": X * weights[:, 0], "MaxPool": X}
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(("optimize", "native"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("strides", [(3, 3), (1, 3), (3, 1), (1, LARGEST), (2, 3)], ids=str)
def test_one_window_of_one_point_along_an_axis(strides: tuple[int, int], optimize: bool, native: bool) -> None:
    """The result has one pixel there, whatever the data have."""
    found = _results("Convolution", [WEIGHTS[:, :, :1, :1]], optimize, ONE_WINDOW | {"strides": strides}, native)
    expected = np.einsum("nchw,oc->nohw", X[:, :, :: strides[0], :: strides[1]], WEIGHTS[:, :, 0, 0])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("optimize", "native"), [(True, True), (True, False), (False, False)])
def test_one_window_that_begins_in_the_padding(optimize: bool, native: bool) -> None:
    """Its last tap alone lies in the data."""
    padded = ONE_WINDOW | {"pads_begin": (2, 2)}
    found = _results("Convolution", [WEIGHTS], optimize, padded, native)
    np.testing.assert_array_equal(found[0, :, 0, 0], WEIGHTS[:, :, 2, 2] @ X[0, :, 0, 0])
    grouped = _results("GroupConvolution", [WEIGHTS[:, None, :1]], optimize, padded, native)
    np.testing.assert_array_equal(grouped[0, :, 0, 0], WEIGHTS[:, 0, 2, 2] * X[0, :, 0, 0])


# What reference kernels allocate besides their results.


RNG = np.random.default_rng(0)
# Of each operation its inputs, its attributes and the megabytes that it may take besides its results.
ROWS: dict[str, tuple[str, list[np.ndarray], dict[str, Any], int]] = {
    "DFT": ("DFT", [RNG.random((40, 128, 128, 2), np.float32), np.array([1, 2])], {}, 6),
    "RDFT": ("RDFT", [RNG.random((128, 40, 254), np.float32), np.array([0, 2])], {}, 6),
    "IRDFT": ("IRDFT", [RNG.random((40, 128, 128, 2), np.float32), np.array([1, 2])], {}, 6),
    "AdaptiveMaxPool": ("AdaptiveMaxPool", [RNG.random((4, 256, 60, 60), np.float32), np.array([40, 40])], {"index_element_type": "i64"}, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_little_more_than_the_results(name: str) -> None:
    type, inputs, attributes, more = ROWS[name]
    results: list[np.ndarray] = []
    peak = traced_peak(lambda: results.extend(as_tuple(newest(type)(*inputs, **attributes))))
    taken = sum(array.nbytes for array in results)
    assert peak < taken + (more << 20)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (2, 0), (0, 1, 2)])
def test_transforms_by_blocks_are_those_of_numpy(axes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special, "_BLOCK", 20)
    x = RNG.random((3, 5, 6))
    points = x + 1j * RNG.random((3, 5, 6))
    np.testing.assert_allclose(
        special.transform(points, axes, inverse=False), np.fft.fftn(points, axes=axes), rtol=1e-12
    )
    np.testing.assert_allclose(
        special.transform(points, axes, inverse=True), np.fft.ifftn(points, axes=axes), rtol=1e-12
    )
    np.testing.assert_allclose(special.from_real(x, axes), np.fft.rfftn(x, axes=axes), rtol=1e-12)
    size = 2 * x.shape[axes[-1]] - 1
    sizes = [*(x.shape[axis] for axis in axes[:-1]), size]
    np.testing.assert_allclose(special.to_real(points, axes, size), np.fft.irfftn(points, sizes, axes=axes), rtol=1e-9)


# What is computed in blocks, so that a time limit can stop it, is what NumPy computes in one piece.


@pytest.mark.slow
@given(st.data(), st.sampled_from(["constant", "edge", "reflect", "symmetric"]), st.sampled_from([1, 3, 7]))
def test_pads(data: Any, mode: Any, block: int) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    limits = [size - 1 if mode == "reflect" else size if mode == "symmetric" else 9 for size in shape]
    pads = [(data.draw(st.integers(0, limit)), data.draw(st.integers(0, limit))) for limit in limits]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = np.pad(array, pads, mode, constant_values=-1) if mode == "constant" else np.pad(array, pads, mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_BLOCK", block)
        np.testing.assert_array_equal(windows.padded(array, pads, mode, -1), expected)


@given(st.data(), st.sampled_from([np.float32, np.float16, np.int32]), st.sampled_from([1, 100, 300]))
def test_matrices(data: Any, dtype: Any, long: int) -> None:
    leading = data.draw(st.lists(st.integers(1, 3), max_size=3))
    rows, inner, columns = (data.draw(st.integers(0, 5)) for _ in range(3))

    def operand(*matrix: int) -> np.ndarray:
        own = [data.draw(st.sampled_from([1, size])) for size in leading][data.draw(st.integers(0, len(leading))) :]
        return np.arange(np.prod((*own, *matrix)), dtype=dtype).reshape(*own, *matrix) % 5

    a, b = operand(rows, inner), operand(inner, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_LONG", long)
        found = products.matmul(a, b)
    expected = np.matmul(a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


# How many points of each pooling window lie on the data.


SMALL = st.integers(1, 5)


def _windows(kernel: int, stride: int, dilation: int, begin: int, end: int, count: int) -> SlidingWindows:
    return SlidingWindows((kernel,), (stride,), (dilation,), (begin,), (end,), (count,))


@given(size=st.integers(0, 9), kernel=SMALL, stride=SMALL, dilation=SMALL, begin=st.integers(0, 6), count=SMALL)
def test_as_counted_point_by_point(size: int, kernel: int, stride: int, dilation: int, begin: int, count: int) -> None:
    found = window_populations((size,), _windows(kernel, stride, dilation, begin, 0, count)).tolist()
    positions = [[i * stride - begin + k * dilation for k in range(kernel)] for i in range(count)]
    assert found == [sum(0 <= position < size for position in window) for window in positions]


def test_long_kernels_take_no_memory() -> None:
    assert window_populations((5,), _windows(2**62, 1, 1, 2, 2**62, 2)).tolist() == [5, 5]
    with pytest.raises(OpError, match="an axis of size 5 with pads"):
        window_populations((5,), _windows(3, 1, 1, 2**62, 2**62, 2))
