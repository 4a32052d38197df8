"""NaN and infinities from inputs without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import DEFAULT_PRECISION, Precision, precision_argument
from irexec.errors import IrexecError
from irexec.tools.commands import irexec_command
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files
from irexec.tools.reduce.later_runs import after_run

KINDS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"nan": np.isnan, "inf": np.isinf}
_WORDS = {"nan": "NaN", "inf": "infinite"}


class ValuesCheck(Check):
    """Whether a result that irexec computes has NaN or infinities, and no input has them.

    Args:
        kinds: names of KINDS.
        timeout: maximum time of a run in seconds.
        precision: precision of f16 and bf16.
    """

    def __init__(
        self, kinds: Sequence[str], timeout: float | None = None, precision: Precision = DEFAULT_PRECISION
    ) -> None:
        self.kinds, self.timeout = tuple(kind for kind in KINDS if kind in kinds), timeout
        self.precision: Precision = precision
        self._of_inputs: frozenset[str] | None = None

    @property
    def identity(self) -> Sequence[object]:
        return ("values", *self.kinds, self.precision)

    def __call__(self, candidate: Candidate) -> Failure | None:
        given = frozenset(
            kind for kind in self.kinds if any(_count(array, kind) for array in candidate.inputs.values())
        )
        if self._of_inputs is None:
            # An input of the model itself may have such elements.
            self._of_inputs = given
        if given - self._of_inputs:
            return None
        try:
            results = candidate.results(self.precision, self.timeout)
        except (IrexecError, MemoryError):
            return None
        for kind in self.kinds:
            for name, array in results.items():
                if count := _count(array, kind):
                    return Failure(kind, f"{count} of {array.size} elements of result {name!r} are {_WORDS[kind]}")
        return None

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        return after_run(model, inputs, self.precision, self.timeout)

    def command(self, files: Files) -> list[str]:
        precision = precision_argument(self.precision)
        return irexec_command("infer", files.model, *files.input_options, "--trap", ",".join(self.kinds), *precision)


def _count(array: np.ndarray, kind: str) -> int:
    if array.dtype.kind not in "fc":
        return 0
    return int(KINDS[kind](array).sum())
