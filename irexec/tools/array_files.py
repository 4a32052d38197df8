"""Arrays in .npy and .npz files."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from irexec.errors import InputError, ModelError

STDIN = "-"
_NPY, _ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")


def load_arrays(path: str | Path, accepted: str = ".npy or .npz") -> dict[str, np.ndarray]:
    """The arrays of a .npz by name, or of a .npy under the name "".

    Args:
        path: the file; "-" is standard input.
        accepted: the kinds of files that the caller takes, for the message about any other.

    Raises:
        ModelError: the file does not exist, or is neither (pickled objects are refused).
        InputError: standard input is a terminal.
    """
    name = "standard input" if path == STDIN else str(path)
    try:
        with _open(path) as file:
            start = file.read(len(_NPY))
            if not start.startswith((_NPY, *_ZIP)):
                raise ModelError(f"{name}: not a readable {accepted}: it starts with {start!r}")
            file.seek(0)
            return _arrays(file)
    except FileNotFoundError:
        raise ModelError(f"{name}: no such file") from None
    except OSError as error:
        raise ModelError(f"{name}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise ModelError(f"{name}: not a readable .npy or .npz: {error}") from None


def _open(path: str | Path) -> IO[bytes]:
    """The file, in memory where it cannot be read twice, such as a pipe."""
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("standard input is a terminal, not a .npy or .npz")
        return io.BytesIO(sys.stdin.buffer.read())
    file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    if file.seekable():
        return file
    with file:
        return io.BytesIO(file.read())


def _arrays(file: IO[bytes]) -> dict[str, np.ndarray]:
    read = np.load(file, allow_pickle=False)
    if isinstance(read, np.ndarray):
        return {"": _native(read)}
    with read:
        return {name: _native(read[name]) for name in read.files}


def _native(array: np.ndarray) -> np.ndarray:
    """The same values in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def write_npz(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays under any names; texts are written as NumPy's own string type."""
    # Not by np.savez, which takes an array called "file" for an argument of its own.
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)


def storable(array: np.ndarray) -> np.ndarray:
    """The array as a .npy can hold it: texts as NumPy's own string type."""
    return array.astype(str) if array.dtype == object else array
