"""Builds the library with the C compiler of the machine.

    python -m irexec.native.build

builds it in this checkout, or in an installed package that has the C sources; names of levels after it build these
alone. Installing the package does the same if there is a compiler, and continues without one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from irexec.native.library import FOLDER, path_of
from irexec.native.sources import SOURCE, Level, levels, sources_hash

# Floating-point arithmetic stays as IEEE 754 has it, infinities and NaN included; only traps and errno are not asked
# for, so that comparisons can be computed for whole vectors.
_FLAGS = (
    "-std=gnu11", "-shared", "-s", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden",
    "-fno-asynchronous-unwind-tables",
)  # fmt: skip
# Clang refuses these for Windows, where they mean nothing.
_POSIX, _LIBRARIES = ((), ()) if sys.platform == "win32" else (("-fPIC",), ("-lm",))
# Options that Clang or its linker does not have. GCC's -O2 vectorizes loops of unknown length only with this cost
# model; its linker leaves gaps for pages between the parts of the file, and adds a start that C does not need.
_GCC = ("-fvect-cost-model=dynamic", "-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-nostartfiles")
# MSVC has no vector types, and GCC for Windows misaligns vectors of 32 bytes on the stack.
_COMPILERS = ("clang",) if sys.platform == "win32" else ("cc", "gcc", "clang")


class BuildError(Exception):
    """The compiler is missing, or failed."""


def build(folder: Path = FOLDER, extra: tuple[str, ...] = (), chosen: Sequence[Level] = ()) -> list[Path]:
    """Build the levels of the processor that the compiler builds for, and return the files.

    Args:
        folder: where the files are written.
        extra: further options of the compiler.
        chosen: the levels; empty for all.

    Raises:
        BuildError: the C compiler is missing, or cannot compile the library.
    """
    if sys.maxsize < 1 << 32:
        raise BuildError("the C kernels need a 64-bit Python")
    if not SOURCE.is_dir():
        raise BuildError("this installation has no C sources")
    compiler = find_compiler()
    options = (*(() if _is_clang(compiler) else _GCC), *extra)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {level.build: level for level in chosen or levels_of(compiler)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda level: _build(compiler, level, folder, options), wanted.values()))


def levels_of(compiler: Sequence[str]) -> tuple[Level, ...]:
    """The levels of the processor that a compiler builds for, which is another one for a cross compiler."""
    return levels(_answer(compiler, "-dumpmachine").partition("-")[0])


def find_compiler() -> list[str]:
    """The command of the C compiler: the variable CC, or by default the first that exists of cc, gcc and clang.

    Raises:
        BuildError: there is none.
    """
    named = os.environ.get("CC", "").strip()
    for command in [shlex.split(named)] if named else [[name] for name in _COMPILERS]:
        if shutil.which(command[0]):
            return command
    raise BuildError(f"the C compiler {named!r} of CC does not exist" if named else "there is no C compiler")


def _is_clang(compiler: list[str]) -> bool:
    """Whether the compiler is Clang, under whatever name; False if it cannot be run, which building reports."""
    return "clang" in _answer(compiler, "--version").lower()


def _answer(compiler: Sequence[str], option: str) -> str:
    """The answer of the compiler to an option; "" if it has none or cannot be run."""
    try:
        done = subprocess.run([*compiler, option], capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _for_processor(compiler: Sequence[str], level: Level) -> tuple[str, ...]:
    """The option for the instruction set; ``zig cc`` writes underscores, and builds for its own machine without one."""
    is_zig = any("zig" in Path(word).name for word in compiler)
    name = level.processor.replace("-", "_") if is_zig else level.processor
    return (f"-march={name}",) if name else ("-mcpu=generic",) if is_zig else ()


def _build(compiler: list[str], level: Level, folder: Path, options: tuple[str, ...]) -> Path:
    target = path_of(level, folder)
    sources = sorted(str(path) for path in SOURCE.glob("*.c"))
    # Written under another name first: a file that is in use must not change, and none is left half written.
    with tempfile.TemporaryDirectory(dir=folder) as room:
        made = Path(room) / target.name
        defined = f"-DSOURCES_HASH={sources_hash()}"
        command = [
            *compiler,
            *_FLAGS,
            *_POSIX,
            *level.flags,
            *_for_processor(compiler, level),
            *options,
            defined,
            "-o",
            str(made),
            *sources,
            *_LIBRARIES,
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise BuildError(f"{compiler[0]} cannot be run: {error}") from error
        if done.returncode or not made.is_file():
            reason = done.stderr.strip() or f"exit code {done.returncode}"
            raise BuildError(f"{shlex.join(compiler)} cannot compile the C kernels for {level.name}: {reason}")
        os.replace(made, target)
    return target


def main(words: Sequence[str] | None = None) -> int:
    """Build the library in its own folder, and print the files; 1 if it cannot be built."""
    parser = argparse.ArgumentParser("python -m irexec.native.build", description="Build the C kernels.")
    known = _known_levels()
    names = [level.name for level in known]
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"of {', '.join(names)}; default: all")
    chosen = parser.parse_args(words).levels
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a level: expected {', '.join(names)}")
    try:
        built = build(chosen=[level for level in known if level.name in chosen])
    except BuildError as error:
        print(f"irexec computes with NumPy alone: {error}", file=sys.stderr)
        return 1
    for path in built:
        print(path)
    return 0


def _known_levels() -> tuple[Level, ...]:
    """The levels of the compiler's processor; without a compiler, those of this one."""
    try:
        return levels_of(find_compiler())
    except BuildError:
        return levels()


if __name__ == "__main__":
    sys.exit(main())
