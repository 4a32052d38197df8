"""The plans of a compiled model, one for each set of input shapes, of which the least recently used are dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from irexec.compile.steps import Plan


class PlanCache:
    """Plans by key. A thread that makes a plan does not stop the others.

    Args:
        size: maximum number of stored plans.
        remembered: maximum number of stored keys without a plan.
    """

    def __init__(self, size: int = 8, remembered: int = 64) -> None:
        self._size, self._remembered = size, remembered
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._asked: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, key: Hashable, make: Callable[[], Plan]) -> Plan:
        """The plan of a key, made if missing.

        Threads may make the same plan at once; the first one is stored.
        """
        found = self._find(key)
        return self._keep(key, make()) if found is None else found

    def is_worth_a_plan(self, key: Hashable) -> bool:
        """Whether the key has a plan, or should have one: there is room for it, or it was asked for not long ago.

        A key that is asked for once in a long stream of others is not worth what making its plan costs.
        """
        with self._lock:
            if key in self._plans or len(self._plans) < self._size or key in self._asked:
                self._asked.pop(key, None)
                return True
            self._asked[key] = None
            if len(self._asked) > self._remembered:
                self._asked.popitem(last=False)
            return False

    def _find(self, key: Hashable) -> Plan | None:
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
            return self._plans.get(key)

    def _keep(self, key: Hashable, made: Plan) -> Plan:
        with self._lock:
            kept = self._plans.setdefault(key, made)
            self._plans.move_to_end(key)
            while len(self._plans) > self._size:
                self._plans.popitem(last=False)
            return kept
