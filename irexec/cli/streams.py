"""The process around a command: broken pipes, full disks and encodings of its streams; signals that end it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TextIO

from irexec.startup import exit_at_once, handle_signal, is_lack_of_memory


class ProgressDisplay(Protocol):
    """A display of progress on the terminal; it is removed while something else is written."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


_shown: list[ProgressDisplay] = []
"""The current display of progress."""


def file_of(stderr: bool) -> TextIO:
    return sys.stderr if stderr else sys.stdout


def put(text: str, stderr: bool = False) -> None:
    """Write text as it is.

    A reader that went away is not an error, so that the exit code stays true; neither is a full disk behind stderr,
    where it could not be reported.

    Raises:
        OSError: stdout cannot be written.
    """
    with _paused():
        # Not before: while progress is shown the streams are those of rich, which break lines.
        file = file_of(stderr)
        try:
            file.write(encodable(text, file))
            file.flush()
        except OSError as error:
            _discard(file)
            if not stderr and not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, "stdout") from None


def _discard(file: TextIO) -> None:
    """Send what is left in the buffer to nowhere, so that the interpreter does not fail on it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    except (OSError, ValueError):
        # It has no file descriptor, such as a buffer in memory.
        return


def encodable(text: str, file: TextIO) -> str:
    """The text with escapes for the characters that the file's encoding lacks."""
    encoding = file.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def flush() -> None:
    """Write everything that is still in a buffer."""
    put("")


def close() -> None:
    """Write or drop the remaining output: the interpreter would fail on it at exit."""
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except (OSError, ValueError):
            _discard(file)


@contextmanager
def _paused() -> Iterator[None]:
    """The line of ``progress`` is not shown while the block lasts."""
    for shown in _shown:
        shown.stop()
    try:
        yield
    finally:
        for shown in _shown:
            shown.start()


@contextmanager
def showing(shown: ProgressDisplay) -> Iterator[None]:
    """Register the display of progress while the block lasts."""
    _shown.append(shown)
    try:
        yield
    finally:
        _shown.remove(shown)


_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS: tuple[int, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

_PATIENCE, _GRACE = 0.7, 5.0
"""Seconds for the main thread to notice a signal, and to clean up. A function of NumPy may compute for longer."""


class _Watch(threading.Thread):
    """Ends the process if the main thread does not come back from what it computes when a signal has arrived."""

    def __init__(self) -> None:
        # Not before: help writes no file.
        from irexec.io import files

        super().__init__(name="irexec-signals", daemon=True)
        self._files = files
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
        """Stop watching: the interpreter must not find this thread running when it ends."""
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
            # End the process, whatever the main thread does, unless it renames files.
            with self._files.NOTHING_HELD:
                self._files.remove_all()
                if os.isatty(2):
                    # The display of progress has hidden the cursor.
                    os.write(2, b"\r\x1b[K\x1b[?25h")
                exit_at_once(number, None)


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
    """The command handles signals itself, and takes its time: nothing ends the process if it continues."""
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
    """An exception in a destructor goes no further: Python would print it and continue."""
    if not issubclass(raised.exc_type, SystemExit):
        sys.__unraisablehook__(raised)
        return
    for watch in _watch:
        watch.lose()
