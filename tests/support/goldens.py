"""Answers recorded from OpenVINO: one .npz for each family, keyed by row and by what the row asks."""

from __future__ import annotations

import functools
import io
import zipfile
from pathlib import Path

import numpy as np

from tests.support.paths import DATA

FOLDER = DATA / "goldens"


class StaleGolden(Exception):
    """There is no recorded answer to what the row asks now."""


def key(row_id: str, digest: str, output: int) -> str:
    """The name of an array in the file."""
    return f"{row_id}|{digest}|{output}"


@functools.cache
def _load(family: str) -> dict[str, np.ndarray]:
    path = FOLDER / f"{family}.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {unsafe(name): file[name] for name in file.files}


def safe(name: str) -> str:
    """A name that a zip file can hold."""
    return name.replace("/", "\x1f")


def unsafe(name: str) -> str:
    return name.replace("\x1f", "/")


def recorded(family: str, row_id: str, digest: str) -> tuple[np.ndarray, ...]:
    """The answers to a row.

    Raises:
        StaleGolden: none was recorded, or the row has changed since.
    """
    loaded = _load(family)
    found = []
    while key(row_id, digest, len(found)) in loaded:
        found.append(_carried(loaded[key(row_id, digest, len(found))]))
    if not found:
        raise StaleGolden(f"no answer to {row_id!r} is recorded: run python -m tests.oracle.record {family}")
    return tuple(found)


def _carried(array: np.ndarray) -> np.ndarray:
    """Text is kept as such in the file, and travels as objects."""
    return array.astype(object) if array.dtype.kind == "U" else array


def kept(family: str) -> set[str]:
    """Every answer in a family's file: the row's id and what it asks."""
    return {name.rsplit("|", 1)[0] for name in _load(family)}


def store(family: str, arrays: dict[str, np.ndarray]) -> None:
    """Write a family's answers, in the same bytes for the same answers."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    write(FOLDER / f"{family}.npz", arrays)


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """A .npz that holds no time of writing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(
                buffer, np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape), allow_pickle=False
            )
            file.writestr(
                zipfile.ZipInfo(f"{safe(name)}.npy", (2020, 1, 1, 0, 0, 0)), buffer.getvalue(), zipfile.ZIP_DEFLATED
            )
