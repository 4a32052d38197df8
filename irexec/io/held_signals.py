"""Signals that would end the process are held while files must not be left halfway."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGBREAK")
_SIGNALS: tuple[int, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

# Python takes their action for the default where a library has installed a handler in C, as faulthandler.register does.
_OFTEN_IN_C = frozenset(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name))

NOTHING_HELD = threading.RLock()
"""Held by the thread that holds signals: what ends the process from another thread waits for it."""


class _Holder:
    """A handler that remembers signals while it holds them; if it is still installed after that, it passes them on."""

    def __init__(self) -> None:
        self.holds = True
        self.arrived: list[int] = []
        self.previous: dict[int, Any] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.holds:
            self.arrived.append(number)
        elif callable(self.previous[number]):
            self.previous[number](number, frame)
        else:
            signal.signal(number, self.previous[number])
            signal.raise_signal(number)

    def install(self) -> None:
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            # None is a handler that was not installed from Python.
            is_in_c = previous is None or (previous is signal.SIG_DFL and number in _OFTEN_IN_C)
            if not is_in_c and previous is not signal.SIG_IGN:
                self.previous[number] = previous
                # Where no handler can be installed (Pyodide), no signal arrives.
                with suppress(AttributeError, ValueError, OSError):
                    signal.signal(number, self)

    def release(self) -> None:
        """Put the handlers back, then let what has arrived take effect."""
        # One assignment for all signals: from here on any of them may raise.
        self.holds = False
        for number, previous in self.previous.items():
            if signal.getsignal(number) is self:
                signal.signal(number, previous)
        for number in dict.fromkeys(self.arrived):
            signal.raise_signal(number)


@contextmanager
def signals_held() -> Iterator[None]:
    """A signal that would end the process, or raise KeyboardInterrupt, in the block does so at its end.

    Only the main thread can hold signals, and handlers of Python run only there; any other thread only waits until no
    thread holds them. A signal that is ignored stays ignored, and one whose handler is not of Python keeps its handler.
    """
    if threading.current_thread() is not threading.main_thread():
        with NOTHING_HELD:
            yield
        return
    holder = _Holder()
    try:
        holder.install()
        with NOTHING_HELD:
            yield
    finally:
        holder.release()
