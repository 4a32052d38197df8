"""The program: ``irexec`` and ``python -m irexec``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback also while it is still being imported."""
    signal.signal(signal.SIGINT, _interrupted)
    from irexec.cli.main import main as run_command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_command_line()


def _interrupted(number: int, frame: Any) -> None:
    """Leave at once: nothing has been started, and an exception may get lost in the middle of an import."""
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
