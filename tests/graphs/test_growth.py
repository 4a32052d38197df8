"""Steps of a random graph: the arrays beside the graph are those of its operations."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.errors import OpError
from tests.graphs.growth import Growth


def test_an_absent_input_before_the_last_is_refused() -> None:
    """It would not be clear which input the next one is."""
    g = Growth(np.random.default_rng(0))
    data = g.constant(np.float32([[1], [2]]), "f32")
    indices = g.constant(np.array([0, 1]), "i64")
    with pytest.raises(OpError, match="lacks an input before its last"):
        g.one("EmbeddingSegmentsSum", data, indices, indices, g.constant_i64(2), None, data)


def test_trailing_inputs_may_be_absent() -> None:
    g = Growth(np.random.default_rng(0))
    made = g.one("Swish", g.constant(np.float32([0, 100]), "f32"), None)
    assert made.array.tolist() == [0, 100]
