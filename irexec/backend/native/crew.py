"""Threads that help with jobs of the C library. They wait for jobs in C, without the interpreter's lock.

irexec/native/source/run.c has the other side. All models of the process share the helpers. A helper that comes late
finds fewer blocks left, and nobody waits for one that has not come.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from irexec.native.library import Library, library

STAYS = sys.platform == "linux"
"""Whether helpers sleep in C, where the system can wake them; elsewhere they sleep in Python."""


class Crew:
    """The helpers of a process, started on demand."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._called: list[threading.Event] = []
        self._lock = threading.Lock()
        self._refused = False
        library.clear_seats()

    def hire(self, job: int, calls: int, helpers: int, hired: int) -> None:
        """Make the calls of a job ready, and let up to so many idle helpers work on them, as its threads 1, 2, ...

        Args:
            job: the address of the calls.
            hired: the address of words that irx_dismiss reads, one and two for each seat; the first one is 0.
        """
        served = len(self._called)
        if served < helpers and not self._refused:
            served = self._start(helpers)
        self._library.hire(job, calls, helpers, served, hired)
        if not STAYS:
            for called in self._called:
                called.set()

    def _start(self, helpers: int) -> int:
        """The number of helpers, after others were started if there are fewer."""
        with self._lock, contextlib.suppress(RuntimeError):
            self._refused = True
            while (seat := len(self._called)) < min(helpers, self._library.seats):
                called = threading.Event()
                name = f"irexec-c-{seat + 1}"
                threading.Thread(target=self._serve, args=(seat, called), name=name, daemon=True).start()
                self._called.append(called)
            self._refused = False
        return len(self._called)

    def _serve(self, seat: int, called: threading.Event) -> None:
        while True:
            self._library.serve(seat, STAYS)
            called.wait()
            called.clear()


_crew: Crew | None = None
_lock = threading.Lock()


def crew() -> Crew:
    """The helpers of this process."""
    global _crew
    if _crew is None:
        with _lock:
            found = library()
            assert found is not None, "jobs are made with the library"
            _crew = _crew or Crew(found)
    return _crew


def _forget() -> None:
    """In the child after a fork, where there are no threads but the one that forked."""
    global _crew, _lock
    _crew, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
