"""Where there is one window, its stride decides nothing, and may be any number up to 2^63 - 1; so may the dilation of a kernel of one point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec

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
    expected = {
        "Convolution": (X * weights).sum(1)[None],
        "GroupConvolution": X * weights[:, 0],
        "MaxPool": X,
    }
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
