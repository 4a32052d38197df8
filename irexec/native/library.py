"""The library as it is loaded: found beside this file, or absent."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from irexec.errors import InputError
from irexec.native.levels import Level, is_supported, levels

FOLDER = Path(__file__).parent / "built"
"""The folder of the built files, one for each level."""

VARIABLE = "IREXEC_NATIVE"
"""The environment variable: 0 for NumPy alone, or the name of a level for that and no other."""

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_int64


class Library:
    """A loaded library.

    Attributes:
        level: the instruction set that it was built for.
        path: of the file.
        vector: floats of a vector.
    """

    def __init__(self, level: Level, path: Path) -> None:
        self.level, self.path = level, path
        self._loaded = ctypes.CDLL(str(path))
        self.vector: int = self._function("irx_vector", gives=_SIZE)()
        self.call_words: int = self._function("irx_call_size", gives=_SIZE)() // 8
        self.reset = self._function("irx_reset", _ADDRESS, _SIZE)
        self.stop = self._function("irx_stop", _ADDRESS, _SIZE)
        self.run = self._function("irx_run", _ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE, gives=_SIZE)
        self.run_alone = self._function("irx_run_alone", _ADDRESS, _SIZE, _ADDRESS, _SIZE, gives=_SIZE)

    def _function(self, name: str, *types: type, gives: type | None = None) -> ctypes._CFuncPtr:  # type: ignore[name-defined]
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
    return folder / f"kernels-{level.name}{SUFFIX}"


@functools.cache
def library() -> Library | None:
    """The library for the best instruction set that this processor has; None where there is none.

    Raises:
        InputError: IREXEC_NATIVE names a level that was not built or that this processor does not have.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted == "0":
        return None
    named = [level for level in levels() if wanted in ("", "1", level.name)]
    for level in named:
        path = path_of(level)
        if is_supported(level) and path.is_file():
            try:
                return Library(level, path)
            except OSError:
                continue
    if wanted not in ("", "1"):
        known = ", ".join(level.name for level in levels() if path_of(level).is_file()) or "none"
        raise InputError(f"{VARIABLE} is {wanted!r}, expected 0, 1 or a level that was built here: {known}")
    return None


def description() -> str:
    """The library in a few words, for ``--version`` and reports."""
    found = library()
    return "NumPy alone" if found is None else f"C kernels for {found.level.name}"
