"""A model that answers requests, several at once where it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.model import Port, expected, find_port
from irexec.errors import InputError
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.inputs import checked
from irexec.tools.batch.predictor import PredictorOptions, described

Arrays = Mapping[str, np.ndarray]
Key = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes without axis 0 and types of the inputs: requests of the same key can be put together."""


class ServedModel:
    """A compiled model under a name.

    Args:
        name: of the model in requests.
        path: an .xml or .onnx.
        options: how it is read and run.
        timeout: seconds that a run may take; None for any.

    Attributes:
        inputs, outputs: its ports.

    Raises:
        ModelError, NodeError, UnsupportedError: the model cannot be read or run.
        InputError: it has variables, whose state requests would share.
    """

    def __init__(self, name: str, path: str, options: PredictorOptions, timeout: float | None = None) -> None:
        self.name, self.path, self._timeout = name, path, timeout
        found = described(path, options)
        self._compiled = CompiledModel(
            found.model,
            threads=options.threads,
            weights=options.weights,
            precision=options.precision,
            max_memory=options.max_memory,
        )
        variables = [node.name for node in found.model.nodes if node.type == "Assign"]
        if variables:
            raise InputError(
                f"{path}: has variables, such as that of layer {variables[0]!r}, whose state requests would share"
            )
        self._batching = found.batching
        self.inputs: list[Port] = self._compiled.inputs
        self.outputs: list[Port] = self._compiled.outputs

    @property
    def takes_batches(self) -> bool:
        """Whether axis 0 of all inputs and results counts items, in any number."""
        return self._batching.has_axis and self._batching.fixed is None and self._batching.is_divisible

    def bound(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays of a request, checked, by the names of the model's inputs.

        Raises:
            InputError: a name, shape or type does not fit the model.
        """
        given = {find_port(self.inputs, name).name: array for name, array in inputs.items()}
        missing = [port.name for port in self.inputs if port.name not in given]
        if missing:
            raise InputError(
                f"no value is given for {', '.join(map(repr, missing))}: the model has {expected(self.inputs)}"
            )
        if len(given) < len(inputs):
            raise InputError(f"an input is given twice: {', '.join(inputs)}")
        arrays = {port.name: checked(port, given[port.name]) for port in self.inputs}
        sizes = {array.shape[0] for array in arrays.values() if array.ndim}
        if self.takes_batches and len(sizes) > 1:
            found = ", ".join(map(str, sorted(sizes)))
            raise InputError(f"axis 0 of the inputs is {found}, expected the same number of items in each")
        return arrays

    def key(self, inputs: Arrays) -> Key | None:
        """Shapes and types of the inputs; equal keys may run together. None for a request that runs by itself."""
        # A scalar is the same for all items of a run.
        if not self.takes_batches or any(array.ndim == 0 for array in inputs.values()):
            return None
        return tuple((inputs[port.name].shape[1:], inputs[port.name].dtype.str) for port in self.inputs)

    @staticmethod
    def items(inputs: Arrays) -> int:
        """The number of items of a request."""
        return next((array.shape[0] for array in inputs.values() if array.ndim), 1)

    def _results(self, inputs: Arrays) -> dict[str, np.ndarray]:
        return dict(self._compiled.session().run(inputs, timeout=self._timeout))

    def run(self, requests: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
        """The results of each request, by one run for all of them.

        Raises:
            NodeError: the model refuses the values.
            RunTimeoutError: the run takes too long.
        """
        if len(requests) == 1:
            return [self._results(requests[0])]
        joined = {port.name: np.concatenate([request[port.name] for request in requests]) for port in self.inputs}
        ends = np.cumsum([self.items(request) for request in requests])[:-1]
        results = {name: np.split(array, ends) for name, array in self._results(joined).items()}
        return [{name: parts[i] for name, parts in results.items()} for i in range(len(requests))]
