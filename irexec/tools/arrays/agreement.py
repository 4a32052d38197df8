"""Whether two tensors agree: measures of their difference, and tolerances that decide by one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from irexec.display import Column, Table
from irexec.errors import InputError
from irexec.records import Record

Metric = Literal["max", "rel", "cosine", "snr"]
METRICS: tuple[Metric, ...] = get_args(Metric)

THRESHOLDS: dict[Metric, float] = {"rel": 1e-3, "cosine": 0.999, "snr": 30.0}
"""The default criterion: see Tolerance."""
_SAME_FILL, _FILL = 1e-3, 1e3
"""How near to each other the values are that a mask fills in, and how much larger than the others."""
_BLOCK = 1 << 18
"""Elements that are looked at at once, so that the measures of a large tensor take little memory."""


@dataclass(frozen=True)
class Tolerance:
    """The criterion for equal values.

    Attributes:
        metric: the measure of agreement. "max": every value has to be near that of the reference. "rel": the largest
            difference, divided by the largest magnitude of the reference, is at most the threshold. "cosine": the
            cosine of the angle between both tensors is at least the threshold. "snr": the ratio of the reference's
            power to that of the difference, in decibels, is at least the threshold.
        rtol, atol: of "max": ``|x - r| <= atol + rtol * |r|``.
        threshold: of the other metrics; see THRESHOLDS.
        scaled: ``atol`` is multiplied by the root of the mean square of the reference.
    """

    metric: Metric = "max"
    rtol: float = 1e-4
    atol: float = 1e-5
    threshold: float = 0.0
    scaled: bool = False

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "threshold"):
            value = getattr(self, name)
            if not math.isfinite(value) or (value < 0 and name != "threshold"):
                least = "" if name == "threshold" else " of at least 0"
                raise InputError(f"{name} is {value}, expected a finite value{least}")

    def __str__(self) -> str:
        """The condition, for people."""
        if self.metric == "max":
            return f"|b - a| <= {self.atol:g}{' rms(a)' if self.scaled else ''} + {self.rtol:g} |a|"
        if self.metric == "rel":
            return f"max |b - a| <= {self.threshold:g} max |a|"
        return f"cosine >= {self.threshold:g}" if self.metric == "cosine" else f"SNR >= {self.threshold:g} dB"


@dataclass(frozen=True)
class Agreement(Record):
    """One tensor against its reference.

    Attributes:
        name: the tensor.
        agrees: whether it is within the tolerance. Integers, booleans and texts have to be equal, integers within
            ``atol``.
        largest: the largest absolute difference, NaN if only NaN differ; None where the shapes differ or the values are
            not numbers.
        message: the difference; "" without one.
        relative: the largest difference divided by the largest magnitude of the reference.
        cosine: of the angle between both tensors; None where one of them is 0.
        snr: the power of the reference over that of the difference, in decibels; infinite where they are equal.
        differing: number of values outside of the tolerance "max"; of differing values for other metrics.
    """

    name: str
    agrees: bool
    largest: float | None
    message: str
    relative: float | None = None
    cosine: float | None = None
    snr: float | None = None
    differing: int = 0

    @property
    def equal(self) -> bool:
        """Whether every value is the same."""
        return self.agrees and (self.largest is None or self.largest == 0)


def agreements_table(agreements: Sequence[Agreement], title: str, state: str = "") -> Table:
    """Agreements of tensors; the titles are those of the names and of the states."""
    columns = [
        Column(title, "name", "code"),
        Column(state, lambda row: "agrees" if row.agrees else "differs"),
        Column("largest difference", "largest", "number"),
        Column("", "message", "sentence"),
    ]
    return Table(columns, agreements, what="tensors")


@dataclass
class _Sums:
    """The result after all blocks."""

    largest: float = 0.0
    nans: int = 0
    scale: float = 0.0
    dot: float = 0.0
    own: float = 0.0
    reference: float = 0.0
    difference: float = 0.0
    outside: int = 0
    first: int | None = field(default=None)

    @property
    def relative(self) -> float:
        if not self.largest:
            return 0.0
        return self.largest / self.scale if self.scale else math.inf

    @property
    def cosine(self) -> float | None:
        product = math.sqrt(self.own) * math.sqrt(self.reference)
        if not product or not math.isfinite(product):
            return None
        return max(-1.0, min(1.0, self.dot / product))

    @property
    def snr(self) -> float | None:
        if not self.difference:
            return math.inf
        ratio = self.reference / self.difference
        # An infinite difference leaves none.
        return 10 * math.log10(ratio) if ratio > 0 else -math.inf


def agreement_of(
    name: str, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance, other: str = "the reference"
) -> Agreement:
    """Whether a tensor agrees with its reference; NaN equals NaN, and infinities of the same sign are equal.

    Args:
        name: of the tensor.
        actual, reference: both.
        tolerance: the accepted difference.
        other: the name of the reference in messages.
    """
    if actual.shape != reference.shape:
        return Agreement(name, False, None, f"shape {list(actual.shape)}, {other} has {list(reference.shape)}")
    if actual.dtype.kind not in "fiub" or reference.dtype.kind not in "fiub":
        same = bool(np.all(actual.astype(str) == reference.astype(str)))
        return Agreement(name, same, None, "" if same else f"differs from {other}")
    exact = actual.dtype.kind in "iub" and reference.dtype.kind in "iub"
    sums = _measured(actual, reference, tolerance, exact=exact)
    largest = math.nan if sums.nans and not sums.largest else sums.largest
    agrees = _agrees(sums, tolerance, exact)
    message = "" if agrees else _message(actual, reference, sums, tolerance, exact, other)
    return Agreement(name, agrees, largest, message, sums.relative, sums.cosine, sums.snr, sums.outside)


def _agrees(sums: _Sums, tolerance: Tolerance, exact: bool) -> bool:
    if sums.nans or math.isinf(sums.largest):
        return False
    if exact or tolerance.metric == "max":
        return not sums.outside
    if not sums.largest:
        return True
    if tolerance.metric == "rel":
        return sums.relative <= tolerance.threshold
    found = sums.cosine if tolerance.metric == "cosine" else sums.snr
    return found is not None and found >= tolerance.threshold


def _message(
    actual: np.ndarray, reference: np.ndarray, sums: _Sums, tolerance: Tolerance, exact: bool, other: str
) -> str:
    where = np.unravel_index(sums.first or 0, actual.shape)
    at = f" at {[int(i) for i in where]}" if actual.ndim else ""
    mine, theirs = _texts(actual[where], reference[where])
    said = f"{mine}, {other} has {theirs}"
    if not exact and tolerance.metric != "max":
        value = {"rel": sums.relative, "cosine": sums.cosine, "snr": sums.snr}[tolerance.metric]
        what = {"rel": "relative difference", "cosine": "cosine", "snr": "SNR"}[tolerance.metric]
        figure = "not defined" if value is None else f"{value:.4g}{' dB' if tolerance.metric == 'snr' else ''}"
        return f"{what} {figure}; the largest difference is{at}: {said}"
    count = f"{sums.outside} of {actual.size} values differ, the first" if actual.size > 1 else "the value differs"
    return f"{count}{at}: {said}"


def _texts(one: np.generic, other: np.generic) -> tuple[str, str]:
    """Two values that differ, in as many digits as it takes to see it."""
    for digits in range(6, 18):
        mine, theirs = (f"{float(x):.{digits}g}" if x.dtype.kind == "f" else str(x) for x in (one, other))
        if mine != theirs:
            break
    return mine, theirs


def _blocks(a: np.ndarray, b: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    a, b = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, _BLOCK):
        yield start, a[start : start + _BLOCK], b[start : start + _BLOCK]


_SMALLEST_F16 = 2.0**-24
"""The smallest number of f16, of which smaller tensors are multiples."""


def _measured(actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance, *, exact: bool) -> _Sums:
    sums = _Sums()
    with np.errstate(all="ignore"):
        atol, fill = tolerance.atol, math.inf
        if tolerance.scaled and not exact:
            fill = _fill(reference)
            atol *= _root_mean_square(reference, fill)
            if np.float16 in (actual.dtype, reference.dtype):
                atol = max(atol, _SMALLEST_F16)
        rtol = 0.0 if exact else tolerance.rtol
        exactly = tolerance.metric != "max" and not exact
        for start, one, other in _blocks(actual, reference):
            _add(sums, start, one, other, rtol, 0.0 if exactly else atol, fill, exactly)
    return sums


def _add(
    sums: _Sums, start: int, one: np.ndarray, other: np.ndarray, rtol: float, atol: float, fill: float, exactly: bool
) -> None:
    """Take a block into account.

    Args:
        sums: the sums so far.
        start: the position of the block.
        one, other: its values, and those of the reference.
        rtol, atol: the accepted difference.
        fill: from which magnitude on values are those of a mask; see _fill.
        exactly: every value that differs is outside, and the first one is the value with the largest gap.
    """
    a, r = one.astype(np.float64), other.astype(np.float64)
    same = (one == other) | (np.isnan(a) & np.isnan(r))
    gaps = np.where(same, 0.0, np.abs(a - r))
    if one.dtype.kind in "iu" and other.dtype.kind in "iu":
        # Integers of 64 bits may differ where their f64 do not.
        gaps[~same & (gaps == 0)] = 1.0
    finite = np.isfinite(a) & np.isfinite(r)
    size = np.where(finite, np.abs(r), 0.0)
    good = same if exactly else same | (gaps <= atol + rtol * np.abs(r)) & finite
    _add_largest(sums, start, gaps, good, exactly)
    counts = finite & ((np.abs(a) < fill) | (size < fill))
    a, r, d = (np.where(counts, x, 0.0) for x in (a, r, gaps))
    sums.scale = max(sums.scale, float(size.max(initial=0.0)))
    sums.dot += float(a @ r)
    sums.own += float(a @ a)
    sums.reference += float(r @ r)
    sums.difference += float(d @ d)


def _add_largest(sums: _Sums, start: int, gaps: np.ndarray, good: np.ndarray, exactly: bool) -> None:
    known = gaps[~np.isnan(gaps)]
    largest = float(known.max(initial=0.0))
    if largest > sums.largest:
        if exactly:
            sums.first = start + int(np.nanargmax(gaps))
        sums.largest = largest
    sums.nans += gaps.size - known.size
    bad = int(good.size - np.count_nonzero(good))
    if bad and sums.first is None:
        sums.first = start + int(np.argmin(good))
    sums.outside += bad


def _root_mean_square(array: np.ndarray, fill: float) -> float:
    """Measures of the finite values below ``fill``."""
    total, count = 0.0, 0
    for _, block, _ in _blocks(array, array):
        values = block.astype(np.float64)
        values = values[np.abs(values) < fill]
        total += float(values @ values)
        count += values.size
    return math.sqrt(total / count) if count else 0.0


def _fill(array: np.ndarray) -> float:
    """The magnitude from which on values belong to a mask, such as -1e4 or the lowest f32; infinity without a mask.
    The values of a mask hide all others in a mean.

    They are the largest of all, there are several of them within a thousandth, and the others are a thousand times
    smaller.
    """
    if array.size < 2 or array.dtype.kind != "f":
        return math.inf
    largest = max(float(np.abs(block[np.isfinite(block)]).max(initial=0.0)) for _, block, _ in _blocks(array, array))
    fill = largest * (1 - _SAME_FILL)
    several = sum(int(np.count_nonzero(np.abs(block) >= fill)) for _, block, _ in _blocks(array, array)) > 1
    return fill if several and 0.0 < _root_mean_square(array, fill) * _FILL < largest else math.inf
