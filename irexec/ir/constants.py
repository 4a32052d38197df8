"""Constants: packed bytes that are read and unpacked only when asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from irexec.dtypes.elements import Element, packed_size, unpack
from irexec.errors import ModelError, OpError
from irexec.ir.dims import HIGHEST_RANK


@dataclass(frozen=True, eq=False, slots=True)
class BytesInMemory:
    """The packed bytes of a constant that is in memory, as ``Constant.fetch``; it can be pickled."""

    data: np.ndarray

    def __call__(self) -> np.ndarray:
        """The bytes: uint8, one dimension."""
        return self.data


@dataclass(eq=False, slots=True)
class Constant:
    """Packed bytes of an element type and shape, fetched only when asked for.

    Attributes:
        element: the element type.
        shape: the sizes, all known.
        fetch: returns the packed bytes as a uint8 array of one dimension (a view on the mapped
            .bin, or ``BytesInMemory``); raises ModelError if they cannot be read.
        size: the number of packed bytes that are declared.
        offset: the position of the bytes in the .bin; None for a constant that was not read from one.
        is_readable: whether the bytes are in the file; without them, only type and shape are known.
    """

    element: Element
    shape: tuple[int, ...]
    fetch: Callable[[], np.ndarray] = field(repr=False)
    size: int
    offset: int | None = None
    is_readable: bool = True

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def raw(self) -> np.ndarray:
        """The packed bytes: uint8, one dimension, read-only."""
        data = self.fetch()
        if data.nbytes < self.size:
            raise ModelError(f"the constant has {data.nbytes} bytes, expected {self.size}")
        return data

    @property
    def contents(self) -> np.ndarray:
        """The bytes of the elements, as ``raw``; a constant without elements has none, even if it declares one."""
        return self.raw[: self.size if self.count else 0]


def release(constant: Constant) -> None:
    """The bytes of a constant are not needed for now: a mapped file gives their memory back."""
    given_back = getattr(constant.fetch, "release", None)
    if given_back is not None:
        given_back()


def constant_value(constant: Constant) -> np.ndarray:
    """The constant unpacked into its element's carrier, in its shape; read-only.

    Raises:
        ModelError: its bytes cannot be read, or are not as many as shape and type take.
    """
    wrong = size_problem(constant)
    if wrong is not None:
        raise ModelError(wrong)
    element = constant.element
    try:
        value = unpack(element, constant.contents, constant.count).reshape(constant.shape)
    except OpError as error:
        raise ModelError(str(error)) from None
    value.flags.writeable = False
    return value


def constant_blocks(constant: Constant, block: int = 1 << 17) -> Iterator[np.ndarray]:
    """The elements of a constant in order, unpacked block by block, so that little memory is needed; read-only or
    copies.

    Args:
        constant: any constant; one of strings is a single block.
        block: elements of a block; a multiple of 8, so that blocks of packed types start at a byte.

    Raises:
        ModelError: as ``constant_value``.
    """
    if constant.element.kind == "string":
        yield constant_value(constant).reshape(-1)
        return
    wrong = size_problem(constant)
    if wrong is not None:
        raise ModelError(wrong)
    element, raw = constant.element, constant.raw
    for first in range(0, constant.count, block):
        count = min(block, constant.count - first)
        start = packed_size(element, first)
        yield unpack(element, raw[start : start + packed_size(element, count)], count)


def size_problem(constant: Constant) -> str | None:
    """Problem of the declared shape or number of bytes; None if there is none.

    The size of strings follows from their bytes. A constant without elements may have one byte:
    OpenVINO 2026.4.1 writes it so unless the constant was made of a tensor.
    """
    element = constant.element
    if len(constant.shape) > HIGHEST_RANK:
        return f"has rank {len(constant.shape)}, and at most {HIGHEST_RANK} are possible"
    if element.kind == "string":
        return None
    needed = packed_size(element, constant.count)
    if constant.size == needed or (constant.count == 0 and constant.size == 1):
        return None
    return f"has {constant.size} bytes, {element}[{','.join(map(str, constant.shape))}] takes {needed}"
