"""Whether a step runs faster on one thread than on all: decided by the first runs of the step, and again now and then.

Threads pay for a product of a millisecond, which runs beside another one. Threads that call many short NumPy functions
wait for each other's interpreter lock. Results are the same either way, since the blocks are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

FIRST_RUNS = 4
"""Runs of a step on all threads and on one, in turns, after which all threads are chosen unless one was faster."""

TRIAL_RUNS = 8
"""Runs before one thread is chosen.

Beside busy processes one thread is the faster in four runs up to 16 times of 100, in eight 3 times (MobileNetV2 on two
threads).
"""

RUNS_UNTIL_RETRIED = 200
"""Runs after which both are tried again: other work of the machine may have decided the first trials."""

_SLOWER = 0.93
"""One thread is chosen if its time is at most this fraction of the time of all threads.

A core that was busy during the trials slows all threads as well.
"""


class ThreadTrials:
    """The trials of one step.

    Attributes:
        alone: True if the step runs on one thread.
    """

    def __init__(self) -> None:
        self.alone = False
        self._runs = 0
        self._fastest = [math.inf, math.inf]

    def run(self, compute: Callable[[], None]) -> None:
        """Call ``compute``, on one thread or on all, and time the call during the trials."""
        if self._runs >= TRIAL_RUNS:
            self._runs += 1
            if self._runs > RUNS_UNTIL_RETRIED:
                self._runs, self._fastest = 0, [math.inf, math.inf]
            compute()
            return
        self.alone = self._runs % 2 == 1
        start = time.perf_counter()
        compute()
        self._fastest[self.alone] = min(self._fastest[self.alone], time.perf_counter() - start)
        self._runs += 1
        if self._runs in (FIRST_RUNS, TRIAL_RUNS):
            self.alone = self._fastest[True] < _SLOWER * self._fastest[False]
            if not self.alone:
                self._runs = TRIAL_RUNS
