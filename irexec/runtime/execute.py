"""Running a plan."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.compile.errors import node_error
from irexec.compile.steps import BodyPlan, Plan, Step
from irexec.errors import NodeError, OpError
from irexec.ir.facts import Fact

State = MutableMapping[str, np.ndarray]


class VariableTransaction(MutableMapping[str, np.ndarray]):
    """Variables during one run: reads see the state before it, writes take effect when it is over."""

    def __init__(self, state: State) -> None:
        self.state, self.written = state, dict[str, np.ndarray]()

    def __getitem__(self, name: str) -> np.ndarray:
        return self.state[name]

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        self.written[name] = array

    def __delitem__(self, name: str) -> None:
        del self.written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)


def run(plan: Plan, inputs: Sequence[np.ndarray], state: State) -> list[np.ndarray]:
    """The plan's targets for one array per Parameter.

    A target that may share memory with the caller's arrays, the plan or the state is copied.

    Raises:
        NodeError: a kernel refuses its inputs.
    """
    # Infinities and NaN are results as specified, not reasons to warn.
    with np.errstate(all="ignore"):
        arrays = _targets(plan, _constants(plan), inputs, state)
    return [array.copy() if copied else array for array, copied in zip(arrays, plan.copied, strict=True)]


def _constants(plan: Plan) -> list[Any]:
    """The slots before a run: only constants are filled in."""
    slots: list[Any] = [None] * plan.slots
    for slot, array in plan.constants:
        slots[slot] = array
    return slots


def _targets(plan: Plan, slots: list[Any], inputs: Sequence[np.ndarray], state: State) -> list[np.ndarray]:
    """The plan's targets, which may share memory with the inputs, the plan or the state."""
    for slot, array in zip(plan.parameters, inputs, strict=True):
        if slot >= 0:
            slots[slot] = array
    variables = VariableTransaction(state)
    for step in plan.steps:
        _run_step(step, slots, variables)
    if variables.written:
        state.update(variables.written)
    return [slots[slot] for slot in plan.targets]


def _run_step(step: Step, slots: list[Any], state: VariableTransaction) -> None:
    arrays = [slots[i] for i in step.inputs]
    try:
        if step.check is not None:
            step.check(*(Fact.of(array, fact) for array, fact in zip(arrays, step.types, strict=True)))
        result = step.call(*arrays, **_injected(step, state)) if step.bodies or step.state else step.call(*arrays)
    except NodeError as error:
        if not step.bodies:
            raise
        raise NodeError(f"in layer {step.node.name!r}: {error}", node=f"{step.node.name}/{error.node}", reason=error.reason) from error
    except OpError as error:
        raise node_error(step.node, arrays, error) from error
    except Exception as error:
        if _is_too_large(error):
            raise node_error(step.node, arrays, OpError(f"it needs more than memory or NumPy can hold: {error}")) from error
        if not hasattr(error, "__notes__"):
            # An error in irexec itself: it keeps its type, and a note says in which layer it was raised.
            error.add_note(f"in layer {step.node.id} {step.node.name!r} ({step.node.type} of {step.node.version})")
        raise
    results = result if isinstance(result, tuple | list) else (result,)
    for i, slot in enumerate(step.outputs):
        if slot >= 0:
            slots[slot] = results[i] if step.elements is None else rounded(results[i], step.elements[i])
    for slot in step.frees:
        slots[slot] = None


def _is_too_large(error: Exception) -> bool:
    """Whether memory or NumPy cannot hold a result; NumPy raises ValueError for sizes beyond 63 bits."""
    return isinstance(error, MemoryError | OverflowError) or (
        isinstance(error, ValueError) and ("Maximum allowed dimension" in str(error) or "array is too big" in str(error))
    )


def _injected(step: Step, state: VariableTransaction) -> dict[str, Any]:
    injected: dict[str, Any] = {name: PlanRunner(body, state.state) for name, body in step.bodies.items()}
    if step.state is not None:
        injected[step.state] = state
    return injected


class PlanRunner:
    """A body as a kernel calls it: arrays of its Parameters in, arrays of its Results out.

    Results are not copied here: outputs of a node with bodies count as shared memory, and are copied when the run is over.
    """

    def __init__(self, planned: BodyPlan, state: State) -> None:
        self.node, self.body = planned.node, planned.body
        self._plan, self._state = planned.plan, state
        self._slots = _constants(planned.plan)

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        return _targets(self._plan, self._slots.copy(), inputs, self._state)
