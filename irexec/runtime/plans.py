"""The plans of a compiled model, one for each set of input shapes, of which the least recently used are dropped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from irexec.compile.steps import Plan
from irexec.ir.forks import new_lock

PLANS, STEPS = 64, 16_384
"""Plans that are stored, and steps of all of them: a step takes some kilobytes."""


class PlanCache:
    """Plans by key. A plan that was dropped is made again: nothing but its key decides on it.

    A thread that makes a plan does not stop the others.

    Args:
        size: maximum number of stored plans.
        steps: maximum number of their steps, unless it is one plan.
    """

    def __init__(self, size: int = PLANS, steps: int = STEPS) -> None:
        self._size, self._most_steps = size, steps
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._steps = 0
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, key: Hashable, make: Callable[[], Plan]) -> Plan:
        """The plan of a key, made if missing.

        Threads may make the same plan at once; the first one is stored.
        """
        found = self._find(key)
        return self._keep(key, make()) if found is None else found

    def _find(self, key: Hashable) -> Plan | None:
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
            return self._plans.get(key)

    def _keep(self, key: Hashable, made: Plan) -> Plan:
        with self._lock:
            if key not in self._plans:
                self._plans[key] = made
                self._steps += len(made.steps)
            self._plans.move_to_end(key)
            while len(self._plans) > 1 and (len(self._plans) > self._size or self._steps > self._most_steps):
                _, dropped = self._plans.popitem(last=False)
                self._steps -= len(dropped.steps)
            return self._plans[key]
