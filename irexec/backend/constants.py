"""Constants of a compiled model: the sources of their values, and the packed constants that kernels make of them."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.constants import Constant, release
from irexec.ir.facts import Fact
from irexec.ir.process import new_lock

T = TypeVar("T")

Holding = Literal["packed", "bytes", "unpacked"]
"""Forms in which kernels hold compressed weights: as stored, one byte for each weight, or as f32."""

AS_IT_IS = "as it is"
"""The packing of a constant that is read without being changed."""


class ConstantSource:
    """A constant whose value is computed when it is asked for, and not kept here.

    Args:
        element, shape: of the value.
        compute: gives the value: an array of the element's carrier that nobody changes. It may be a view of the mapped
            .bin, or be unpacked or computed anew on every call.

    Attributes:
        raw: the packed bytes, where the constant is a layer of the model, or by ``hold_bytes``.
        made_of: the constants that it is computed from.
    """

    def __init__(self, element: Element, shape: tuple[int, ...], compute: Callable[[], np.ndarray]) -> None:
        self.element, self.shape, self._compute = element, tuple(shape), compute
        self._small: np.ndarray | None = None
        self.raw: Constant | None = None
        self.made_of: tuple[ConstantSource, ...] = ()

    @staticmethod
    def of(array: np.ndarray, element: Element) -> ConstantSource:
        """The constant of an array in memory."""
        return ConstantSource(element, array.shape, lambda: array)

    @property
    def fact(self) -> Fact:
        """Element type and shape, without the value."""
        return Fact(self.element, self.shape)

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return math.prod(self.shape) * np.dtype(self.element.carrier).itemsize

    def hold_bytes(self) -> None:
        """Let a computed value of 8 bits be read as the bytes of a layer are, computed again for each reader."""
        compute = self._compute
        self.raw = Constant(
            self.element, self.shape, lambda: np.ascontiguousarray(compute()).view(np.uint8).reshape(-1), self.size
        )

    def small(self, limit: int) -> np.ndarray | None:
        """The value if it has at most ``limit`` bytes; it is kept."""
        if self.size > limit:
            return None
        if self._small is None:
            self._small = self._compute()
        return self._small

    def array(self) -> np.ndarray:
        """The value."""
        return self._compute() if self._small is None else self._small

    def release(self) -> None:
        """Release the memory of a mapped .bin after packing; the value is read again on the next request."""
        if self.raw is not None:
            release(self.raw)
        for source in self.made_of:
            source.release()


_Key = tuple[tuple[int, ...], Hashable]


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = new_lock()
        self.made: tuple[T] | None = None


class ConstantStore:
    """Packed constants of a compiled model, by source and packing.

    Every plan, session and thread shares it, so that nothing is packed or held twice. What was made of a constant is
    released with the constant, which is when no plan reads it.

    Attributes:
        packed: number of packings made so far; an estimate where threads pack at once.
    """

    def __init__(self) -> None:
        self.packed = 0
        self._entries: dict[_Key, _Entry[Any]] = {}
        self._keys: dict[int, set[_Key]] = {}
        self._dead: deque[int] = deque()
        self._lock = new_lock()

    def get(self, sources: Sequence[ConstantSource], packing: Hashable, make: Callable[..., T]) -> T:
        """``make`` of the values of ``sources``, made once for each combination of sources and packing.

        Threads that ask for the same at once wait for the first; for something else they do not.
        """
        key = (tuple(map(id, sources)), packing)
        with self._lock:
            self._purge()
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                for source in sources:
                    # Release the packings of a source when it dies: its identity may be reused.
                    if id(source) not in self._keys:
                        self._keys[id(source)] = set()
                        weakref.finalize(source, self._source_died, id(source)).atexit = False
                    self._keys[id(source)].add(key)
        with entry.lock:
            if entry.made is None:
                entry.made = (make(*(source.array() for source in sources)),)
                self.packed += 1
                for source in sources:
                    source.release()
            return entry.made[0]

    def _source_died(self, identity: int) -> None:
        """Called wherever the garbage collector runs, which may be while this or another thread holds the lock: then
        the next call that takes it releases what was made."""
        self._dead.append(identity)
        if self._lock.acquire(blocking=False):
            try:
                self._purge()
            finally:
                self._lock.release()

    def _purge(self) -> None:
        """Release the packings of dead sources; called with the lock held."""
        while self._dead:
            for key in self._keys.pop(self._dead.popleft(), ()):
                self._entries.pop(key, None)
                for identity in key[0]:
                    self._keys.get(identity, set()).discard(key)

    def array(self, source: ConstantSource) -> np.ndarray:
        """The value itself, kept."""
        return self.get([source], AS_IT_IS, lambda array: array)

    def made(self) -> list[tuple[Hashable, Any]]:
        """Each packing and its value, for reports and tests."""
        with self._lock:
            self._purge()
            return [(packing, entry.made[0]) for (_, packing), entry in self._entries.items() if entry.made is not None]
