"""What reference kernels allocate besides their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.analysis.evaluate import as_tuple
from irexec.reference import special
from irexec.schema.registry import newest
from tests.support.memory import traced_peak

RNG = np.random.default_rng(0)
# Of each operation its inputs, its attributes and the megabytes that it may take besides its results.
ROWS: dict[str, tuple[str, list[np.ndarray], dict[str, Any], int]] = {
    "DFT": ("DFT", [RNG.random((40, 128, 128, 2), np.float32), np.array([1, 2])], {}, 6),
    "RDFT": ("RDFT", [RNG.random((128, 40, 254), np.float32), np.array([0, 2])], {}, 6),
    "IRDFT": ("IRDFT", [RNG.random((40, 128, 128, 2), np.float32), np.array([1, 2])], {}, 6),
    "AdaptiveMaxPool": (
        "AdaptiveMaxPool",
        [RNG.random((4, 256, 60, 60), np.float32), np.array([40, 40])],
        {"index_element_type": "i64"},
        20,
    ),
}


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
