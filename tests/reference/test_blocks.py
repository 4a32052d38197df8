"""What is computed in blocks, so that a time limit can stop it, is what NumPy computes in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.reference import products, windows


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
