"""irexec against another runtime, which refuses the model, crashes, takes too long, or has other results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import Precision
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import Element
from irexec.errors import EngineError, InputError, IrexecError, NodeError, RunTimeoutError
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.commands import irexec_command
from irexec.tools.compare.options import RTOL
from irexec.tools.engines.runtimes import Worker, open_runtime, precision_beside, require_runtime
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files, given_options
from irexec.tools.reduce.later_runs import after_run


class AgainstRuntime(Check):
    """A check against another runtime.

    Args:
        name: the runtime.
        rtol, atol: the tolerances; by default those of the command that shows the failure.
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
        self.name, self.rtol, self.atol, self.timeout = name, rtol, atol, timeout
        self.precision: Precision = precision or precision_beside(name)

    @property
    def identity(self) -> Sequence[object]:
        return ("against", self.name, self.rtol, self.atol, self.precision)


class RuntimeCheck(AgainstRuntime):
    """Whether OpenVINO, or irexec's reference kernels ("reference"), and irexec differ on a candidate."""

    _is_first = True

    @cached_property
    def _worker(self) -> Worker | None:
        return Worker(self.name, self.timeout) if self.name == "openvino" else None

    def __call__(self, candidate: Candidate) -> Failure | None:
        given = _given(candidate.model)
        if not given:
            return None
        values = list(given.values())
        ours = self._ours(candidate, values)
        try:
            theirs = self._theirs(candidate, values)
        except InputError:
            # An input of a part may have a type that the runtime does not accept.
            if self._is_first:
                raise
            return None
        self._is_first = False
        if isinstance(theirs, Failure):
            # The reference kernels have the shape rules of irexec: if both refuse a model, they agree.
            return None if isinstance(ours, Failure) and self.name == "reference" else theirs
        if ours is None or isinstance(ours, Failure):
            return ours
        facts = infer_shapes(candidate.model, tolerant=True).facts
        for (name, value), a, b in zip(given.items(), ours, theirs, strict=True):
            found = difference(name, facts[value].element, a, b, self.name, self.rtol, self.atol)
            if found is not None:
                return found
        return None

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        return after_run(model, inputs, self.precision, self.timeout)

    def command(self, files: Files) -> list[str]:
        options = [*files.input_options, *given_options(rtol=self.rtol, atol=self.atol)]
        precision = [f"--precision={self.precision}"] if self.precision != precision_beside(self.name) else []
        return irexec_command("compare", files.model, "--b-runtime", self.name, *options, *precision)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def _ours(self, candidate: Candidate, values: Sequence[Value]) -> list[np.ndarray] | Failure | None:
        """Values of irexec, or its refusal of the candidate; None after a timeout."""
        try:
            return (
                CompiledModel(candidate.model, precision=self.precision)
                .session()
                .values(candidate.inputs, values, timeout=self.timeout)
            )
        except RunTimeoutError:
            return None
        except (IrexecError, MemoryError) as error:
            reason = error.reason if isinstance(error, NodeError) else str(error)
            return Failure(f"irexec refuses: {essence(reason)}", f"irexec refuses what {self.name} runs: {error}")

    def _theirs(self, candidate: Candidate, values: Sequence[Value]) -> list[np.ndarray] | Failure:
        try:
            with open_runtime(
                self.name, candidate.model, precision=self.precision, timeout=self.timeout, worker=self._worker
            ) as runtime:
                return runtime.run(candidate.inputs, values)
        except RunTimeoutError:
            return Failure("timeout", f"{self.name} takes longer than {self.timeout:g} s")
        except EngineError as error:
            if error.exit_code is not None:
                return Failure(f"exit code {error.exit_code}", str(error))
            return Failure(f"{self.name} refuses: {essence(str(error))}", str(error))
        except InputError:
            raise
        except IrexecError as error:
            reason = error.reason if isinstance(error, NodeError) else str(error)
            return Failure(f"{self.name} refuses: {essence(reason)}", f"{self.name} refuses the model: {error}")


def _given(model: Model) -> dict[str, Value]:
    """Values of Results and values assigned to variables, by their names in messages."""
    results = {f"result {port.name!r}": port.node for port in model.outputs}
    assigned = {
        f"variable {node.attributes.get('variable_id')!r}": node for node in model.nodes if node.type == "Assign"
    }
    found = {name: next(iter(node.inputs), None) for name, node in (results | assigned).items()}
    return {name: value for name, value in found.items() if value is not None}


def difference(
    result: str,
    element: Element | None,
    ours: np.ndarray,
    theirs: np.ndarray,
    runtime: str,
    rtol: float | None,
    atol: float | None,
) -> Failure | None:
    """The difference of a result between irexec and a runtime; None if they agree."""
    usual = RTOL.get(str(element), RTOL["f32"]) if rtol is None else rtol
    tolerance = Tolerance(rtol=usual, atol=usual if atol is None else atol, scaled=atol is None)
    found = agreement_of(result, theirs, ours, tolerance, "irexec")
    if found.agrees:
        return None
    # One kind for values and shapes: other values may lead to another number of boxes.
    return Failure("results differ", f"{result} of {runtime}: {found.message}")


_NAMED = (
    r"cannot run .*?: (?=\S)",
    r"(?:While validating node|Exception happened).*?(?:with friendly_name '[^']*'|$):?",
    r"'[^']*'|\"[^\"]*\"",
    r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}",
    r"\S*[/\\]\S*",
    r"[-+]?\d[\w.]*",
)


def essence(message: str) -> str:
    """The text of an error without names, locations and values: equal for one error about several layers and shapes."""
    for pattern in _NAMED:
        message = re.sub(pattern, "_", message)
    return re.sub(r"[\s_]+", " ", message).strip()[:300]
