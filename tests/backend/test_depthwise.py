"""Fast depthwise convolution against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend import depthwise
from irexec.reference.convolution import convolve
from irexec.reference.windows import SlidingWindows
from irexec.schema.windows import window_count_or_zero


@pytest.mark.parametrize("few", [0, 1000], ids=["whole images", "channels last"])
@pytest.mark.parametrize("cached", [1, 1 << 20], ids=["channel by channel", "at once"])
def test_random_geometry(monkeypatch: pytest.MonkeyPatch, few: int, cached: int) -> None:
    """Sizes, kernels, strides, dilations and pads of every kind, also where nothing of the data is met."""
    monkeypatch.setattr(depthwise, "_FEW", few)
    monkeypatch.setattr(depthwise, "_CACHED", cached)
    rng = np.random.default_rng(0)
    for _ in range(150):
        rank = int(rng.integers(1, 4))
        channels, images = int(rng.integers(1, 5)), int(rng.integers(1, 3))
        sizes, kernel, strides, dilations = (tuple(rng.integers(1, most, rank).tolist()) for most in (9, 5, 4, 4))
        pads = tuple(rng.integers(0, 6, rank).tolist()), tuple(rng.integers(0, 6, rank).tolist())
        x = rng.standard_normal((images, channels, *sizes)).astype(np.float32)
        weights = rng.standard_normal((channels, 1, 1, *kernel)).astype(np.float32)
        counts = tuple(map(window_count_or_zero, sizes, kernel, strides, dilations, *pads))
        placed = SlidingWindows(kernel, strides, dilations, *pads, counts)
        found = depthwise.prepare_depthwise(weights, strides, dilations)(x, placed)
        expected = convolve(x, weights, placed)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=f"{x.shape} {kernel} {strides} {dilations} {pads}")
