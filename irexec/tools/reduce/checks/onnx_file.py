"""A model that was converted from ONNX, against what another runtime makes of the .onnx file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import Precision, precision_argument
from irexec.errors import IrexecError
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.engines.runtimes import open_runtime, precision_beside, require_runtime
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files
from irexec.tools.reduce.checks.runtime import difference

RTOL, ATOL = 1e-4, 1e-5


class OnnxFileCheck(Check):
    """Whether irexec gives other results than a runtime of ONNX gave for the same tensors.

    The runtime runs the whole file once. Parts have its tensors as inputs, so that what is left is the translation of
    few nodes.

    Args:
        name: "onnxruntime", or "onnx" for the reference evaluator of the package onnx.
        rtol, atol: the tolerances; those of ``irexec infer --assert`` unless given.
        precision: how irexec computes f16 and bf16; as the runtime does unless given.
        timeout: seconds that each runtime may take.

    Raises:
        UnsupportedError: the runtime is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        precision: Precision | None = None,
        timeout: float | None = None,
    ) -> None:
        require_runtime(name)
        self.name, self.timeout = name, timeout
        self.precision: Precision = precision or precision_beside(name)
        self.rtol, self.atol = RTOL if rtol is None else rtol, ATOL if atol is None else atol

    @property
    def identity(self) -> Sequence[object]:
        """See Check."""
        return ("against", self.name, self.rtol, self.atol, self.precision)

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        """See Check."""
        with open_runtime(self.name, model, timeout=self.timeout) as runtime:
            values = [
                value
                for node in model.nodes
                if node.type not in ("Parameter", "Constant", "Result")
                for value in node.outputs
                if runtime.gives(value)
            ]
            arrays = {port.name: array for port, array in zip(runtime.inputs, inputs, strict=True)}
            return dict(zip(values, runtime.run(arrays, values), strict=True))

    def __call__(self, candidate: Candidate) -> Failure | None:
        """See Check."""
        if not candidate.expected:
            return None
        try:
            results = (
                CompiledModel(candidate.model, precision=self.precision)
                .session()
                .run(candidate.inputs, timeout=self.timeout)
            )
        except (IrexecError, MemoryError):
            return None
        for port in candidate.model.outputs:
            if port.name in candidate.expected:
                found = difference(
                    f"result {port.name!r}",
                    port.element,
                    results[port.name],
                    candidate.expected[port.name],
                    self.name,
                    self.rtol,
                    self.atol,
                )
                if found is not None:
                    return found
        return None

    def command(self, files: Files) -> list[str]:
        """See Check."""
        inputs = [] if files.inputs is None else ["-i", files.inputs]
        expected = [] if files.expected is None else ["--assert", files.expected]
        tolerances = [f"--{name}={value:g}" for name, value, usual in self._tolerances() if value != usual]
        return ["irexec", "infer", files.model, *inputs, *expected, *tolerances, *precision_argument(self.precision)]

    def _tolerances(self) -> tuple[tuple[str, float, float], ...]:
        return ("rtol", self.rtol, RTOL), ("atol", self.atol, ATOL)
