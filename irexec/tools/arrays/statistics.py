"""Statistics of tensors, in one pass over blocks of them: nothing is converted or unpacked as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from irexec.errors import IrexecError, ModelError
from irexec.ir.constants import constant_blocks
from irexec.ir.graph import Node
from irexec.messages import silent
from irexec.records import Record

BLOCK = 1 << 17
"""Elements that are looked at together."""


@dataclass(frozen=True)
class Statistics(Record):
    """Statistics of a tensor.

    Attributes:
        count: number of elements.
        min, max, mean, std: of the finite elements; None where there are none, and for strings. Integers beyond 2^53
            are rounded.
        zeros: number of elements that are zero.
        nans, infinities, negative_infinities: numbers of elements that are NaN, +inf and -inf.
    """

    count: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    zeros: int = 0
    nans: int = 0
    infinities: int = 0
    negative_infinities: int = 0

    @property
    def not_finite(self) -> int:
        """Number of elements that are NaN or infinite."""
        return self.nans + self.infinities + self.negative_infinities

    @property
    def finite(self) -> int:
        """Number of finite elements; 0 for strings."""
        return 0 if self.min is None else self.count - self.not_finite


@dataclass
class Moments:
    """Count, mean and sum of squared deviations, merged block by block. Source: Chan, Golub and LeVeque 1979."""

    count: int = 0
    finite: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    min: float = math.inf
    max: float = -math.inf
    zeros: int = 0
    nans: int = 0
    infinities: int = 0
    negative_infinities: int = 0

    def add(self, block: np.ndarray) -> None:
        """Merge the elements of a block; of strings only their number is known."""
        self.count += block.size
        if block.dtype == object:
            return
        # A value near the limit of f64 has a square beyond it, which is infinite then.
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._finite(block.astype(np.float64))
            if values.size:
                self._merge(values)

    def _finite(self, values: np.ndarray) -> np.ndarray:
        finite = np.isfinite(values)
        if finite.all():
            return values
        self.nans += int(np.count_nonzero(np.isnan(values)))
        self.infinities += int(np.count_nonzero(values == np.inf))
        self.negative_infinities += int(np.count_nonzero(values == -np.inf))
        return values[finite]

    def _merge(self, values: np.ndarray) -> None:
        """Take in finite values, which are overwritten."""
        self.min, self.max = min(self.min, float(values.min())), max(self.max, float(values.max()))
        self.zeros += int(values.size - np.count_nonzero(values))
        mean, count = float(values.mean()), values.size
        values -= mean
        values *= values
        self.deviation += float(values.sum())
        total, shift = self.finite + count, mean - self.mean
        if self.finite:
            self.deviation += shift * shift * (self.finite * count / total)
        self.mean = self.mean + shift * (count / total) if self.finite else mean
        self.finite = total

    def statistics(self) -> Statistics:
        """The statistics of the elements so far."""
        counts = self.zeros, self.nans, self.infinities, self.negative_infinities
        if not self.finite:
            return Statistics(self.count, None, None, None, None, *counts)
        return Statistics(self.count, self.min, self.max, self.mean, math.sqrt(self.deviation / self.finite), *counts)


def statistics(array: np.ndarray) -> Statistics:
    """The statistics of an array of any type; of strings there is only their number."""
    moments = Moments()
    for block in array_blocks(array):
        moments.add(block)
    return moments.statistics()


def constant_statistics(node: Node, advance: Callable[[int], None] = silent) -> Statistics:
    """The statistics of a Constant, of its values as they are stored.

    Args:
        node: the layer.
        advance: called after each block with its number of packed bytes.

    Raises:
        ModelError: it cannot be read; the message says which it is.
    """
    moments, constant = Moments(), node.constant
    for block in blocks_of(node):
        moments.add(block)
        if constant is not None:
            advance(constant.size * block.size // max(1, constant.count))
    return moments.statistics()


def array_blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The elements of an array in some order, in blocks of one dimension."""
    flat = array.ravel(order="K") if array.flags.forc else array.reshape(-1)
    for first in range(0, flat.size, BLOCK):
        yield flat[first : first + BLOCK]


def blocks_of(node: Node) -> Iterator[np.ndarray]:
    """The values of a Constant in order, in blocks of one dimension; raises ModelError, which names the layer, if it
    cannot be read."""
    if node.constant is None:
        raise ModelError(f"layer {node.id} {node.name!r} ({node.type}) is not a Constant")
    try:
        yield from constant_blocks(node.constant, BLOCK)
    except IrexecError as error:
        line = "" if node.line is None else f", line {node.line}"
        raise ModelError(f"layer {node.id} {node.name!r} (Constant{line}): {error}") from None
