"""The results of one run, and arrays by name in short, for a repr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.model import Port, expected
from irexec.errors import InputError
from irexec.records import Shown

NamedArrays = Iterable[tuple[str, np.ndarray | None]]


def arrays_text(arrays: NamedArrays) -> str:
    """The type and shape of each: "'a': float32[1, 3], 'b': int64[]"."""
    return ", ".join(f"{name!r}: {type_and_shape(array)}" for name, array in arrays)


def type_and_shape(array: np.ndarray | None) -> str:
    """NumPy's name of the type, and the shape: "float32[1, 3]"; "nothing" for None."""
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"


class UnknownOutputError(InputError, KeyError):
    """No output has that name or position; also a KeyError, as mappings raise."""

    # KeyError quotes its message as if it were a key.
    __str__ = Exception.__str__


class Outputs(Shown, Mapping[str, np.ndarray]):
    """The results of one run, in the order of the model's Results, none of them left out.

    It is a mapping by name; ``[]`` also takes any other name of a Result, a position, and a Port such as
    ``compiled.output(0)``.
    """

    def __init__(self, ports: Sequence[Port], arrays: Sequence[np.ndarray]) -> None:
        self._ports = list(ports)
        self._arrays = list(arrays)
        self._by_name = {port.name: array for port, array in zip(ports, arrays, strict=True)}

    def __getitem__(self, key: str | int | Port) -> np.ndarray:
        if isinstance(key, Port):
            key = key.name
        if isinstance(key, int):
            if not -len(self._arrays) <= key < len(self._arrays):
                raise UnknownOutputError(
                    f"there is no output {key}: the model has {len(self._arrays)} ({expected(self._ports)})"
                )
            return self._arrays[key]
        if key in self._by_name:
            return self._by_name[key]
        for port, array in zip(self._ports, self._arrays, strict=True):
            if key in port.names:
                return array
        raise UnknownOutputError(f"there is no output {key!r}: the model has {expected(self._ports)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Outputs({arrays_text(self.items())})"
