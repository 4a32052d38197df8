"""Worker processes: a worker ignores Ctrl-C and ends with the process that started it."""

from __future__ import annotations

import os
import signal
import threading


def begin_worker() -> None:
    """Prepare a new worker process. Ctrl-C reaches every process of a terminal, and the parent decides about the
    workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing  # when a process starts: what validates one file needs none of it

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
