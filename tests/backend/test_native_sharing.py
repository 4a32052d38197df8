"""Products in C: two threads get equal shares, and results are the same whatever the shares are."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.backend.native.panels import Cut, blocks_for, imbalance
from irexec.native.library import library

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")


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
