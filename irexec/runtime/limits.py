"""Limits of the memory and time of one run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from irexec.compile.memory_limit import MemoryLimit, results_text
from irexec.errors import InputError, RunTimeoutError
from irexec.ir.facts import Fact
from irexec.reference.limits import SMALL


class RunLimits:
    """The limits of one run, the iterations of its loops included; it starts when this is made.

    Args:
        memory: the compiled model's.
        timeout: seconds; None for any.

    Raises:
        InputError: ``timeout`` is not a positive number.
    """

    def __init__(self, memory: MemoryLimit, timeout: float | None = None) -> None:
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0
        ):
            raise InputError(f"timeout is {timeout!r}, expected a number of seconds above 0")
        self._memory, self._timeout = memory, timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        # A given limit is looked at in the first step too: the process may hold more already.
        self._taken = 0 if memory.maximum is None else SMALL

    def take(self, size: int, facts: Sequence[Fact]) -> None:
        """Raise OpError if there is not enough memory for ``size`` bytes, the outputs ``facts`` of a step.

        What is left of the memory is looked at for large tensors, and once for many small ones: a loop may collect
        them.
        """
        self._taken += size
        if self._taken >= SMALL:
            self._taken = 0
            self._memory.check_memory(size, results_text(facts))

    def check_memory(self, size: int, what: str) -> None:
        """Raise OpError unless ``size`` bytes may be allocated; ``what`` says what takes them."""
        self._memory.check_memory(size, what)

    def check_time(self, layer: str = "") -> None:
        """Raise RunTimeoutError with the next layer, if the run has taken too long.

        By default the layer is the one of the running step, which adds its name.
        """
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise RunTimeoutError.at(layer, self._timeout or 0)
