"""ONNX Runtime and the reference evaluator of onnx: both run the .onnx file of a model, not its graph in IR.

An oracle must not share the code that is checked: outputs come from the file itself, byte for byte.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import Element
from irexec.errors import ConversionError, EngineError, InputError, UnsupportedError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.graph import Value
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.engines.runtimes.process import ProcessRuntime
from irexec.tools.engines.runtimes.runtime import Arrays, Runtime, carried_type, in_carrier

_AS_THE_FILE = Tolerance("snr", threshold=40.0)
"""How near the outputs of a copy are to those of the file: observed tensors change which layers are fused."""
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
        from converters.onnx.reference import tensors_of

        self.path = model.path
        self._tensors = tensors_of(model.path)
        self._names = self._tensors.own | self._tensors.inlined
        self._facts = infer_shapes(model, tolerant=True).facts

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the file."""
        return self._tensors.outputs

    def gives(self, value: Value) -> bool:
        return self._name(value) is not None

    def _name(self, value: Value) -> str | None:
        names = [name for name in value.names if name in self._names]
        return next((name for name in names if name in self._tensors.own), names[0] if names else None)

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """See Runtime. Outputs alone come from the file itself, other tensors from a copy with further outputs.

        Tensors of the bodies of functions need a copy with inlined functions. If the outputs of this copy are not those
        of the file, it is an error, and such tensors are not given from then on.
        """
        elements = [self._facts[value].element if value in self._facts else None for value in values]
        names = [self._name(value) or "" for value in values]
        asked = dict(zip(names, elements, strict=True))
        feeds = [self._fed(arrays) for arrays in runs]
        own = {name: one for name, one in asked.items() if name in self._tensors.own}
        found = self._observed(own, feeds, inlined=False)
        if inner := {name: one for name, one in asked.items() if name not in own}:
            known: dict[str, Element | None] = dict.fromkeys(self.outputs)
            known |= {name: one for name, one in own.items() if name in known}
            copied = self._observed(inner | known, feeds, inlined=True)
            self._check(self._observed(known, feeds, inlined=False), copied)
            found = [one | other for one, other in zip(copied, found, strict=True)]
        return [
            [in_carrier(arrays[name], element) for name, element in zip(names, elements, strict=True)]
            for arrays in found
        ]

    def _observed(
        self, asked: Mapping[str, Element | None], feeds: Sequence[Arrays], *, inlined: bool
    ) -> list[dict[str, np.ndarray]]:
        """Tensors by name in each run, with their element types where they are known."""
        from converters.onnx.reference import write_observed

        if not asked:
            return [{} for _ in feeds]
        carried = [
            None if one is None or one.native or not one.bits else _onnx_name(carried_type(one))
            for one in asked.values()
        ]
        is_file = not inlined and asked.keys() <= set(self.outputs) and not any(carried)
        if is_file:
            return [dict(zip(asked, arrays, strict=True)) for arrays in self._run(self.path, feeds, list(asked))]
        with tempfile.TemporaryDirectory(prefix="irexec-onnx-") as folder:
            target = Path(folder) / "model.onnx"
            write_observed(self.path, list(asked), carried, target, inlined=inlined)
            return [dict(zip(asked, arrays, strict=True)) for arrays in self._run(target, feeds)]

    def _check(self, file: Sequence[Mapping[str, np.ndarray]], copied: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Raise EngineError if a copy with inlined functions does not compute what the file does."""
        for one, other in zip(file, copied, strict=True):
            agreements = (agreement_of(name, other[name], array, _AS_THE_FILE) for name, array in one.items())
            wrong = next((agreement for agreement in agreements if not agreement.agrees), None)
            if wrong is not None:
                self._names = self._tensors.own
                raise EngineError(
                    f"{self.path}: with its functions inlined, output {wrong.name!r} is another one in {self.name}: "
                    f"{wrong.message}; tensors of their bodies are not observed",
                    engine=self.name,
                )

    def _fed(self, arrays: Arrays) -> dict[str, np.ndarray]:
        bound = bind_inputs(self.inputs, dict(arrays))
        return {self._input_name(port): array for port, array in zip(self.inputs, bound, strict=True)}

    def _input_name(self, port: Port) -> str:
        if port.element is not None and not port.element.native and port.element.bits:
            raise UnsupportedError(f"input {port} is of a type that NumPy lacks, of which {self.name} takes no arrays")
        return next((name for name in port.names if name in self._names), port.name)

    @abstractmethod
    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        """The outputs of an .onnx file for each run: these results, or all."""


def _onnx_name(element: object) -> str:
    return "FLOAT" if str(element) == "f32" else "INT32"


class OnnxRuntime(OnnxFileRuntime, ProcessRuntime):
    """ONNX Runtime, in a process of its own."""

    engine = "onnxruntime"

    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        return self._ask(path, feeds, str(self.path), preferred=_SETTINGS, results=tuple(results))


class OnnxReferenceRuntime(OnnxFileRuntime):
    """The reference evaluator of the package onnx, in this process: slow, and as the specification says."""

    engine = "onnx"

    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        from converters.onnx.reference import open_evaluator

        try:
            evaluator = open_evaluator(path, results)
            return [evaluator(arrays) for arrays in feeds]
        except ConversionError as error:
            raise EngineError(
                str(error).replace("cannot run the model", f"cannot run {self.path}", 1), engine=self.name
            ) from None
