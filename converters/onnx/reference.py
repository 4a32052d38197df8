"""Running an ONNX model by ONNX Runtime, or by the reference evaluator of onnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from converters.onnx.declared import declared_shape
from irexec.errors import ConversionError
from irexec.ir.dims import PartialShape


@dataclass(frozen=True)
class OnnxReference:
    """An ONNX model that can be run.

    Attributes:
        name: what runs it: "onnxruntime" or "onnx.reference".
        shapes: of the inputs, by name; dimensions with a name are symbols.
    """

    name: str
    shapes: Mapping[str, PartialShape]
    _run: Callable[[dict[str, np.ndarray]], Any]
    _outputs: tuple[str, ...]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name.

        Raises:
            ConversionError: it cannot run the model with these inputs.
        """
        try:
            return dict(zip(self._outputs, map(np.asarray, self._run(dict(inputs))), strict=True))
        except Exception as error:
            # ONNX Runtime raises classes of its own, which have no common base but Exception.
            raise _failed(self.name, error) from None


def open_reference(path: str | Path) -> OnnxReference:
    """The model, run by ONNX Runtime if that is installed, else by onnx.reference.

    Raises:
        ConversionError: that does not accept the model.
    """
    try:
        import onnxruntime
    except ImportError:
        return _open("onnx.reference", path, _by_onnx)
    onnxruntime.set_default_logger_severity(4)
    return _open("onnxruntime", path, _by_onnxruntime)


def open_evaluator(path: str | Path) -> OnnxReference:
    """The model, run by onnx.reference.

    Raises:
        ConversionError: that does not accept the model.
    """
    return _open("onnx.reference", path, _by_onnx)


def _open(name: str, path: str | Path, opened: Callable[[str], OnnxReference]) -> OnnxReference:
    try:
        return opened(str(path))
    except Exception as error:
        # As above.
        raise _failed(name, error) from None


def _failed(name: str, error: Exception) -> ConversionError:
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    hint = " (ONNX Runtime is used if it is installed: pip install onnxruntime)" if name == "onnx.reference" else ""
    return ConversionError(f"{name} cannot run the model: {first}{hint}")


def _by_onnxruntime(path: str) -> OnnxReference:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs = tuple(output.name for output in session.get_outputs())
    # ONNX Runtime does not tell a scalar from a tensor of unknown rank.
    shapes = _shapes(onnx.load(path, load_external_data=False))
    return OnnxReference("onnxruntime", shapes, lambda inputs: session.run(list(outputs), inputs), outputs)


def _shapes(model: onnx.ModelProto) -> dict[str, PartialShape]:
    return {info.name: declared_shape(info.type.tensor_type) for info in model.graph.input}


def _by_onnx(path: str) -> OnnxReference:
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    evaluator = ReferenceEvaluator(model, new_ops=_flattening() if _opset(model) < 13 else None)
    return OnnxReference(
        "onnx.reference", _shapes(model), lambda inputs: evaluator.run(None, inputs), tuple(evaluator.output_names)
    )


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _flattening() -> list[Any]:
    """Softmax, LogSoftmax and Hardmax before opset 13: over all axes from ``axis`` (1) on together.

    onnx.reference has the newest version of each only. Source: Softmax-11, LogSoftmax-11, Hardmax-11.
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
