"""The arrays of an item, by the names of the model's inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irexec.analysis.model import Port, expected, find_port
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.tools.arrays.items import ArrayItems
from irexec.tools.batch.items import Item
from irexec.tools.batch.predictor import Predictor
from irexec.tools.batch.tables import ParquetTable, unwrapped
from irexec.tools.images.files import Notify
from irexec.tools.images.images import ImageOptions, read_image


class ItemReader:
    """Reads items. The file of the last item stays open, since the next is most often in it, too.

    Attributes:
        notify: takes what the user might not expect.
    """

    def __init__(self, predictor: Predictor, image: ImageOptions, column: str | None, memory: MemoryLimit) -> None:
        self._ports, self._image, self._column, self._memory = predictor.inputs, image, column, memory
        self._batching = predictor.batching
        self._open: tuple[str, ArrayItems | ParquetTable] | None = None
        self.notify: Notify = lambda text: None

    def read(self, item: Item) -> dict[str, np.ndarray]:
        """The arrays of an item.

        Raises:
            ModelError: its file cannot be read.
            InputError: it does not fit the model's inputs.
            UnsupportedError: a package is not installed that reads it.
        """
        if item.kind == "image":
            return self._from_image(item.path, None)
        file = self._file(item)
        if isinstance(file, ParquetTable):
            return self.from_value(item.name, file.value(item.index))
        arrays = file.item(item.index)
        if list(arrays) == [""]:
            return {self._only_port(item.path).name: arrays[""]}
        return {find_port(self._ports, name).name: array for name, array in arrays.items()}

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _from_image(self, path: str, content: bytes | np.ndarray | None) -> dict[str, np.ndarray]:
        port = self._only_port(path)
        if self._batching.has_axis and port.shape:
            port = replace(port, shape=(1, *port.shape[1:]))
        return {port.name: read_image(path, port, self._image, self.notify, self._memory, content)}

    def from_value(self, name: str, value: Any) -> dict[str, np.ndarray]:
        """The array of the only input: the bytes of an image, or a value or list that is an array.

        Args:
            name: the name of the item in messages.
            value: of it.

        Raises:
            ModelError, InputError, UnsupportedError: as for ``read``.
        """
        value = unwrapped(value)
        port = self._only_port(name)
        if isinstance(value, bytes) and not _is_text(port):
            return self._from_image(name, value)
        return {port.name: self.array(name, port, value)}

    def from_pixels(self, name: str, pixels: np.ndarray) -> dict[str, np.ndarray]:
        """The array of the only input for a decoded image: uint8, [height, width] or [height, width, channels].

        Raises:
            InputError: as for ``read``, or it is not an image.
        """
        return self._from_image(name, pixels)

    @staticmethod
    def array(name: str, port: Port, value: Any) -> np.ndarray:
        """The array of an input for a value, or lists of them, in the type that an item's array has.

        Raises:
            InputError: it is not an array.
        """
        if value is None:
            raise InputError(f"{name}: has no value for input {port}")
        try:
            array = np.array(_dense(value), object if _is_text(port) else None)
        except ValueError as error:
            raise InputError(f"{name}: is not an array: {error}") from None
        if array.dtype.kind == "f" and port.element is not None and port.element.is_float:
            # The values of a column have lost its type, and Python has no other floats than those of 64 bits.
            with np.errstate(all="ignore"):
                array = array.astype(port.element.carrier, copy=False)
        return array

    def _only_port(self, path: str) -> Port:
        if len(self._ports) != 1:
            raise InputError(
                f"{path} is for one input, and the model has {expected(self._ports)}: a .npz has an array for each"
            )
        return self._ports[0]

    def _file(self, item: Item) -> ArrayItems | ParquetTable:
        if self._open is None or self._open[0] != item.path:
            self.close()
            self._open = (
                item.path,
                ParquetTable(item.path, self._column) if item.kind == "table" else ArrayItems(item.path, self._memory),
            )
        return self._open[1]


def _is_text(port: Port) -> bool:
    return port.element is not None and port.element.kind == "string"


def _dense(value: Any) -> Any:
    """Lists in place of arrays of arrays, as which pyarrow gives a column of lists of lists."""
    return [_dense(each) for each in value] if isinstance(value, np.ndarray) and value.dtype == object else value
