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


class Staged(MutableMapping[str, np.ndarray]):
    """Variables during one run: reads see what was there before it, writes count when it is over."""

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

    Nothing that belongs to the caller, to the plan or to the state is given away: such a target is copied.

    Raises:
        NodeError: a kernel refuses its inputs.
    """
    # What comes of infinities and NaN is specified, and nothing to warn of.
    with np.errstate(all="ignore"):
        arrays = _targets(plan, _constants(plan), inputs, state)
    return [array.copy() if copied else array for array, copied in zip(arrays, plan.copied, strict=True)]


def _constants(plan: Plan) -> list[Any]:
    """What stands in the slots before a run."""
    slots: list[Any] = [None] * plan.slots
    for slot, array in plan.constants:
        slots[slot] = array
    return slots


def _targets(plan: Plan, slots: list[Any], inputs: Sequence[np.ndarray], state: State) -> list[np.ndarray]:
    """The plan's targets, which may be memory of anything."""
    for slot, array in zip(plan.parameters, inputs, strict=True):
        if slot >= 0:
            slots[slot] = array
    staged = Staged(state)
    for step in plan.steps:
        _do(step, slots, staged)
    if staged.written:
        state.update(staged.written)
    return [slots[slot] for slot in plan.targets]


def _do(step: Step, slots: list[Any], state: Staged) -> None:
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
            # A fault of ours: it stays what it is, and says where it was.
            error.add_note(f"in layer {step.node.id} {step.node.name!r} ({step.node.type} of {step.node.version})")
        raise
    results = result if isinstance(result, tuple | list) else (result,)
    for i, slot in enumerate(step.outputs):
        if slot >= 0:
            slots[slot] = results[i] if step.elements is None else rounded(results[i], step.elements[i])
    for slot in step.frees:
        slots[slot] = None


def _is_too_large(error: Exception) -> bool:
    """NumPy has ValueError for sizes beyond 63 bits."""
    return isinstance(error, MemoryError | OverflowError) or (
        isinstance(error, ValueError) and ("Maximum allowed dimension" in str(error) or "array is too big" in str(error))
    )


def _injected(step: Step, state: Staged) -> dict[str, Any]:
    injected: dict[str, Any] = {name: PlanRunner(body, state.state) for name, body in step.bodies.items()}
    if step.state is not None:
        injected[step.state] = state
    return injected


class PlanRunner:
    """A body as a kernel calls it: arrays of its Parameters in, arrays of its Results out.

    These are not copied: what a node with bodies gives counts as memory of anything, and is copied where the run ends.
    """

    def __init__(self, planned: BodyPlan, state: State) -> None:
        self.node, self.body = planned.node, planned.body
        self._plan, self._state = planned.plan, state
        self._slots = _constants(planned.plan)

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        return _targets(self._plan, self._slots.copy(), inputs, self._state)
