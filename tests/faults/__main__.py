"""Signals, full disks and limits while files are written.

    python -m tests.faults [kills] [calls] [renames] [full] [limits] [--count N] [--seed N] [--operation NAME ...]

kills:   SIGKILL, SIGTERM, SIGINT, SIGHUP and SIGQUIT at random moments, ``--count`` of them.
calls:   each of them before and right after every call that changes the disk.
renames: the same at renames alone, which takes seconds.
full:    a full disk, for which a tmpfs is mounted; skipped where that is not permitted.
limits:  RLIMIT_FSIZE.

All but renames unless some are named. After each case files are whole and belong together; each target has at most one temporary folder,
and the next run deletes it. A .bin beside the .xml of another model, which SIGKILL between two renames leaves, must be recognised.
The exit code is 1 if anything does not hold. POSIX only, since processes are forked.
"""

from __future__ import annotations

import os

# A process of several threads should not be forked.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults import campaigns
from tests.faults.judging import Tally
from tests.faults.operations import OPERATIONS

_NAMES = ("kills", "calls", "renames", "full", "limits")
_PROBLEMS_SHOWN = 5


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("tests", nargs="*", metavar="TEST", help=", ".join(_NAMES))
    parser.add_argument("--count", type=int, default=300, help="how many signals kills sends (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operation", action="append", choices=[operation.name for operation in OPERATIONS])
    given = parser.parse_args()
    if unknown := set(given.tests) - set(_NAMES):
        parser.error(f"there is no test {unknown.pop()!r}: {', '.join(_NAMES)}")
    operations = [operation for operation in OPERATIONS if given.operation is None or operation.name in given.operation]
    # A shell lets what runs in the background ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = False
    with tempfile.TemporaryDirectory(prefix="irexec-faults-") as name:
        folder = Path(name)
        tests: dict[str, Callable[[], Iterator[Tally]]] = {
            "kills": lambda: campaigns.kills(operations, folder, given.count, given.seed),
            "calls": lambda: campaigns.calls(operations, folder),
            "renames": lambda: campaigns.calls(operations, folder, renames_only=True),
            "full": lambda: campaigns.full_disk(operations, folder),
            "limits": lambda: campaigns.limits(operations, folder),
        }
        for test in given.tests or [name for name in _NAMES if name != "renames"]:
            for tally in tests[test]():
                print(tally.line(), flush=True)
                for problem in tally.problems[:_PROBLEMS_SHOWN]:
                    print(f"    {problem}", flush=True)
                failed = failed or bool(tally.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
