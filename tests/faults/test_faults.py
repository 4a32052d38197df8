"""The deterministic part of ``python -m tests.faults``; the rest takes minutes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def _figures(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-m", "tests.faults", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_signals_at_renames() -> None:
    """Of 20 signals at the two renames of a pair, SIGKILL alone leaves one new file, after the first and before the second."""
    (figures,) = _figures("renames", "--operation", "irexec convert")
    assert figures == (
        "signals at renames, irexec convert: 20 cases, 17 new files, 1 old files, 2 torn and recognised, 4 with temporary folders; 0 problems"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged in one step on Linux alone")
def test_signals_at_the_exchange_of_folders() -> None:
    (figures,) = _figures("renames", "--operation", "irexec infer --dump-layers")
    assert figures == (
        "signals at renames, irexec infer --dump-layers: 10 cases, 9 new files, 1 old files, 2 with temporary folders; 0 problems"
    )


@pytest.mark.slow
def test_files_that_may_not_become_large() -> None:
    (figures,) = _figures("limits", "--operation", "irexec infer -o")
    assert figures == "RLIMIT_FSIZE, irexec infer -o: 9 cases, 2 new files, 7 old files; 0 problems"
