"""Ctrl-C while the command line is still being imported: one line and exit code 130, not a traceback out of an import.

This is the first thing that the package imports. It does nothing in a program that merely uses irexec as a library.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from pathlib import PurePath
from typing import Any

INTERRUPTED = 130


def is_command_line() -> bool:
    """Whether this process is ``irexec`` or ``python -m irexec``."""
    return PurePath(sys.argv[0] if sys.argv else "").stem == "irexec" or ("-m", "irexec") in pairwise(sys.orig_argv)


def exit_quietly_on_interrupt() -> None:
    """Make Ctrl-C end the process at once, unless it is ignored; an exception could get lost in the middle of an import."""
    if is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again, now that there is something to clean up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(number: int, frame: Any) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


exit_quietly_on_interrupt()
