"""Files of arrays, as they should be and damaged."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np

from irexec.tools.arrays.files import open_arrays


def saved(array: np.ndarray) -> bytes:
    """The .npy that NumPy writes."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def written(
    descr: str = "'<f4'",
    shape: str = "(3,)",
    order: str = "False",
    data: bytes = bytes(12),
    version: tuple[int, int] = (1, 0),
) -> bytes:
    """A .npy whose header has these texts."""
    return with_header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n", data, version)


def with_header(text: str, data: bytes = bytes(12), version: tuple[int, int] = (1, 0)) -> bytes:
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(text))
        + text.encode()
        + data
    )


def read(path: Path, content: bytes, name: str = "") -> np.ndarray:
    path.write_bytes(content)
    with open_arrays(path) as arrays:
        return arrays.read(name)


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path.read_bytes()
