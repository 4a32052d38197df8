"""Build the library with the C compiler that there is.

    python -m irexec.native.build

builds it in this checkout. Installing the package does the same if there is a compiler, and goes on without one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from irexec.native.levels import Level, levels
from irexec.native.library import FOLDER, path_of

SOURCE = Path(__file__).parent / "source"
# Floating-point arithmetic stays as IEEE 754 has it, infinities and NaN included; only traps and errno are not asked
# for, so that comparisons can be computed for whole vectors.
FLAGS = (
    "-std=gnu11", "-O3", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-pthread",
)  # fmt: skip


class BuildError(Exception):
    """There is no compiler, or it failed."""


def build(folder: Path = FOLDER, extra: tuple[str, ...] = ()) -> list[Path]:
    """Build every level of this kind of processor, and return the files.

    Args:
        extra: further options of the compiler.

    Raises:
        BuildError: there is no C compiler, or it cannot compile the library.
    """
    compiler = find_compiler()
    folder.mkdir(parents=True, exist_ok=True)
    return [_build(compiler, level, folder, extra) for level in levels()]


def find_compiler() -> str:
    """The C compiler: CC, or the first of cc, gcc and clang; raises BuildError if there is none."""
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        found = shutil.which(name)
        if found:
            return found
    raise BuildError("there is no C compiler (CC, cc, gcc, clang)")


def _build(compiler: str, level: Level, folder: Path, extra: tuple[str, ...]) -> Path:
    target = path_of(level, folder)
    sources = sorted(str(path) for path in SOURCE.glob("*.c"))
    # Written under another name first: a file that is in use must not change, and none is left half written.
    with tempfile.TemporaryDirectory(dir=folder) as room:
        made = Path(room) / target.name
        command = [compiler, *FLAGS, *level.flags, *extra, "-o", str(made), *sources, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{compiler} cannot compile the C kernels for {level.name}:\n{done.stderr.strip()}")
        os.replace(made, target)
    return target


def main() -> int:
    """Build, and say what was built."""
    try:
        built = build()
    except BuildError as error:
        print(f"{error}; irexec computes with NumPy alone", file=sys.stderr)
        return 1
    for path in built:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
