"""Ctrl-C while the command line is still being imported: one line and exit code 130, not a traceback out of an import.

This is the first thing that the package imports, and it imports nothing that the interpreter has not loaded already:
any import takes milliseconds in which Ctrl-C would give a traceback. It does nothing in a program that merely uses
irexec as a library.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130

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
        _signal.signal(_signal.SIGINT, exit_at_once)


def exit_at_once(number: int, frame: object) -> None:
    """End the process where there is nothing to clean up."""
    if number == _signal.SIGINT:
        os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


exit_quietly_on_interrupt()
