"""The C sources, the number by which a library is known to be built from them, and the instruction sets of builds."""

from __future__ import annotations

import functools
import hashlib
import platform
from dataclasses import dataclass, replace
from pathlib import Path

SOURCE = Path(__file__).parent / "source"
"""The folder of the C sources, which every installation has: Python reads the structures of parameters there."""


def sources_hash() -> int:
    """A number of 62 bits that follows from the C sources; 0 without sources."""
    digest = hashlib.sha256()
    files = sorted(SOURCE.glob("*.[ch]"))
    for path in files:
        # Git may have changed the ends of lines.
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return int.from_bytes(digest.digest()[:8], "little") >> 2 if files else 0


@dataclass(frozen=True)
class Level:
    """One build of the library.

    Attributes:
        name: part of the file's name.
        flags: options of the C compiler.
        processor: GCC's name of the instruction set, empty for the compiler's default.
        features: NumPy's names of the features that the processor must have.
        has_tiles: True if the build of the level that the name begins with is run with tiles of AMX for integers.
    """

    name: str
    flags: tuple[str, ...] = ()
    processor: str = ""
    features: tuple[str, ...] = ()
    has_tiles: bool = False

    @property
    def build(self) -> str:
        """The name of the build."""
        return self.name.removesuffix("-amx") if self.has_tiles else self.name


# The inner loops are written in vectors, so that the compiler's options decide on size more than on speed: 600 kB hold
# all levels. Peeled loops take 5 % off the time of EfficientNet with AVX2. Levels of short vectors are
# as fast when built for size (tests.benchmarks.networks with IREXEC_NATIVE). build.py adds what only GCC has.
_FAST = ("-O2", "-ftree-vectorize")
_SMALL = ("-Os", "-ftree-vectorize")

_V4 = Level("x86-64-v4", (*_FAST, "-mprefer-vector-width=512"), "x86-64-v4", ("AVX512_SKX",))
_X86 = (
    replace(_V4, name="x86-64-v4-amx", has_tiles=True),
    _V4,
    Level("x86-64-v3", (*_FAST, "-fpeel-loops"), "x86-64-v3", ("AVX2", "FMA3")),
    Level("x86-64-v2", _SMALL, "x86-64-v2", ("SSE42",)),
    Level("portable", _SMALL, "x86-64"),
)
_ARM = (Level("portable", (*_FAST, "-fpeel-loops")),)


def levels(machine: str = "") -> tuple[Level, ...]:
    """The levels of a kind of processor, by default of this one, the fastest first.

    NEON is part of every 64-bit ARM processor.
    """
    return _X86 if (machine or platform.machine()).lower() in ("x86_64", "amd64") else _ARM


def is_supported(level: Level) -> bool:
    """Whether this processor, with this operating system, has the instructions of a level."""
    import numpy as np  # not for the build, which runs where NumPy may not be installed

    features = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    found: dict[str, bool] = getattr(features, "__cpu_features__", {})
    if level.has_tiles and not has_flag("amx_int8"):
        return False
    return all(found.get(feature, False) for feature in level.features)


def has_flag(name: str) -> bool:
    """Whether Linux lists a feature of the processor under this name; False on other systems."""
    return name in _flags()


@functools.cache
def _flags() -> frozenset[str]:
    path = Path("/proc/cpuinfo")
    return frozenset(path.read_text("utf-8", "replace").split() if path.is_file() else ())
