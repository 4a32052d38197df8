"""irexec itself: with everything that makes it fast, or with its reference kernels alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.engines.runtimes.runtime import Arrays, Runtime


class OwnRuntime(Runtime):
    """irexec in this process.

    Args:
        name: "irexec", or "reference" for the reference kernels.
        model: the model. A layer that cannot run is an error only if a requested value depends on it.
        threads, precision, max_memory, native: as for CompiledModel.
        timeout: seconds that each run may take.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        threads: int | None = None,
        precision: Precision = DEFAULT_PRECISION,
        max_memory: int | None = None,
        native: bool = True,
        timeout: float | None = None,
    ) -> None:
        super().__init__(name, model)
        self._compiled = CompiledModel(
            model,
            threads=threads,
            optimize=name == "irexec",
            precision=precision,
            tolerant=True,
            max_memory=max_memory,
            native=native,
        )
        self._timeout = timeout

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        self._compiled.require([self._compiled.program.own(value) for value in values])
        session = self._compiled.session()
        return [session.values(dict(arrays), values, timeout=self._timeout) for arrays in runs]
