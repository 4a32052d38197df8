"""Histograms of tensors and constants, computed block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from irexec import display
from irexec.display import Content
from irexec.errors import InputError
from irexec.ir.dims import shape_text
from irexec.ir.graph import Graph, Node
from irexec.messages import counted, silent
from irexec.records import Report
from irexec.reference.indexing import as_indices
from irexec.tools.arrays.statistics import BLOCK, Moments, Statistics, array_blocks, blocks_of

BINS = 20
"""Default number of intervals."""

_MAX_BINS = 10_000


@dataclass(frozen=True)
class Histogram(Report):
    """How the elements of a tensor are distributed.

    Attributes:
        name: of the tensor.
        element: its element type: of a constant as it is stored.
        shape: its sizes.
        edges: the bounds of the intervals, one more than these. Each holds its lower bound, of floats the last one
            both. Empty without finite elements, and for strings.
        counts: number of elements in each interval. NaN and infinities are in none.
        zero: the interval that holds 0; None if none does.
        are_integers: whether the elements are integers or booleans: an interval ends before its upper bound then.
        statistics: of all elements; ``statistics.zeros`` counts the zeros, which are in an interval as well.
    """

    name: str
    element: str
    shape: tuple[int, ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    zero: int | None
    are_integers: bool
    statistics: Statistics

    @property
    def are_values(self) -> bool:
        """Whether each interval holds a single value, its lower bound."""
        return self.are_integers and len(self.edges) > 1 and self.edges[1] - self.edges[0] == 1

    def __repr__(self) -> str:
        return (
            f"<Histogram {self.name!r}: {self.statistics.count:,} elements in {counted(len(self.counts), 'interval')}>"
        )

    def sections(self) -> list[Content]:
        """A title, a bar for each interval, and what is in none of the intervals."""
        chart = None
        if self.edges:
            zeros = self.statistics.zeros
            lighter = [zeros if i == self.zero else 0 for i in range(len(self.counts))]
            labels, low, high = _labels(self), self.edges[0], self.edges[-1]
            chart = display.HistogramChart(
                self.counts, low, high, labels, () if self.are_values else lighter, is_large=True
            )
        return [title(self), chart, remarks(self)]


def histogram(array: np.ndarray, bins: int = BINS, *, name: str = "") -> Histogram:
    """The histogram of an array.

    Args:
        array: of any type; of strings only their number is counted.
        bins: maximum number of intervals, which have equal width. Integers in a range that is not larger have one for
            each value.
        name: of the tensor.

    Raises:
        InputError: ``bins`` is not an integer from 1 to 10000.
    """
    kind = "string" if array.dtype == object else str(array.dtype)
    return _histogram(lambda: array_blocks(array), bins, name, kind, array.shape)


def constant_histogram(node: Node, bins: int = BINS, advance: Callable[[int], None] = silent) -> Histogram:
    """The histogram of a Constant, of its values as they are stored; see ``histogram``.

    Args:
        node, bins: the layer, and how many intervals at most.
        advance: called with its packed bytes when it is done.

    Raises:
        InputError: ``bins`` is not an integer from 1 to 10000.
        ModelError: the constant cannot be read.
    """
    constant = node.constant
    if constant is None:
        raise InputError(
            f"layer {node.id} {node.name!r} is of type {node.type}, expected a Constant: "
            "infer shows the histograms of others"
        )
    found = _histogram(lambda: blocks_of(node), bins, node.name, constant.element.name, constant.shape)
    advance(constant.size)
    return found


def find_constant(model: Graph, name: str) -> Node:
    """The Constant with a layer name, tensor name or layer id, in a body too; of several the first.

    Raises:
        InputError: there is none, or the name is that of another layer.
    """
    others = []
    for node in model.walk():
        if name in (node.name, str(node.id)) or any(name in value.names for value in node.outputs):
            if node.constant is not None:
                return node
            others.append(node)
    if others:
        raise InputError(
            f"{name!r} is a {others[0].type}, not a Constant: "
            "irexec infer --tensor NAME --histogram shows what it computes"
        )
    raise InputError(f"there is no constant {name!r}; irexec inspect --weights lists those that there are")


def _histogram(
    blocks: Callable[[], Iterable[np.ndarray]], bins: int, name: str, element: str, shape: tuple[int, ...]
) -> Histogram:
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= _MAX_BINS:
        raise InputError(f"bins is {bins!r}, expected an integer from 1 to {_MAX_BINS}")
    moments, low, high = Moments(), None, None
    kind = ""
    # A small tensor is not read and unpacked again for the second pass.
    held = list(blocks()) if math.prod(shape) <= BLOCK else None
    for block in blocks() if held is None else held:
        moments.add(block)
        kind = block.dtype.kind
        finite = block if kind in "iub" else block[np.isfinite(block)] if kind == "f" else block[:0]
        if finite.size:
            lowest, highest = finite.min().item(), finite.max().item()
            low, high = (lowest, highest) if low is None or high is None else (min(low, lowest), max(high, highest))
    found = moments.statistics()
    if low is None or high is None:
        return Histogram(name, element, shape, (), (), None, False, found)
    counter = _Floats(low, high, bins) if kind == "f" else _Integers(int(low), int(high), bins)
    for block in blocks() if held is None else held:
        counter.add(block)
    edges = counter.edges
    zero = next((i for i in range(len(edges) - 1) if edges[i] <= 0 < edges[i + 1]), None)
    if zero is None and edges[-1] == 0:
        zero = len(edges) - 2
    return Histogram(
        name, element, shape, tuple(edges), tuple(counter.counts.tolist()), zero, counter.are_integers, found
    )


class _Integers:
    """Counts integers and booleans, exactly also beyond 2^53: intervals are a whole number of values wide."""

    are_integers = True

    def __init__(self, low: int, high: int, bins: int) -> None:
        self._low, self._width = low, -(-(high - low + 1) // bins)
        count = -(-(high - low + 1) // self._width)
        self.edges: list[float] = [low + i * self._width for i in range(count + 1)]
        self.counts = np.zeros(count, np.int64)

    def add(self, block: np.ndarray) -> None:
        """Count the elements of a block."""
        # Differences to the minimum fit 64 bits without a sign, whatever the type: arithmetic is modulo 2^64.
        above = block.astype(np.int64 if block.dtype.kind == "i" else np.uint64).view(np.uint64) - np.uint64(
            self._low % (1 << 64)
        )
        bins = above // np.uint64(self._width) if self._width < 1 << 64 else np.zeros_like(above)
        self.counts += np.bincount(as_indices(bins), minlength=self.counts.size)


class _Floats:
    """Counts finite floats. Where f64 has no width for the intervals, as between neighbours, there is only one."""

    are_integers = False

    def __init__(self, low: float, high: float, bins: int) -> None:
        # The width of the range may be beyond f64, but not that of the range of quarters.
        self._scale = 0.25 if max(abs(low), abs(high)) > 1e307 else 1.0
        self._low, self._high = low * self._scale, high * self._scale
        edges = np.linspace(self._low, self._high, bins + 1)
        if not (np.diff(edges) > 0).all() or (self._high - self._low) / bins < np.finfo(np.float64).tiny:
            edges = np.array([self._low, self._high])
        self.edges: list[float] = [low, *(edges[1:-1] / self._scale).tolist(), high]
        self.counts = np.zeros(edges.size - 1, np.int64)

    def add(self, block: np.ndarray) -> None:
        """Count the finite elements of a block."""
        values = block[np.isfinite(block)].astype(np.float64) * self._scale
        if self.counts.size == 1:
            self.counts += values.size
        else:
            self.counts += np.histogram(values, self.counts.size, (self._low, self._high))[0]


def title(found: Histogram) -> str:
    """The first line of a histogram: the tensor and its statistics."""
    s = found.statistics
    text = f"{found.name or 'tensor'}: {found.element}{shape_text(found.shape)}, {counted(s.count, 'element')}"
    return text if s.mean is None or s.std is None else f"{text}, mean {s.mean:.4g}, standard deviation {s.std:.4g}"


def remarks(found: Histogram) -> list[str]:
    """A line about values that the bars do not show: zeros, NaN and infinities."""
    s = found.statistics
    counts = (
        ("zero (drawn lighter)", 0 if found.are_values else s.zeros),
        ("NaN", s.nans),
        ("inf", s.infinities),
        ("-inf", s.negative_infinities),
    )
    parts = [f"{count:,} ({count / s.count:.1%}) {name}" for name, count in counts if count]
    if not s.count:
        return ["there are no elements"]
    if not found.edges:
        parts.append("no element is finite" if s.not_finite else "strings have no histogram")
    return ["; ".join(parts)] if parts else []


def _labels(found: Histogram) -> list[str]:
    if found.element in ("boolean", "bool"):
        return [("false", "true")[int(edge)] for edge in found.edges[:-1]]
    if found.are_values:
        return [f"{edge:.0f}" for edge in found.edges[:-1]]
    if found.are_integers and found.statistics.max is not None and max(map(abs, found.edges)) < 1e9:
        highest = found.statistics.max
        pairs = [(f"{a:.0f}", f"{min(b - 1, highest):.0f}") for a, b in pairwise(found.edges)]
        return _ranges(pairs)
    texts = [f"{edge:.4g}" for edge in found.edges]
    if len(set(texts)) < len(texts):
        texts = [f"{edge:.9g}" for edge in found.edges]
    return _ranges(list(pairwise(texts)))


def _ranges(pairs: list[tuple[str, str]]) -> list[str]:
    low, high = max((len(a) for a, _ in pairs), default=0), max((len(b) for _, b in pairs), default=0)
    return [f"{a:>{low}} .. {b:>{high}}" for a, b in pairs]
