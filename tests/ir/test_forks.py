"""Locks that another thread held at the moment of a fork are free in the child."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from irexec.ir import forks
from tests.support.paths import ROOT

HELD = """
import os, signal, threading
from irexec.ir import forks

class Value:
    @functools.cached_property
    def slow(self):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            release.wait()
        return 1

forks._PACKAGES = ("__main__",)
lock, rlock, inside, release = forks.new_lock(), forks.new_rlock(), threading.Event(), threading.Event()

def hold():
    with lock, rlock:
        Value().slow

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    with lock, rlock:
        os._exit(Value().slow)
status = os.waitpid(child, 0)[1]
release.set()
thread.join()
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_are_free_in_a_child() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import functools" + HELD],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "1", done.stderr


def test_locks_that_are_gone_are_forgotten() -> None:
    lock = forks.new_lock()
    count = len(forks._locks)
    del lock
    assert len(forks._locks) == count - 1
