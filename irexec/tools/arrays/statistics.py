"""Statistics and histograms of tensors, computed block by block: nothing is converted or unpacked as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from irexec import display
from irexec.display import Content
from irexec.errors import InputError, IrexecError, ModelError
from irexec.ir.constants import constant_blocks
from irexec.ir.dims import shape_text
from irexec.ir.graph import Graph, Node
from irexec.ir.order import similar
from irexec.messages import counted, silent
from irexec.records import Record, Report
from irexec.reference.indexing import as_indices

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
            values = block.astype(np.float64)
            finite = np.isfinite(values)
            if not finite.all():
                self.nans += int(np.count_nonzero(np.isnan(values)))
                self.infinities += int(np.count_nonzero(values == np.inf))
                self.negative_infinities += int(np.count_nonzero(values == -np.inf))
                values = values[finite]
            if values.size:
                self._merge(values)

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
        intervals = counted(len(self.counts), "interval")
        return f"<Histogram {self.name!r}: {self.statistics.count:,} elements in {intervals}>"

    def sections(self) -> list[Content]:
        """A title, a bar for each interval, and what is in none of the intervals."""
        chart = None
        if self.edges:
            zeros, ends = self.statistics.zeros, (self.edges[0], self.edges[-1])
            lighter = () if self.are_values else [zeros if i == self.zero else 0 for i in range(len(self.counts))]
            chart = display.HistogramChart(self.counts, *ends, _labels(self), lighter, is_large=True)
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
    near = similar(name, [node.name for node in model.walk() if node.constant is not None])
    raise InputError(f"there is no constant {name!r}{near or '; irexec inspect --weights lists those that there are'}")


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
