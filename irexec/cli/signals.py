"""Ctrl-C, SIGTERM and SIGHUP end the command within a second by an exception: half-written files are removed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from irexec.io.files import NOTHING_HELD, remove_all
from irexec.startup import exit_at_once, handle_signal, is_lack_of_memory

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS: tuple[int, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

_PATIENCE, _GRACE = 0.7, 5.0
"""Seconds for the main thread to notice a signal, and to clean up. A function of NumPy may compute for longer."""


class _Watch(threading.Thread):
    """Ends the process if the main thread does not come back from what it computes when a signal has arrived."""

    def __init__(self) -> None:
        super().__init__(name="irexec-signals", daemon=True)
        self._reader = self._writer = -1
        self._noticed, self._lost = threading.Event(), threading.Event()
        self._is_over = False

    def begin(self) -> bool:
        """Watch for signals from now on. Returns False where the process can have no thread or pipe for it."""
        try:
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._writer, False)
            self.start()
            signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        except (AttributeError, ValueError, OSError, RuntimeError):
            return False
        return True

    def notice(self) -> None:
        """The main thread handles the signal."""
        self._noticed.set()

    def lose(self) -> None:
        """The exception that should end the process got lost; this thread ends it while the caller waits."""
        self._lost.set()
        threading.Event().wait(_GRACE)

    def end(self) -> None:
        """Watch no more: the interpreter must not find this thread running when it ends."""
        self._is_over = True
        signal.set_wakeup_fd(-1)
        os.write(self._writer, b"\0")
        self._noticed.set()
        self._lost.set()
        self.join(_GRACE)

    def run(self) -> None:
        """Wait for a signal, and for the main thread to take notice of it."""
        try:
            self._watch()
        except (MemoryError, RuntimeError) as error:
            # The main thread has no memory either, and says so.
            if not is_lack_of_memory(error):
                raise

    def _watch(self) -> None:
        number = os.read(self._reader, 1)[0]
        while number not in _SIGNALS and not self._is_over:
            number = os.read(self._reader, 1)[0]
        if self._noticed.wait(_PATIENCE):
            # The process ends before that, unless the exception gets lost.
            self._lost.wait(_GRACE)
        if not self._is_over:
            _end_here(number)


_watch: list[_Watch] = []


def exit_on_signals() -> None:
    """Let signals end the process at once while nothing has to be cleaned up. A signal ignored by nohup stays so."""
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            handle_signal(number, exit_at_once)


def raise_on_signals() -> None:
    """Make signals that end the process at once raise from now on: there is something to clean up."""
    ending = [number for number in _SIGNALS if signal.getsignal(number) is exit_at_once]
    if ending and os.name == "posix":
        sys.unraisablehook = _unraisable
        watch = _Watch()
        if watch.begin():
            _watch.append(watch)
    for number in ending:
        handle_signal(number, _leave)


def leave_to_command() -> None:
    """The command handles signals itself, and takes its time: nothing ends the process if it goes on."""
    for watch in _watch:
        watch.end()
    _watch.clear()


def finish() -> None:
    """The work is done and the process about to end: nothing may interrupt that."""
    _ignore()
    for watch in _watch:
        watch.end()


def _ignore() -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is _leave:
            handle_signal(number, signal.SIG_IGN.value)


def _leave(number: int, frame: FrameType | None) -> None:
    # Once is enough: another one would interrupt the cleaning up.
    _ignore()
    for watch in _watch:
        watch.notice()
    # Not KeyboardInterrupt, for which click would write an empty line.
    sys.exit(128 + number)


def _unraisable(raised: sys.UnraisableHookArgs) -> None:
    """An exception in a destructor goes no further: Python would print it and go on."""
    if not issubclass(raised.exc_type, SystemExit):
        sys.__unraisablehook__(raised)
        return
    for watch in _watch:
        watch.lose()


def _end_here(number: int) -> None:
    """End the process, whatever the main thread does, unless it renames files."""
    with NOTHING_HELD:
        remove_all()
        if os.isatty(2):
            # The display of progress has hidden the cursor.
            os.write(2, b"\r\x1b[K\x1b[?25h")
        exit_at_once(number, None)
