"""Worker processes, which end with the process that started them, and the standard error of the process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2


@contextmanager
def silenced_stderr() -> Iterator[None]:
    """Write nothing to stderr in the block: some libraries print objections, which cannot be turned off."""
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # It is closed.
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def begin_worker() -> None:
    """Prepare a new worker process. Ctrl-C reaches every process of a terminal, and the parent decides about the
    workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
