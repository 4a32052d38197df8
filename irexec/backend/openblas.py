"""The OpenBLAS that NumPy uses, and its number of threads.

NumPy has no call for it, but OpenBLAS itself exports functions. Where they are not found (another BLAS), there is
nothing to set.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")


@dataclass(frozen=True)
class OpenBlas:
    """An OpenBLAS.

    Attributes:
        get, set: the number of its threads.
        kernels: the processor that its kernels are written for, such as "SkylakeX"; empty where it is not known. It is
            not always that of the machine: the environment variable OPENBLAS_CORETYPE names another one.
    """

    get: Callable[[], int]
    set: Callable[[int], None]
    kernels: str = ""


@functools.cache
def openblas() -> OpenBlas | None:
    """The OpenBLAS that NumPy uses; None where its number of threads cannot be set."""
    for library in _libraries():
        with contextlib.suppress(OSError):
            found = _functions(ctypes.CDLL(str(library)))
            if found is not None:
                return found
    return None


def _libraries() -> Iterator[Path]:
    """Candidates: the library in NumPy's wheel, then libraries loaded by the process (conda, Linux distributions)."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".libs", package / ".dylibs"):
        if folder.is_dir():
            yield from (file for file in sorted(folder.iterdir()) if "openblas" in file.name)
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        paths = {
            line.split(None, 5)[5] for line in maps.splitlines() if "openblas" in line and len(line.split(None, 5)) == 6
        }
        yield from map(Path, sorted(path for path in paths if "scipy.libs" not in path))


def _functions(library: ctypes.CDLL) -> OpenBlas | None:
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            set_ = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and set_ is not None:
                get.restype, set_.argtypes = ctypes.c_int, [ctypes.c_int]
                return OpenBlas(get, set_, _kernels(getattr(library, f"{prefix}get_corename{suffix}", None)))
    return None


def _kernels(name: Any) -> str:
    if name is None:
        return ""
    name.restype = ctypes.c_char_p
    return (name() or b"").decode("ascii", "replace")
