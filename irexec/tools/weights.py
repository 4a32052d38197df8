"""Statistics of constants, in one pass over blocks of them: no constant is unpacked as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irexec.errors import IrexecError, ModelError
from irexec.html import Record, Records
from irexec.ir.constants import Constant, constant_blocks
from irexec.ir.graph import Graph


@dataclass(frozen=True)
class WeightLine(Record):
    """One constant and its statistics.

    Attributes:
        id, name: the layer.
        element, shape, bytes: as declared.
        min, max, mean, std: of the finite elements; None where there are none, and for strings.
        zeros: the part of the finite elements that is zero.
        not_finite: how many elements are NaN or infinite.
    """

    id: int
    name: str
    element: str
    shape: tuple[int, ...]
    bytes: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: float
    not_finite: int


@dataclass
class _Moments:
    """Count, mean and sum of squared deviations, merged block by block. Source: Chan, Golub and LeVeque 1979."""

    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    min: float = math.inf
    max: float = -math.inf
    zeros: int = 0
    not_finite: int = 0

    def add(self, block: np.ndarray) -> None:
        """Merge the elements of a block."""
        values = block.astype(np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            self.not_finite += int(values.size - np.count_nonzero(finite))
            values = values[finite]
        if values.size == 0:
            return
        self.min, self.max = min(self.min, float(values.min())), max(self.max, float(values.max()))
        self.zeros += int(values.size - np.count_nonzero(values))
        mean, count = float(values.mean()), values.size
        values -= mean
        values *= values
        self.deviation += float(values.sum())
        self._merge(mean, count)

    def _merge(self, mean: float, count: int) -> None:
        """Take in the mean of ``count`` more elements, whose squared deviations from it are already added."""
        total, shift = self.count + count, mean - self.mean
        if self.count:
            self.deviation += shift * shift * (self.count * count / total)
        self.mean = self.mean + shift * (count / total) if self.count else mean
        self.count = total


def weights(model: Graph, advance: Callable[[int], None] = lambda bytes: None) -> Records[WeightLine]:
    """Statistics of every constant of a model and its bodies.

    Args:
        model: any graph.
        advance: called after each block with its number of packed bytes.

    Raises:
        ModelError: a constant cannot be read; the message says which.
    """
    found = Records[WeightLine]()
    for node in model.walk():
        if node.constant is None:
            continue
        try:
            moments = _moments(node.constant, advance)
        except IrexecError as error:
            line = "" if node.line is None else f", line {node.line}"
            raise ModelError(f"layer {node.id} {node.name!r} (Constant{line}): {error}") from None
        found.append(_line(node.id, node.name, node.constant, moments))
    return found


def _moments(constant: Constant, advance: Callable[[int], None]) -> _Moments:
    moments = _Moments()
    for block in constant_blocks(constant):
        if block.dtype != object:
            # A value near the limit of f64 has a square beyond it, which is infinite then.
            with np.errstate(over="ignore", invalid="ignore"):
                moments.add(block)
        advance(constant.size * block.size // max(1, constant.count))
    return moments


def _line(id: int, name: str, constant: Constant, moments: _Moments) -> WeightLine:
    count = moments.count
    return WeightLine(
        id=id,
        name=name,
        element=constant.element.name,
        shape=constant.shape,
        bytes=constant.size,
        min=moments.min if count else None,
        max=moments.max if count else None,
        mean=moments.mean if count else None,
        std=math.sqrt(moments.deviation / count) if count else None,
        zeros=moments.zeros / count if count else 0.0,
        not_finite=moments.not_finite,
    )
