"""Older opsets: operators that they lack are composed of others, or the layer is refused with a reason that says so."""

from __future__ import annotations

import numpy as np
import pytest

from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from converters.ir_to_onnx.registry import translation_of
from irexec import Builder
from irexec.testing import Case
from tests.support.tiers import some
from tests.to_onnx.exceptions import EXCEPT, REFUSED, is_listed
from tests.to_onnx.kernels import TABLE, table
from tests.to_onnx.sweep import cases, expected_of, exported

_RECURRENT = ("GRU", "LSTM", "RNN")
_UNREAD = "GridSample interpolation only supports"
"""Said by the evaluator of onnx, which knows the modes of GridSample by their names of opset 20 alone."""
_ROWS = [(family, row) for family, row in cases() if not row.type.startswith(_RECURRENT)]


@pytest.mark.parametrize("opset", some([13, 17, 21], [13]))
def test_rows(opset: int) -> None:
    broken = []
    for family, row in _ROWS[opset % 7 :: 11]:
        if is_listed(row, EXCEPT) or is_listed(row, REFUSED):
            continue
        reason = _outcome(family, row, opset)
        if reason and f"opset {opset}" not in reason:
            broken.append(f"{row.id}: {reason}")
    assert not broken, "\n".join(broken)


def _is_written(row: Case) -> bool:
    translation = translation_of(row.definition)
    return translation is not None and translation.function is not None


def _outcome(family: str, row: Case, opset: int) -> str:
    """The reason for which a row is refused or differs; empty if it is written and gives what it gives in IR."""
    try:
        exported(row, expected_of(family, row), opset)
    except ExportError as error:
        return error.layers[0].reason if _is_written(row) else ""
    except Exception as error:
        # A runtime raises errors of its own; all rows are looked at.
        return "" if opset < 20 and _UNREAD in str(error) else f"{error!r:.300}"
    return ""


def test_the_kernels_are_those_of_onnx_runtime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if not onnxruntime.__version__.startswith("1.32."):
        pytest.skip("the table is that of ONNX Runtime 1.32")
    assert table() == TABLE.read_text("utf-8"), "python -m tests.to_onnx.kernels makes it anew"


def test_by_default_onnx_runtime_has_every_operator() -> None:
    """ONNX Runtime 1.32 has no Swish of opset 25 and no RoiAlign of opset 22."""
    onnxruntime = pytest.importorskip("onnxruntime")
    x, rois, images = np.array([[[[1, -2], [3, 6]]]], np.float32), np.array([[0, 0, 1, 1]], np.float32), np.array([0])
    g = Builder()
    data = g.parameter("f32", [1, 1, 2, 2], "x")
    g.result(g.emit("Swish", data), "swish")
    options = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0, "mode": "avg"}
    g.result(g.emit("ROIAlign", data, g.constant(rois), g.constant(images), **options), "means")
    model = g.model()
    assert export(model, 25).proto.opset_import[0].version == 25
    proto = export(model).proto
    assert proto.opset_import[0].version == 21
    swish, means = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(swish, x / (1 + np.exp(-x)), rtol=1e-6)
    # The only point of the box is amid all four pixels.
    np.testing.assert_array_equal(means, [[[[2]]]])
