"""Items along the first axis of the arrays in a .npy or .npz; other items are not read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import ModelError
from irexec.tools.arrays.files import ArrayFile, open_arrays
from irexec.tools.arrays.npy import Header, part_of


@dataclass(frozen=True)
class _Array:
    """One array: its header, and where its first item begins in the file; None if all of it must be read to have
    one."""

    header: Header
    start: int | None

    @property
    def count(self) -> int:
        return self.header.shape[0]

    @property
    def bytes(self) -> int:
        """Bytes of an item."""
        return self.header.bytes // max(1, self.count)


class ArrayItems:
    """An open file of items.

    Attributes:
        count: number of items.

    Args:
        path: a .npy or .npz whose arrays have the same size at axis 0.
        memory: the limit of an array that must be read at once: compressed, or in Fortran order.

    Raises:
        ModelError: the file cannot be read, or its arrays have no items, or different numbers of them.
    """

    def __init__(self, path: str, memory: MemoryLimit | None = None) -> None:
        self._path, self._whole = path, dict[str, np.ndarray]()
        self._file = open_arrays(path, memory=memory)
        try:
            self._arrays = {name: _array(self._file, name, path) for name in self._file.names}
            self.count = _count(self._arrays, path)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def item(self, index: int) -> dict[str, np.ndarray]:
        """The arrays of an item by name; that of a .npy has the name "".

        Raises:
            ModelError: the file is damaged, or there is not enough memory.
        """
        return {name: self._item(name, array, index) for name, array in self._arrays.items()}

    def _item(self, name: str, array: _Array, index: int) -> np.ndarray:
        if array.start is None:
            if name not in self._whole:
                self._whole[name] = self._file.read(name)
            return np.asarray(self._whole[name][index])
        data = self._file.bytes_at(array.start + index * array.bytes, array.bytes)
        return part_of(data, array.header, array.header.shape[1:], self._path)


def _array(file: ArrayFile, name: str, path: str) -> _Array:
    header, start = file.header(name), file.start(name)
    if not header.shape:
        raise ModelError(
            f"{path}{f', array {name!r}' if name else ''}: is a scalar, expected items along the first axis"
        )
    by_columns = header.fortran_order and len(header.shape) > 1
    return _Array(header, None if start is None or by_columns else start + header.length)


def _count(arrays: dict[str, _Array], path: str) -> int:
    if not arrays:
        raise ModelError(f"{path}: has no arrays")
    counts = {name: array.count for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise ModelError(f"{path}: its arrays have different numbers of items along the first axis: {listed}")
    return next(iter(counts.values()))
