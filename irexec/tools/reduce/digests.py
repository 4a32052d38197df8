"""Digests of the model, the inputs and the reference of a reduction, for its file of answers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.io.regular_files import open_regular

_CHUNK = 1 << 20


def model_digest(model: Model, path: str) -> str:
    """A digest of the files of a model."""
    return _files_digest(dict.fromkeys(str(name) for name in (path, model.path, model.bin_path) if name is not None))


def source_digest(source: str | os.PathLike[str] | Model) -> str:
    """A digest of the other version: a model, a file, or a folder of arrays."""
    if isinstance(source, Model):
        return model_digest(source, "")
    path = Path(source)
    return _files_digest(map(str, sorted(path.iterdir()) if path.is_dir() else (path, path.with_suffix(".bin"))))


def arrays_digest(arrays: Sequence[np.ndarray]) -> str:
    """A digest of types, shapes and values."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(
            "\0".join(map(str, array.ravel())).encode()
            if array.dtype == object
            else np.ascontiguousarray(array).tobytes()
        )
    return found.hexdigest()


def _files_digest(paths: Iterable[str]) -> str:
    found = hashlib.sha256()
    for file in paths:
        if Path(file).is_file():
            with open_regular(file) as opened:
                while chunk := opened.read(_CHUNK):
                    found.update(chunk)
    return found.hexdigest()
