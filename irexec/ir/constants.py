"""Constants: a lazy view on packed bytes. Nothing is read or unpacked until asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from irexec.errors import ModelError
from irexec.ir.elements import Element


@dataclass(eq=False)
class Constant:
    """Packed bytes of an element type and shape, fetched only when asked for.

    Attributes:
        element: the element type.
        shape: the sizes, all known.
        fetch: returns the packed bytes as a uint8 array of one dimension (a view on the mapped
            .bin, or what the builder made); raises ModelError if the range is not in the file.
        offset: where the bytes stand in the .bin; None for a constant that was not read from one.
        size: the number of packed bytes that are declared.
    """

    element: Element
    shape: tuple[int, ...]
    fetch: Callable[[], np.ndarray] = field(repr=False)
    size: int
    offset: int | None = None

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def raw(self) -> np.ndarray:
        """The packed bytes: uint8, one dimension, read-only."""
        data = self.fetch()
        if data.nbytes < self.size:
            raise ModelError(f"constant of {self.size} bytes has only {data.nbytes}")
        return data
