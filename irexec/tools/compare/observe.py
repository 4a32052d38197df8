"""Runs of a side for many tensors: a tensor that its runtime cannot return is left out, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from irexec.errors import InputError, IrexecError, RunTimeoutError
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological
from irexec.tools.engines.runtimes import Arrays, Runtime

Facts = Mapping[Value, Fact]

_MAX_FAILURES = 8
"""Maximum number of failing tensors that are searched; each search takes about ten runs."""


class Observed:
    """The tensors of several runs.

    Attributes:
        arrays: the arrays of each value, one for each run.
        failures: reasons for missing values.
        errors: the errors of these values.
    """

    def __init__(self) -> None:
        self.errors: list[IrexecError] = []
        self.arrays: dict[Value | str, list[np.ndarray]] = {}
        self.failures: dict[Value | str, str] = {}


class Kept:
    """The tensors of one side that were observed so far: each new set of tensors is another plan of the whole model.

    Args:
        limit: maximum number of bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._found = Observed()

    def observed(
        self, runtime: Runtime, runs: Sequence[Arrays], order: Sequence[Node], sources: Iterable[Value | str]
    ) -> Observed:
        """The tensors of ``sources`` that are values; those that were not observed before are observed together.

        Args:
            runtime, runs: as for ``observe``.
            order: the layers of the side in topological order.
            sources: values, and names that are left out.
        """
        values = [value for value in dict.fromkeys(sources) if isinstance(value, Value)]
        position = {node: i for i, node in enumerate(order)}
        kept = self._found
        fresh = [value for value in values if value not in kept.arrays and value not in kept.failures]
        fresh.sort(key=lambda value: (position.get(value.node, -1), value.index))
        made = observe(runtime, runs, fresh) if fresh else Observed()
        found = Observed()
        found.errors = made.errors
        for value in values:
            for source in (made, kept):
                if value in source.arrays:
                    found.arrays[value] = source.arrays[value]
                elif value in source.failures:
                    found.failures[value] = source.failures[value]
        kept.failures |= made.failures
        for one, arrays in made.arrays.items():
            size = sum(array.nbytes for array in arrays)
            if size <= self._left:
                kept.arrays[one] = arrays
                self._left -= size
        return found


def observe(runtime: Runtime, runs: Sequence[Arrays], values: Iterable[Value]) -> Observed:
    """Run a model for values of its graph, in topological order.

    Raises:
        IrexecError: no value can be computed.
    """
    found = Observed()
    waiting: list[Value] = []
    for value in dict.fromkeys(values):
        if value.node.constant is not None:
            found.arrays[value] = [constant_value(value.node.constant)] * len(runs)
        elif value.node.type == "Constant" or not runtime.gives(value):
            found.failures[value] = f"{runtime.name} does not give it"
        elif value not in found.failures:
            waiting.append(value)
    _observe(runtime, runs, waiting, found)
    return found


def _observe(runtime: Runtime, runs: Sequence[Arrays], waiting: list[Value], found: Observed) -> None:
    first: IrexecError | None = None
    for _ in range(_MAX_FAILURES):
        if not waiting:
            return
        try:
            _take(runtime, runs, waiting, found)
            return
        except (InputError, RunTimeoutError):
            raise
        except IrexecError as error:
            if lost := [value for value in waiting if not runtime.gives(value)]:
                # The runtime has found out that it cannot be asked for them.
                found.failures |= dict.fromkeys(lost, str(error))
                waiting = [value for value in waiting if value not in found.failures]
                continue
            failing = _first_failing(runtime, runs, waiting, found)
            if failing is None or (first is not None and str(first) == str(error) and not found.arrays):
                raise
            first = first or error
            found.errors.append(error)
            value, reason = failing
            after = _after(value.node, runtime.model)
            for other in waiting:
                if other is value:
                    found.failures[other] = reason
                elif other.node in after:
                    found.failures[other] = f"it depends on {value.node.name!r}, which {runtime.name} does not run"
            waiting = [other for other in waiting if other not in found.failures]
    for other in waiting:
        found.failures[other] = f"{runtime.name} does not run too many other layers"


def _take(runtime: Runtime, runs: Sequence[Arrays], values: list[Value], found: Observed) -> None:
    arrays = runtime.run_all(runs, values)
    for i, value in enumerate(values):
        found.arrays[value] = [given[i] for given in arrays]


def _first_failing(
    runtime: Runtime, runs: Sequence[Arrays], values: list[Value], found: Observed
) -> tuple[Value, str] | None:
    """The first value that fails together with all values before it, and the reason; None if no value fails."""
    low, high = 0, len(values)
    reason = ""
    while low < high:
        middle = (low + high) // 2
        try:
            _take(runtime, runs, values[: middle + 1], found)
            low = middle + 1
        except (InputError, RunTimeoutError):
            raise
        except IrexecError as error:
            high, reason = middle, str(error)
    return (values[low], reason) if low < len(values) else None


def _after(node: Node, graph: Graph) -> set[Node]:
    """A layer and all layers that depend on it."""
    after = {node}
    for other in topological(graph)[0]:
        if any(value is not None and value.node in after for value in other.inputs):
            after.add(other)
    return after
