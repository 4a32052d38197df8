"""Running ONNX models beside the IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from converters.onnx import reference
from tests.support.onnx_models import model_of


@pytest.mark.parametrize(
    ("type", "expected"), [("Softmax", 0.25), ("LogSoftmax", np.log(0.25)), ("Hardmax", [[[1.0], [0]], [[0], [0]]])]
)
def test_the_reference_flattens_as_old_opsets_do(type: str, expected: object, tmp_path: Path) -> None:
    """Softmax-11 and its like are over all axes from 1 on: here four equal values."""
    onnx.save(model_of(f"(float[1,2,2,1] x) => (float[1,2,2,1] y) {{ y = {type}(x) }}", 11), tmp_path / "m.onnx")
    (result,) = reference.open_evaluator(tmp_path / "m.onnx")({"x": np.ones((1, 2, 2, 1), np.float32)})
    np.testing.assert_allclose(result, np.broadcast_to(np.float32(expected), (1, 2, 2, 1)), rtol=1e-6)
