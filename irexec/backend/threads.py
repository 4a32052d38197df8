"""How many threads NumPy's BLAS uses.

NumPy has no call for it; its wheels carry an OpenBLAS whose own functions do. Where they are not
found (another BLAS), the number of threads is left as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")


@dataclass(frozen=True)
class Blas:
    """The two functions of an OpenBLAS."""

    get: Callable[[], int]
    set: Callable[[int], None]


@functools.cache
def blas() -> Blas | None:
    """The BLAS that NumPy's wheel carries; None where its number of threads cannot be set."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".libs", package / ".dylibs")
    for library in (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()) if "openblas" in file.name):
        with contextlib.suppress(OSError):
            found = _functions(ctypes.CDLL(str(library)))
            if found is not None:
                return found
    return None


def _functions(library: ctypes.CDLL) -> Blas | None:
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            set_ = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and set_ is not None:
                get.restype, set_.argtypes = ctypes.c_int, [ctypes.c_int]
                return Blas(get, set_)
    return None


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """BLAS uses at most ``threads`` threads inside the context; None leaves it as it is.

    The number is the process's own: two threads that ask for different numbers at once may get either.
    """
    library = None if threads is None else blas()
    if library is None or threads is None:
        yield
        return
    before = library.get()
    if before == threads:
        yield
        return
    library.set(threads)
    try:
        yield
    finally:
        library.set(before)
