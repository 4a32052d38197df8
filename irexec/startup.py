"""Ctrl-C and a lack of memory while the command line is still being imported: one line and an exit code, 130 or 3, not
a traceback out of an import.

This is the first thing that the package imports, and it imports nothing that the interpreter has not loaded already:
any import takes milliseconds in which Ctrl-C would give a traceback. It does nothing in a program that merely uses
irexec as a library.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
_INVALID = 3

_LEAST, _LITTLE = 144 << 20, 4 << 30
"""Bytes of addresses: NumPy ends the process by itself with less than the first, and below the second its BLAS gets no
threads. Each reserves addresses, and no product uses them."""
_NO_MEMORY = (
    "cannot allocate memory", "failed to map segment", "can't start new thread", "can't allocate lock", "out of memory",
)  # fmt: skip

# The part of signal that is built in: signal itself imports enum.
_signal = __import__("_signal")


def is_command_line() -> bool:
    """Whether this process is ``irexec`` or ``python -m irexec``."""
    name = os.path.basename(sys.argv[0] if sys.argv else "")
    given = sys.orig_argv
    return os.path.splitext(name)[0] == "irexec" or any(given[i : i + 2] == ["-m", "irexec"] for i in range(len(given)))


def exit_quietly_on_interrupt() -> None:
    """Make Ctrl-C end the process at once, unless it is ignored; an exception could get lost in the middle of an
    import."""
    if is_command_line() and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        handle_signal(_signal.SIGINT, exit_at_once)


def handle_signal(number: int, handler: object) -> None:
    """Install the handler of a signal. The old one stays where none can be installed: outside the main thread, and on
    systems without signals, such as Pyodide.
    """
    try:  # noqa: SIM105  # contextlib is not loaded yet
        _signal.signal(number, handler)
    except (AttributeError, ValueError, OSError):
        pass


def exit_at_once(number: int, frame: object) -> None:
    """End the process where there is nothing to clean up."""
    if number == _signal.SIGINT:
        os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether an exception, of an import or of a thread too, is raised for want of memory."""
    said = str(error).lower() if isinstance(error, ImportError | RuntimeError | OSError) else ""
    return isinstance(error, MemoryError) or any(text in said for text in _NO_MEMORY)


def _end_without_memory(kind: type[BaseException], error: BaseException, traceback: object) -> None:
    if is_lack_of_memory(error):
        os.write(2, b"error: there is not enough memory\n")
        os._exit(_INVALID)
    sys.__excepthook__(kind, error, traceback)  # type: ignore[arg-type]  # a traceback, whose type is in types


def expect_little_memory() -> None:
    """Make a lack of memory end the process with a sentence; at once if its limit of addresses is too low."""
    if not is_command_line():
        return
    sys.excepthook = _end_without_memory
    try:
        resource = __import__("resource")
    except ImportError:
        # On Windows.
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= _LITTLE:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit < _LEAST:
        text = f"this process may have {limit >> 20} MB of addresses (ulimit -v), and needs {_LEAST >> 20} MB at least"
        os.write(2, f"error: there is not enough memory: {text}\n".encode())
        os._exit(_INVALID)


exit_quietly_on_interrupt()
expect_little_memory()
