"""irexec against another runtime: it refuses the model, ends, takes too long, or gives other results."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from irexec.errors import EngineError, InputError, IrexecError, NodeError, RunTimeoutError
from irexec.ir.graph import Value
from irexec.runtime.session import CompiledModel
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files
from irexec.tools.runtimes import Worker, open_runtime, require_runtime

RTOL, ATOL = 1e-3, 1e-6


class RuntimeCheck(Check):
    """Whether a runtime and irexec part on a candidate.

    Integers and booleans must be equal. A float may differ by ``atol``, and by ``rtol`` of the largest finite value of its tensor.

    Args:
        name: "openvino", or "reference" for irexec's reference kernels.
        rtol, atol: the tolerances.
        timeout: seconds that each runtime may take.

    Raises:
        UnsupportedError: the runtime is not installed.
    """

    def __init__(self, name: str, *, rtol: float = RTOL, atol: float = ATOL, timeout: float | None = None) -> None:
        require_runtime(name)
        self.name, self.rtol, self.atol, self.timeout = name, rtol, atol, timeout
        self._worker = Worker(name, timeout) if name == "openvino" else None

    @property
    def identity(self) -> Sequence[object]:
        """See Check."""
        return ("against", self.name, self.rtol, self.atol)

    def __call__(self, candidate: Candidate) -> Failure | None:
        """See Check."""
        values = [source for node in candidate.model.results for source in node.inputs[:1] if source is not None]
        if not values:
            return None
        ours = self._ours(candidate)
        theirs = self._theirs(candidate, values)
        if isinstance(theirs, Failure):
            # Where a runtime of the same shape rules refuses what irexec refuses, they agree.
            return None if isinstance(ours, Failure) and self.name == "reference" else theirs
        if ours is None or isinstance(ours, Failure):
            return ours
        names = [port.name for port in candidate.model.outputs]
        return next((found for found in map(self._difference, names, ours, theirs) if found is not None), None)

    def command(self, files: Files) -> list[str]:
        """See Check."""
        inputs = [] if files.inputs is None else ["-i", files.inputs]
        tolerances = [f"--rtol={self.rtol:g}", f"--atol={self.atol:g}"]
        return ["irexec", "compare", files.model, files.model, "--b-runtime", self.name, *inputs, *tolerances]

    def close(self) -> None:
        """See Check."""
        if self._worker is not None:
            self._worker.close()

    def _ours(self, candidate: Candidate) -> list[np.ndarray] | Failure | None:
        """The results of irexec, or how it refuses the candidate; None where it takes too long."""
        try:
            compiled = CompiledModel(candidate.model)
            return list(compiled.session().run(candidate.inputs, timeout=self.timeout).values())
        except RunTimeoutError:
            return None
        except (IrexecError, MemoryError) as error:
            reason = error.reason if isinstance(error, NodeError) else str(error)
            return Failure(f"irexec refuses: {essence(reason)}", f"irexec refuses what {self.name} runs: {error}")

    def _theirs(self, candidate: Candidate, values: Sequence[Value]) -> list[np.ndarray] | Failure:
        try:
            with open_runtime(self.name, candidate.model, timeout=self.timeout, worker=self._worker) as runtime:
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

    def _difference(self, name: str, ours: np.ndarray, theirs: np.ndarray) -> Failure | None:
        """How two arrays of one result differ."""
        where = f"of result {name!r}: irexec gives"
        if ours.shape != theirs.shape:
            return Failure("shapes differ", f"shapes {where} {list(ours.shape)}, {self.name} {list(theirs.shape)}")
        if ours.dtype != theirs.dtype:
            return Failure("types differ", f"types {where} {ours.dtype}, {self.name} {theirs.dtype}")
        wrong = _wrong(ours, theirs, self.rtol, self.atol)
        if not wrong.any():
            return None
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        count = f"{int(wrong.sum())} of {wrong.size} values differ, the first at {list(first)}"
        return Failure("values differ", f"result {name!r}: {count}: irexec gives {ours[first]}, {self.name} {theirs[first]}")


def _wrong(ours: np.ndarray, theirs: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Where two arrays of one shape and type differ."""
    if ours.dtype.kind != "f":
        return np.asarray(ours != theirs)
    with np.errstate(all="ignore"):
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        allowed = max(rtol, 8 * float(np.finfo(ours.dtype).eps)) * scale + atol
        return np.asarray(~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b))))


_NAMED = (
    r"cannot run .*?: (?=\S)",
    r"(?:While validating node|Exception happened).*?(?:with friendly_name '[^']*'|$):?",
    r"'[^']*'|\"[^\"]*\"",
    r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}",
    r"\S*[/\\]\S*",
    r"[-+]?\d[\w.]*",
)


def essence(message: str) -> str:
    """What an error says, without names, places and values: equal for the same error about other layers and shapes."""
    for pattern in _NAMED:
        message = re.sub(pattern, "_", message)
    return re.sub(r"[\s_]+", " ", message).strip()[:300]
