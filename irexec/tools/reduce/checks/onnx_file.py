"""A model converted from ONNX, against another runtime on the .onnx file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import precision_argument
from irexec.errors import IrexecError
from irexec.ir.graph import Value
from irexec.tools.commands import irexec_command
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Failure, Files, given_options
from irexec.tools.reduce.checks.runtime import AgainstRuntime, difference

RTOL, ATOL = 1e-4, 1e-5
"""The default tolerances of ``irexec infer --assert``."""


class OnnxFileCheck(AgainstRuntime):
    """Whether results of irexec differ from tensors of "onnxruntime", or of the reference evaluator of onnx ("onnx").

    The runtime runs the whole file once. Parts have its tensors as inputs: the smallest part is the translation of few
    nodes.
    """

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
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
        if not candidate.expected:
            return None
        try:
            results = candidate.results(self.precision, self.timeout)
        except (IrexecError, MemoryError):
            return None
        for port in candidate.model.outputs:
            if port.name in candidate.expected:
                rtol, atol = RTOL if self.rtol is None else self.rtol, ATOL if self.atol is None else self.atol
                expected, result = candidate.expected[port.name], f"result {port.name!r}"
                found = difference(result, port.element, results[port.name], expected, self.name, rtol, atol)
                if found is not None:
                    return found
        return None

    def command(self, files: Files) -> list[str]:
        expected = [] if files.expected is None else ["--assert", files.expected]
        options = [*expected, *given_options(rtol=self.rtol, atol=self.atol), *precision_argument(self.precision)]
        return irexec_command("infer", files.model, *files.input_options, *options)
