"""Running the ONNX side of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from irexec.errors import ConversionError


def run_onnx(path: str | Path, inputs: Mapping[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
    """The outputs of an ONNX model by name, and what computed them.

    ONNX Runtime where it is installed, else the reference evaluator of onnx.

    Raises:
        ConversionError: neither can run the model.
    """
    try:
        import onnxruntime
    except ImportError:
        return "onnx.reference", _by_reference(path, inputs)
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return "onnxruntime", dict(zip(names, session.run(names, dict(inputs)), strict=True))
    except Exception as error:
        # ONNX Runtime raises classes of its own, which have no common base but Exception.
        raise ConversionError(f"{path}: ONNX Runtime cannot run it: {str(error).splitlines()[0]}") from None


def _by_reference(path: str | Path, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    try:
        model = onnx.load(str(path))
        evaluator = ReferenceEvaluator(model, new_ops=_flattening() if _opset(model) < 13 else None)
        return dict(zip(evaluator.output_names, evaluator.run(None, dict(inputs)), strict=True))
    except Exception as error:
        raise ConversionError(f"{path}: onnx.reference cannot run it: {str(error).splitlines()[0]}") from None


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _flattening() -> list[Any]:
    """Softmax, LogSoftmax and Hardmax as they were before opset 13: over all axes from ``axis`` (1) on.

    onnx.reference has the newest of each alone. Source: Softmax-11, LogSoftmax-11, Hardmax-11.
    """
    from onnx.reference.op_run import OpRun

    class Flattening(OpRun):
        op_domain = ""

        def _run(self, x: np.ndarray, **_: Any) -> tuple[np.ndarray]:
            axis = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), 1)
            rows = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
            return (self.of_rows(rows).reshape(x.shape).astype(x.dtype),)

        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            powers = np.exp(rows - rows.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

    class LogSoftmax(Flattening):
        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.log(super().of_rows(rows))

    class Hardmax(Flattening):
        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]

    return [type("Softmax", (Flattening,), {}), LogSoftmax, Hardmax]
