"""Weights of convolutions, packed once where they are constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.kernel import Kernel
from irexec.backend.products import LANES

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights in the form that a kernel multiplies.

    Attributes:
        array: an array or several, made of the weights, or of the rows that differ.
        rows: outputs of a group that are computed.
        spread: for each output channel the row that it equals; None if every channel has a row of its own.
    """

    array: Any
    rows: int
    spread: np.ndarray | None = None


def some_panels(weights: np.ndarray, outputs: slice) -> np.ndarray:
    """Weights (..., panels, I, outputs of a panel) of some outputs; whole panels if there are several."""
    width = weights.shape[-1]
    if weights.shape[-3] == 1:
        return weights[..., outputs]
    return weights[..., outputs.start // width : outputs.stop // width, :, :]


def split_outputs(outputs: int, panel: int, parts: int) -> list[slice]:
    """The outputs in ``parts`` ranges of whole panels, or in one range where they cannot be split."""
    unit = panel if panel < outputs else LANES
    units = outputs // unit
    if outputs % unit or units < parts:
        return [slice(0, outputs)]
    edges = [units * i // parts * unit for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def shared(parts: list[T], shares: int) -> list[list[T]]:
    """Parts of a product that follow each other, a list for each share at most.

    A block computes those of one list: it reads the data and runs the chain once. A product for each part, and not one
    for all, has the same bits on any number of threads.
    """
    count = min(shares, len(parts))
    return [parts[len(parts) * i // count : len(parts) * (i + 1) // count] for i in range(count)]


def span(ranges: Sequence[slice]) -> slice:
    """Ranges that follow each other as one."""
    return slice(ranges[0].start, ranges[-1].stop)


def relative(part: slice, whole: slice) -> slice:
    """The part as a range of ``whole``."""
    return slice(part.start - whole.start, part.stop - whole.start)


class FilterWeights:
    """One filter, which may be a constant or an input.

    Args:
        source: the constant; None for an input.
        packing: key of what ``make`` makes.
        make: packs an array of ``shape`` and ``dtype``.
        shape: (groups, outputs, inputs, kernel...) or (groups, inputs, outputs, kernel...).
        dtype: the type to compute in.
        share: whether equal outputs, the second axis of ``shape``, are computed once.
    """

    def __init__(
        self,
        source: ConstantSource | None,
        packing: Hashable,
        make: Callable[[np.ndarray], Any],
        shape: tuple[int, ...],
        dtype: np.dtype,
        share: bool = True,
    ) -> None:
        self._source, self._make, self._shape, self._dtype = source, make, shape, dtype
        self._share = share and shape[0] == 1
        self._key = ("convolution", packing, shape, dtype)
        self._packed: Packed | None = None

    @property
    def is_constant(self) -> bool:
        return self._source is not None

    def pack(self, store: ConstantStore) -> None:
        """Pack a constant, once for each compiled model."""
        if self._source is not None:
            self._packed = store.get([self._source], self._key, self._pack_constant)

    def packed(self, filter: np.ndarray | None) -> Packed:
        """The packed constant, or the packed input."""
        if self._packed is not None:
            return self._packed
        if filter is None:
            raise AssertionError("constant weights are packed before a run")
        return Packed(self._make(self._typed(filter)), self._shape[1])

    def _typed(self, filter: np.ndarray) -> np.ndarray:
        return filter.astype(self._dtype, copy=False).reshape(self._shape)

    def _pack_constant(self, filter: np.ndarray) -> Packed:
        weights = self._typed(filter)
        first = equal_outputs(weights[0]) if self._share else None
        if first is None:
            return Packed(self._make(weights), self._shape[1])
        distinct = np.unique(first)
        return Packed(self._make(weights[:, distinct]), len(distinct), np.searchsorted(distinct, first))


class FilterKernel(Kernel):
    """A kernel with one filter, which a run does not read if it is a constant.

    Args:
        reads: the inputs beside the filter.
    """

    def __init__(self, algorithm: str, weights: FilterWeights, reads: tuple[int, ...] = (0,)) -> None:
        is_constant = weights.is_constant
        super().__init__(algorithm, reads=reads if is_constant else None, splits=True, records=is_constant)
        self.weights = weights

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)


# Values of a row that are compared before whole rows are.
_SAMPLE = 8


def equal_outputs(weights: np.ndarray) -> np.ndarray | None:
    """The first channel with the same weights as each output channel; None if most channels have their own weights.

    Equal channels are computed once, not only to save work: a product may round the rows of its blocks
    differently, and a later operation (a Softmax of very large values) may amplify the difference.
    """
    rows = weights.reshape(len(weights), -1)
    sample = rows[:, :: max(1, rows.shape[1] // _SAMPLE)]
    if 2 * len({row.tobytes() for row in sample}) > len(rows):
        return None
    seen: dict[bytes, int] = {}
    first = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(rows)]
    return np.array(first) if 2 * len(seen) <= len(first) else None
