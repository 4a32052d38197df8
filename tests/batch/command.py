"""irexec batch as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.paths import ROOT


def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start the command in a session of its own, with pipes for what it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "irexec", "batch", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def finish(arguments: Sequence[str]) -> str:
    """Run it to its end; returns what it prints.

    Raises:
        RuntimeError: it fails.
    """
    process = start(arguments)
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(f"irexec batch {' '.join(arguments)} ended with {process.returncode}: {err or out}")
    return out


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that the command has started and that are alive, on Linux."""
    try:
        tasks = list(Path(f"/proc/{process.pid}/task").iterdir())
        found = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        return [pid for pid in found if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    except (FileNotFoundError, ProcessLookupError):
        return []
