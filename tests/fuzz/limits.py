"""Limits of a process that runs cases: memory on Linux, and time for each case where there are signals for it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz.findings import TimeUp

WALL = 6
"""Ratio of the time for which a case may stand still to its processor time."""


def waited(process: int | None = None) -> float:
    """Seconds that a process, this one unless given, and those that it has started, have waited for a processor that others had.

    0 where nobody counts them.
    """
    folder = Path(f"/proc/{process or 'self'}")
    try:
        own = int((folder / "schedstat").read_text("ascii").split()[1]) / 1e9
        children = [
            int(child)
            for task in (folder / "task").iterdir()
            for child in (task / "children").read_text("ascii").split()
        ]
    except (OSError, IndexError):
        return 0.0
    return own + sum(map(waited, children))


def limit_memory(more: int) -> None:
    """Let the process have this number of bytes more than it has now; it can be called again."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Raise TimeUp after this number of seconds of processor time, or WALL times as many on the clock in which a processor was free.

    What never comes back to the interpreter is not interrupted: that needs a signal from outside.
    """

    if not hasattr(signal, "setitimer"):
        yield
        return

    began = time.monotonic() - waited()

    def stop(number: int, frame: Any) -> None:
        if number == signal.SIGPROF:
            raise TimeUp("processor time")
        if time.monotonic() - waited() - began >= WALL * seconds:
            raise TimeUp("clock")

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGPROF, signal.SIGALRM)]
    # Again and again, since a finalizer may swallow the first.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    signal.setitimer(signal.ITIMER_REAL, WALL * seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)
