"""The reference evaluator of onnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import load_external_data_for_model

from converters.onnx.load import parse
from irexec.errors import ConversionError

Evaluator = Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]
"""Returns the outputs in order; raises ConversionError if the model cannot run with these inputs."""


def open_evaluator(path: str | Path, results: Sequence[str] = ()) -> Evaluator:
    """The evaluator of a model, which returns these outputs, or all.

    Raises:
        ConversionError: the evaluator does not accept the model.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        model, _, folder = parse(path)
        load_external_data_for_model(model, str(folder or Path()))
        evaluator = ReferenceEvaluator(model, new_ops=_flattening() if _opset(model) < 13 else None)
    except Exception as error:
        # The classes that the evaluator raises have no common base but Exception.
        raise _failed(error) from None

    def run(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        try:
            return [np.asarray(array) for array in evaluator.run(list(results) or None, dict(inputs))]
        except Exception as error:
            # The same.
            raise _failed(error) from None

    return run


def _failed(error: Exception) -> ConversionError:
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return ConversionError(f"onnx.reference cannot run the model: {first}")


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _flattening() -> list[Any]:
    """Softmax, LogSoftmax and Hardmax before opset 13: over the flattened axes from ``axis`` (1) on.

    onnx.reference has only the newest version of each. Source: Softmax-11, LogSoftmax-11, Hardmax-11.
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
