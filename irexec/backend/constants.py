"""Constants of a compiled model: where their values come from, and what kernels make of them once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.dims import Shape
from irexec.ir.facts import Fact

T = TypeVar("T")


class ConstantSource:
    """A constant whose value is computed when it is asked for, and not kept here.

    Args:
        element, shape: of the value.
        compute: gives the value: an array of the element's carrier that nobody changes. It may be a view of the mapped .bin,
            or be unpacked or computed anew on every call.
        stored: bytes that are held or mapped whether the value is asked for or not.
    """

    def __init__(self, element: Element, shape: Shape, compute: Callable[[], np.ndarray], stored: int = 0) -> None:
        self.element, self.shape, self._compute, self.stored = element, tuple(shape), compute, stored

    @staticmethod
    def of(array: np.ndarray, element: Element) -> ConstantSource:
        """The constant of an array in memory."""
        return ConstantSource(element, array.shape, lambda: array, array.nbytes)

    @property
    def fact(self) -> Fact:
        """Element type and shape, without the value."""
        return Fact(self.element, self.shape)

    def array(self) -> np.ndarray:
        """The value."""
        return self._compute()


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: tuple[T] | None = None


class ConstantStore:
    """What kernels made of constants, by constants and packing; it belongs to a compiled model.

    Every plan, session and thread shares it, so that nothing is packed or held twice.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry[Any]] = {}
        self._sources: list[ConstantSource] = []
        self._lock = threading.Lock()

    def get(self, sources: Sequence[ConstantSource], packing: Hashable, make: Callable[..., T]) -> T:
        """``make`` of the values of ``sources``, made once for each combination of sources and packing.

        Threads that ask for the same at once wait for the first; for something else they do not.
        """
        key = (tuple(map(id, sources)), packing)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                # The key is made of identities, which stay theirs only as long as the sources live.
                self._sources.extend(sources)
        with entry.lock:
            if entry.made is None:
                entry.made = (make(*(source.array() for source in sources)),)
            return entry.made[0]

    def array(self, source: ConstantSource) -> np.ndarray:
        """The value itself, kept."""
        return self.get([source], "as it is", lambda array: array)

    def holds(self, sources: Sequence[ConstantSource], packing: Hashable) -> bool:
        """Whether that packing is made already."""
        return (tuple(map(id, sources)), packing) in self._entries

    def entries(self) -> list[tuple[Hashable, Any]]:
        """Each packing and what was made, for reports and tests."""
        with self._lock:
            return [(key[1], entry.made[0]) for key, entry in self._entries.items() if entry.made is not None]  # type: ignore[index]
