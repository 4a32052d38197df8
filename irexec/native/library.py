"""The library as it is loaded: found beside this file, or absent."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irexec.errors import InputError
from irexec.native.sources import Level, has_flag, is_supported, levels, sources_hash

FOLDER = Path(__file__).parent / "built"
"""The folder of the built files, one for each level."""

VARIABLE = "IREXEC_NATIVE"
"""The environment variable: 0 for NumPy alone, the name of a level for that and no other, or another folder."""

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_int64


class Library:
    """A loaded library.

    Attributes:
        level: the instruction set that it was built for.
        path: of the file.
        vector: floats of a vector.
        call_words: 8-byte words of a call.
        integer_unit: elements of a word of the products of levels: 4 bytes with VNNI, else two times 16 bits.
        has_tiles: whether products of levels may use tiles of AMX.
        has_pairs: whether products may be of words of two of bf16: with AVX-512 BF16, on Linux.
        sources: the number of the C sources that it was built from.
        seats: helpers, at most.
    """

    def __init__(self, level: Level, path: Path) -> None:
        self.level, self.path = level, path
        self._loaded = ctypes.CDLL(str(path))
        self.vector: int = self._function("irx_vector", gives=_SIZE)()
        self.call_words: int = self._function("irx_call_size", gives=_SIZE)() // 8
        self.integer_unit: int = self._function("irx_integer_unit", gives=_SIZE)()
        self.has_tiles = level.has_tiles and bool(self._function("irx_integer_tiles", gives=_SIZE)())
        self.has_pairs = self.vector == 16 and has_flag("avx512_bf16")
        self.sources: int = self._function("irx_sources", gives=_SIZE)()
        self.reset = self._function("irx_reset", _ADDRESS, _SIZE, _SIZE)
        self.stop = self._function("irx_stop", _ADDRESS, _SIZE)
        self.run = self._function("irx_run", _ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE, gives=_SIZE)
        self.run_alone = self._function("irx_run_alone", _ADDRESS, _SIZE, _ADDRESS, _SIZE, gives=_SIZE)
        self.seats: int = self._function("irx_seats", gives=_SIZE)()
        self.clear_seats = self._function("irx_clear_seats")
        self.serve = self._function("irx_serve", _SIZE, _SIZE)
        self.hire = self._function("irx_hire", _ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS)
        self.dismiss = self._function("irx_dismiss", _ADDRESS)

    def _function(self, name: str, *types: type, gives: type | None = None) -> Callable[..., Any]:
        function = getattr(self._loaded, name)
        function.argtypes, function.restype = types, gives
        return function

    @functools.cache  # noqa: B019  libraries live as long as the process
    def address(self, kernel: str) -> int:
        """The address of a kernel."""
        found = ctypes.cast(getattr(self._loaded, kernel), ctypes.c_void_p).value
        assert found is not None
        return found


def path_of(level: Level, folder: Path = FOLDER) -> Path:
    """The file of a level."""
    return folder / f"kernels-{level.build}{SUFFIX}"


def library() -> Library | None:
    """The library for the best instruction set that this processor has; None where there is none.

    Raises:
        InputError: IREXEC_NATIVE names a level or a folder that cannot be used.
    """
    found = _found()
    return found if isinstance(found, Library) else None


def description(*, native: bool = True) -> str:
    """The library in a few words, for ``--version`` and reports; without one, the reason.

    Args:
        native: False where the library is switched off by compile_model.
    """
    if not native:
        return "NumPy alone (native is False)"
    found = _found()
    return f"C kernels for {found.level.name}" if isinstance(found, Library) else f"NumPy alone ({found})"


@functools.cache
def _found() -> Library | str:
    """The library, or the reason why there is none."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted == "0":
        return f"{VARIABLE} is 0"
    folder = Path(wanted) if os.sep in wanted else FOLDER
    named = "" if wanted == "1" or folder is not FOLDER else wanted
    reason = "the C kernels were not built"
    for level in levels():
        path = path_of(level, folder)
        if named in ("", level.name) and path.is_file() and is_supported(level):
            loaded = _loaded(level, path)
            if isinstance(loaded, Library):
                return loaded
            reason = loaded
    if wanted in ("", "1"):
        return reason
    known = ", ".join(level.name for level in levels() if path_of(level).is_file()) or "none"
    raise InputError(
        f"{VARIABLE} is {wanted!r}, and {reason}; expected 0, 1, a folder, or a level that was built here: {known}"
    )


def _loaded(level: Level, path: Path) -> Library | str:
    try:
        loaded = Library(level, path)
    except (OSError, AttributeError) as error:
        return f"the C kernels cannot be loaded: {error}"
    if loaded.sources != (sources_hash() or loaded.sources):
        return "the C kernels were built from other sources: python -m irexec.native.build"
    if level.has_tiles and not loaded.has_tiles:
        return "the system does not let this process use AMX"
    return loaded
