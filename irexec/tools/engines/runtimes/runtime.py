"""The interface of runtimes, irexec and others: it runs a model and returns any of its tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.dtypes.elements import Element
from irexec.dtypes.rounding import round_to
from irexec.ir.graph import Value

Arrays = Mapping[str, np.ndarray]
"""Arrays by the names of a model's inputs."""


class Runtime(ABC):
    """A model in a runtime.

    Args:
        name: of the runtime.
        model: the graph whose values can be asked for.

    Attributes:
        inputs: of the model.
    """

    def __init__(self, name: str, model: Model) -> None:
        self.name, self.model = name, model
        self.inputs: list[Port] = model.inputs

    @property
    def version(self) -> str:
        """The version of another runtime; "" before it has run."""
        return ""

    @property
    def precision(self) -> str:
        """The type, such as f16, that another runtime computes floats in; "" where it does not say, or has not run."""
        return ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the file that another runtime runs, if it is not written from the model."""
        return ()

    def gives(self, value: Value) -> bool:
        """Whether the runtime can be asked for a value of the graph."""
        return True

    @abstractmethod
    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """Run several times, from the initial state of variables on, which go from run to run.

        Args:
            runs: the inputs of each run, by the names of ``inputs``.
            values: of the graph itself, none of those inside bodies; only such as it ``gives``.

        Returns:
            For each run one array for each value, in the carrier of its element type.

        Raises:
            NodeError, UnsupportedError: irexec cannot run the model.
            EngineError: another runtime cannot, or its process ended.
            InputError: the inputs do not fit.
            RunTimeoutError: it takes longer than the timeout.
        """

    def run(self, inputs: Arrays, values: Sequence[Value]) -> list[np.ndarray]:
        """The arrays of a single run; see ``run_all``."""
        return self.run_all([inputs], values)[0]

    def close(self) -> None:
        """End what the runtime needs, such as a process."""
        return

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def in_carrier(array: np.ndarray, element: Element | None) -> np.ndarray:
    """An array of a runtime in the carrier of the element type, if it is of another type of the same kind."""
    if element is None or element.kind == "string" or array.dtype == element.carrier:
        return array
    floats = array.dtype.kind == "f" and element.is_float
    whole = array.dtype.kind in "iub" and not element.is_float
    if not floats and not whole:
        return array
    cast = array.astype(element.carrier)
    return cast if element.native else round_to(element, cast)
