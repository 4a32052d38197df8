"""Importing this takes away from the process what Pyodide does not have: threads, processes, links, signals, mappings of
files, and modules of the standard library. To be imported before anything else.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from typing import Any

_MISSING = {
    "os": ("fork", "getpriority", "killpg", "link", "pipe", "register_at_fork", "sched_getaffinity", "sched_setaffinity"),
    "signal": ("setitimer", "set_wakeup_fd"),
}  # fmt: skip
_MODULES = ("_multiprocessing", "fcntl", "grp", "mmap", "pwd", "resource", "sqlite3", "termios")


def _no_thread(*arguments: Any, **options: Any) -> Any:
    raise RuntimeError("can't start new thread")


def _no_process(*arguments: Any, **options: Any) -> Any:
    raise OSError(138, "emscripten does not support processes.")


def _no_signal(*arguments: Any) -> Any:
    raise ValueError("signal only works in main thread of the main interpreter")


for _name, _functions in _MISSING.items():
    for _function in _functions:
        vars(importlib.import_module(_name)).pop(_function, None)
for _name in ("signal", "_signal"):
    vars(importlib.import_module(_name))["signal"] = _no_signal
sys.modules.update(dict.fromkeys(_MODULES))  # type: ignore[arg-type]  # None: the module does not exist
setattr(threading.Thread, "start", _no_thread)  # noqa: B010
setattr(subprocess, "Popen", _no_process)  # noqa: B010
sys.platform = "emscripten"
os.environ["IREXEC_NATIVE"] = "0"
