"""Running the ONNX side of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
        evaluator = ReferenceEvaluator(onnx.load(str(path)))
        return dict(zip(evaluator.output_names, evaluator.run(None, dict(inputs)), strict=True))
    except Exception as error:
        raise ConversionError(f"{path}: onnx.reference cannot run it: {str(error).splitlines()[0]}") from None
