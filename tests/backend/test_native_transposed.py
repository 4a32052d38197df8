"""Transposed convolution by the C library against the reference kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.native.library import library
from irexec.testing.kernels import check_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

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
