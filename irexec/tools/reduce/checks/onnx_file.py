"""A model converted from ONNX, against another runtime on the .onnx file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import Precision, precision_argument
from irexec.errors import IrexecError
from irexec.ir.graph import Value
from irexec.tools.engines.runtimes import open_runtime, precision_beside, require_runtime
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files, given_options
from irexec.tools.reduce.checks.runtime import difference

RTOL, ATOL = 1e-4, 1e-5


class OnnxFileCheck(Check):
    """Whether results of irexec differ from tensors of a runtime of ONNX.

    The runtime runs the whole file once. Parts have its tensors as inputs: the smallest part is the translation of few
    nodes.

    Args:
        name: "onnxruntime", or "onnx" for the reference evaluator of the package onnx.
        rtol, atol: the tolerances; by default those of ``irexec infer --assert``.
        precision: precision of f16 and bf16; by default that of the runtime.
        timeout: maximum time of each runtime in seconds.

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
            results = candidate.results(self.precision, self.timeout)
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
        expected = [] if files.expected is None else ["--assert", files.expected]
        tolerances = given_options(
            rtol=None if self.rtol == RTOL else self.rtol, atol=None if self.atol == ATOL else self.atol
        )
        precision = precision_argument(self.precision)
        return ["irexec", "infer", files.model, *files.input_options, *expected, *tolerances, *precision]
