"""Runs of a model for many tensors: a tensor that its runtime cannot return is left out, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.errors import InputError, IrexecError, RunTimeoutError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Value
from irexec.ir.order import topological
from irexec.tools.engines.runtimes import Arrays, Runtime

_MAX_FAILURES = 8
"""Maximum number of failing tensors that are searched; each search takes about ten runs."""

Tensor = Value | str
"""A value of a model, or the name of a recorded tensor."""


@dataclass(frozen=True)
class Observed:
    """The tensors of several runs.

    Attributes:
        arrays: the arrays of each tensor, one for each run.
        failures: reasons for missing tensors.
        errors: the errors of these tensors.
    """

    arrays: Mapping[Tensor, Sequence[np.ndarray]] = field(default_factory=dict)
    failures: Mapping[Tensor, str] = field(default_factory=dict)
    errors: Sequence[IrexecError] = ()


def observe(runtime: Runtime, runs: Sequence[Arrays], values: Iterable[Value]) -> Observed:
    """Run a model for values of its graph, in topological order.

    Raises:
        IrexecError: no value can be computed.
    """
    arrays: dict[Tensor, Sequence[np.ndarray]] = {}
    failures: dict[Tensor, str] = {}
    errors: list[IrexecError] = []
    waiting: list[Value] = []
    for value in dict.fromkeys(values):
        if value.node.constant is not None:
            arrays[value] = [constant_value(value.node.constant)] * len(runs)
        elif value.node.type == "Constant" or not runtime.gives(value):
            failures[value] = f"{runtime.name} does not give it"
        else:
            waiting.append(value)
    for _ in range(_MAX_FAILURES):
        if not waiting:
            break
        try:
            arrays |= _arrays(runtime, runs, waiting)
            waiting = []
        except (InputError, RunTimeoutError):
            raise
        except IrexecError as error:
            lost = [value for value in waiting if not runtime.gives(value)]
            if lost:
                # The runtime has found out that it cannot be asked for them.
                failures |= dict.fromkeys(lost, str(error))
            else:
                failing, reason, others = _first_failing(runtime, runs, waiting)
                arrays |= others
                if failing is None or (errors and str(errors[0]) == str(error) and not arrays):
                    raise
                errors.append(error)
                failures |= _of_failing(failing, reason, waiting, runtime)
            waiting = [value for value in waiting if value not in failures]
    failures |= dict.fromkeys(waiting, f"{runtime.name} does not run too many other layers")
    return Observed(arrays, failures, errors)


def _arrays(runtime: Runtime, runs: Sequence[Arrays], values: Sequence[Value]) -> dict[Tensor, Sequence[np.ndarray]]:
    found = runtime.run_all(runs, values)
    return {value: [of_run[i] for of_run in found] for i, value in enumerate(values)}


def _first_failing(
    runtime: Runtime, runs: Sequence[Arrays], values: Sequence[Value]
) -> tuple[Value | None, str, dict[Tensor, Sequence[np.ndarray]]]:
    """The first value that fails together with all values before it, the reason, and the arrays before it; None if no
    value fails."""
    low, high = 0, len(values)
    reason, arrays = "", dict[Tensor, Sequence[np.ndarray]]()
    while low < high:
        middle = (low + high) // 2
        try:
            arrays = _arrays(runtime, runs, values[: middle + 1])
            low = middle + 1
        except (InputError, RunTimeoutError):
            raise
        except IrexecError as error:
            high, reason = middle, str(error)
    return (values[low] if low < len(values) else None), reason, arrays


def _of_failing(failing: Value, reason: str, waiting: Sequence[Value], runtime: Runtime) -> Iterator[tuple[Value, str]]:
    """The reasons for a failing value and for the values that depend on its layer."""
    after = {failing.node}
    for node in topological(runtime.model)[0]:
        if any(value is not None and value.node in after for value in node.inputs):
            after.add(node)
    for value in waiting:
        if value is failing:
            yield value, reason
        elif value.node in after:
            yield value, f"it depends on {failing.node.name!r}, which {runtime.name} does not run"
