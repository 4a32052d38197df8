"""ONNX Runtime and the reference evaluator of onnx: both run the .onnx file of a model, not its graph in IR."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import ConversionError, EngineError, InputError, UnsupportedError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.graph import Value
from irexec.runtime.inputs import bind_inputs
from irexec.tools.engines.runtimes.process import ProcessRuntime
from irexec.tools.engines.runtimes.results import carried_type
from irexec.tools.engines.runtimes.runtime import Arrays, Runtime, in_carrier

_FIRST_BYTES = 1 << 16
# As written: products with weights of 4 bits are computed in f32, where ONNX Runtime itself takes data of 8 bits
# (level 4, its default in the optimizer's selectors and actions for QDQ).
_SETTINGS = {"session.qdq_matmulnbits_accuracy_level": "1"}


class OnnxFileRuntime(Runtime):
    """The .onnx file that a model came from. It gives the values that have the name of a tensor of the file.

    Args:
        model: converted from the file ``model.path``.
        name: of the runtime; by default that of the engine.

    Raises:
        InputError: the model did not come from an .onnx file.
        ConversionError: the file cannot be read.
    """

    engine: ClassVar[str]

    def __init__(self, model: Model, name: str = "", **process: Any) -> None:
        if model.path is None or not is_onnx_file(model.path):
            raise InputError(f"{self.engine} runs .onnx files only, and {model.path or 'the model'} is an IR")
        super().__init__(name or self.engine, model, **process)
        from converters.onnx.observe import tensor_names

        self.path = model.path
        self._names = tensor_names(model.path)
        self._facts = infer_shapes(model, tolerant=True).facts

    def gives(self, value: Value) -> bool:
        return self._name(value) is not None

    def _name(self, value: Value) -> str | None:
        return next((name for name in value.names if name in self._names), None)

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        from converters.onnx.observe import write_observed

        elements = [self._facts[value].element if value in self._facts else None for value in values]
        names = [self._name(value) for value in values]
        asked = {name: element for name, element in zip(names, elements, strict=True) if name is not None}
        carried = [
            None if one is None or one.native or not one.bits else _onnx_name(carried_type(one))
            for one in asked.values()
        ]
        feeds = [self._fed(arrays) for arrays in runs]
        with tempfile.TemporaryDirectory(prefix="irexec-onnx-") as folder:
            target = Path(folder) / "model.onnx"
            write_observed(self.path, list(asked), carried, target)
            outputs = self._run(target, feeds)
        given = [dict(zip(asked, arrays, strict=True)) for arrays in outputs]
        return [
            [in_carrier(found[name or ""], element) for name, element in zip(names, elements, strict=True)]
            for found in given
        ]

    def _fed(self, arrays: Arrays) -> dict[str, np.ndarray]:
        bound = bind_inputs(self.inputs, dict(arrays))
        return {self._input_name(port): array for port, array in zip(self.inputs, bound, strict=True)}

    def _input_name(self, port: Port) -> str:
        if port.element is not None and not port.element.native and port.element.bits:
            raise UnsupportedError(f"input {port} is of a type that NumPy lacks, of which {self.name} takes no arrays")
        return next((name for name in port.names if name in self._names), port.name)

    @abstractmethod
    def _run(self, path: Path, feeds: Sequence[Arrays]) -> list[list[np.ndarray]]:
        """The outputs of an .onnx file, for each run."""


def _onnx_name(element: object) -> str:
    return "FLOAT" if str(element) == "f32" else "INT32"


class OnnxRuntime(OnnxFileRuntime, ProcessRuntime):
    """ONNX Runtime, in a process of its own."""

    engine = "onnxruntime"

    def _run(self, path: Path, feeds: Sequence[Arrays]) -> list[list[np.ndarray]]:
        return self._ask(path, feeds, str(self.path), preferred=_SETTINGS)


class OnnxReferenceRuntime(OnnxFileRuntime):
    """The reference evaluator of the package onnx, in this process: slow, and as the specification says."""

    engine = "onnx"

    def _run(self, path: Path, feeds: Sequence[Arrays]) -> list[list[np.ndarray]]:
        from converters.onnx.reference import open_evaluator

        try:
            evaluator = open_evaluator(path)
            return [evaluator(arrays) for arrays in feeds]
        except ConversionError as error:
            raise EngineError(
                str(error).replace("cannot run the model", f"cannot run {self.path}", 1), engine=self.name
            ) from None
