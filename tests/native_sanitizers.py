"""The C kernels with sanitizers: ``python -m tests.native_sanitizers [--thread] [--level NAME] [--cases N] [TESTS]``.

The kernels are built with the address and undefined-behaviour sanitizers into a temporary folder, and the tests and N random
graphs run on them. ``--thread`` runs tests/data/native/threads.c and ends.c on run.c with the thread sanitizer. GCC or Clang on Linux.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from irexec.native import build as building
from irexec.native.sources import SOURCE, is_supported, levels, sources_hash
from tests.support.paths import ROOT

_ADDRESS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_THREAD = ("-std=gnu11", "-g", "-O1", "-fsanitize=thread", "-pthread", f"-DSOURCES_HASH={sources_hash()}")
# The address sanitizer maps terabytes, and is slow.
_UNLIMITED = ("--memory", "100000000", "--timeout", "120", "--minimise", "0")
_HARNESSES = [ROOT / "tests" / "data" / "native" / f"{name}.c" for name in ("threads", "ends")]


def _runtime(compiler: list[str], name: str) -> str:
    """The path of a sanitizer's library, which is loaded before Python."""
    done = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def address(level: str, cases: int, tests: list[str]) -> int:
    """Run tests and random graphs on kernels with the address sanitizer; the exit code."""
    compiler = building.find_compiler()
    with tempfile.TemporaryDirectory(prefix="irexec-sanitizers-") as folder:
        building.build(Path(folder), _ADDRESS, [one for one in levels() if one.name == level])
        environment = {
            **os.environ,
            "IREXEC_NATIVE": folder,
            "LD_PRELOAD": " ".join(_runtime(compiler, f"lib{name}.so") for name in ("asan", "ubsan")),
            # Python itself leaks, and its allocator would hide what lies between arrays.
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "PYTHONMALLOC": "malloc",
        }
        # -s: what a sanitizer says at the end of the process is not captured.
        commands = [["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *tests]]
        if cases:
            commands.append(["-m", "tests.fuzz", "--target", "graphs", "--cases", str(cases), *_UNLIMITED])
        codes = [
            subprocess.run([sys.executable, *command], cwd=ROOT, env=environment).returncode for command in commands
        ]
    return max(codes)


def threads() -> int:
    """Run the harnesses of run.c with the thread sanitizer; the exit code."""
    return max(harness(source, *_THREAD) for source in _HARNESSES)


def harness(source: Path, *options: str) -> int:
    """Build a program with run.c and run it; the exit code."""
    with tempfile.TemporaryDirectory(prefix="irexec-sanitizers-") as folder:
        program = str(Path(folder) / "program")
        compiler = [*building.find_compiler(), *options, f"-I{SOURCE}", str(source), str(SOURCE / "run.c")]
        built = subprocess.run([*compiler, "-o", program], check=False).returncode
        return built or subprocess.run([program], check=False).returncode


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thread", action="store_true")
    parser.add_argument("--level", default=next(level.name for level in levels() if is_supported(level)))
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("tests", nargs="*", default=["tests/backend"])
    options = parser.parse_args()
    return threads() if options.thread else address(options.level, options.cases, options.tests)


if __name__ == "__main__":
    sys.exit(main())
