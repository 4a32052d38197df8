"""Boxes: how far two of them overlap, and which of many stay when those that overlap a better one go.

Overlap is intersection over union (IoU), computed in single precision in the order in which the
reference computes it, so that a threshold parts the same boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np


class Boxes(Protocol):
    """Boxes that can tell how far one of them overlaps each."""

    def overlaps(self, box: int) -> np.ndarray:
        """The IoU of one box with every box, its own included."""
        ...


class Upright:
    """Boxes with sides along the axes.

    A box without a positive area overlaps nothing. ``unit`` is 1 where coordinates count pixels, so that
    a box from 2 to 4 is 3 wide, else 0.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray, unit: int = 0) -> None:
        """``low`` and ``high`` are the two corners, of shape [n, 2]."""
        self.unit = np.float32(unit)
        self.low = np.ascontiguousarray(low.T, np.float32)
        self.high = np.ascontiguousarray(high.T, np.float32)
        with np.errstate(all="ignore"):
            sides = self.high - self.low + self.unit
            self.areas = sides[0] * sides[1]
        self.flat = np.flatnonzero(self.areas <= 0)

    def overlaps(self, box: int) -> np.ndarray:
        with np.errstate(all="ignore"):
            sides = np.minimum(self.high, self.high[:, box, None])
            sides -= np.maximum(self.low, self.low[:, box, None])
            sides += self.unit
            np.maximum(sides, 0, out=sides)
            shared = np.multiply(sides[0], sides[1], out=sides[0])
            shared /= self.areas + self.areas[box] - shared
        shared[slice(None) if self.areas[box] <= 0 else self.flat] = 0
        return shared

    def between(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The IoU [n, m] of some boxes with others, by index: the same numbers as of ``overlaps``."""
        (low, high, areas), (low_of_others, high_of_others, areas_of_others) = (
            (self.low.take(places, 1), self.high.take(places, 1), self.areas[places]) for places in (some, others)
        )
        with np.errstate(all="ignore"):
            sides = np.minimum(high[:, :, None], high_of_others[:, None])
            sides -= np.maximum(low[:, :, None], low_of_others[:, None])
            sides += self.unit
            np.maximum(sides, np.zeros(len(others), np.float32), out=sides)
            shared = np.multiply(sides[0], sides[1], out=sides[0])
            union = np.add(areas[:, None], areas_of_others, out=sides[1])
            union -= shared
            shared /= union
        if self.flat.size:
            shared[areas <= 0] = 0
            shared[:, areas_of_others <= 0] = 0
        return shared


def by_corners(boxes: np.ndarray) -> Upright:
    """Boxes [n, 4] given by any two opposite corners."""
    first, second = boxes[:, :2], boxes[:, 2:]
    return Upright(np.minimum(first, second), np.maximum(first, second))


def by_centre(boxes: np.ndarray) -> Upright:
    """Boxes [n, 4] given by centre, width and height."""
    half = boxes[:, 2:].astype(np.float32) / np.float32(2)
    return Upright(boxes[:, :2] - half, boxes[:, :2] + half)


class Rotated:
    """Boxes [n, 5] of centre, width, height and angle in radians, from the first axis to the second.

    The area that two share is summed along its border: the parts of either's edges that lie inside the
    other. Where edges coincide, a slack in favour of one box has them count once. In double precision.
    """

    def __init__(self, boxes: np.ndarray) -> None:
        numbers = boxes.astype(np.float64)
        halves = np.abs(numbers[:, 2:4]) / 2
        # Points of the plane are complex numbers; a turn is a product with a number of size 1.
        self.centres = numbers[:, 0] + 1j * numbers[:, 1]
        self.turns = np.exp(1j * numbers[:, 4])
        self.spokes = (halves[:, :1] * [-1, 1, 1, -1] + 1j * halves[:, 1:] * [-1, -1, 1, 1]) * self.turns[:, None]
        self.halves = halves
        self.areas = numbers[:, 2] * numbers[:, 3]
        # Of a box without area it is NaN, which is near nothing.
        self.reach = np.where(self.areas > 0, np.hypot(halves[:, 0], halves[:, 1]), np.nan)

    def overlaps(self, box: int) -> np.ndarray:
        found = np.zeros(len(self.areas), np.float32)
        near = np.flatnonzero(np.abs(self.centres - self.centres[box]) < self.reach + self.reach[box])
        if near.size:
            shared = self._shared(near, np.full_like(near, box))
            found[near] = shared / (self.areas[near] + self.areas[box] - shared)
        return found

    def _shared(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The areas that pairs of boxes share."""
        slack = 1e-10 * (self.reach[one] + self.reach[other])
        start, step, parts = self._clipped(one, other, slack)
        sums = ((start.conj() * step).imag * parts).sum(-1)
        # An edge and the centre of its own box make a triangle of a quarter of its area.
        back = self._clipped(other, one, -slack)[2]
        return np.maximum(sums / 2 + self.areas[other] / 4 * back.sum(-1), 0)

    def _clipped(self, one: np.ndarray, other: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The edges of ``one`` seen from ``other`` as start and step, [pairs, 4], and how much of each is inside it."""
        away = self.centres[one] - self.centres[other]
        start = (self.spokes[one] + away[:, None]) * self.turns[other].conj()[:, None]
        step = start[:, [1, 2, 3, 0]] - start
        enter, leave = np.zeros(start.shape), np.ones(start.shape)
        for place, along, half in ((start.real, step.real, self.halves[other, 0]), (start.imag, step.imag, self.halves[other, 1])):
            limit = (half + slack)[:, None]
            with np.errstate(all="ignore"):
                first, second = (-limit - place) / along, (limit - place) / along
            np.maximum(enter, np.minimum(first, second), out=enter)
            np.minimum(leave, np.maximum(first, second), out=leave)
        return start, step, np.maximum(leave - enter, 0)


# Numbers kept of the neighbours of boxes, 12 bytes each.
_MOST_KEPT = 1 << 23


class Neighbours:
    """The boxes that each box overlaps enough, looked for once and kept for all classes while there is room."""

    def __init__(self, boxes: Boxes, enough: Callable[[np.ndarray], np.ndarray]) -> None:
        """``enough`` tells of IoUs which count."""
        self.boxes = boxes
        self.enough = enough
        self.kept: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.room = _MOST_KEPT

    def of(self, box: int) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the neighbours and their IoU."""
        found = self.kept.get(box)
        if found is None:
            overlaps = self.boxes.overlaps(box)
            places = np.flatnonzero(self.enough(overlaps))
            found = places, overlaps[places]
            if len(places) <= self.room:
                self.room -= len(places)
                self.kept[box] = found
        return found


def descending(scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The indices where ``candidates`` is true, the highest score first, of equal scores the lower index."""
    places = np.flatnonzero(candidates)
    return places[np.argsort(-scores[places], kind="stable")]


def suppress(order: np.ndarray, count: int, neighbours: Neighbours, most: int) -> np.ndarray:
    """At most ``most`` of the boxes in ``order``, each that is no neighbour of one taken before; there are ``count`` boxes."""
    gone = np.zeros(count, np.bool_)
    taken: list[int] = []
    for box in order.tolist() if most > 0 else []:
        if gone[box]:
            continue
        taken.append(box)
        if len(taken) == most:
            break
        gone[neighbours.of(box)[0]] = True
    return np.array(taken, np.intp)


# How many boxes are decided on together at least and at most, first by those taken before, then among themselves.
_TOGETHER = (32, 128)


def suppress_at_once(order: np.ndarray, boxes: Upright, limit: np.float32, most: int) -> np.ndarray:
    """``suppress`` where IoUs above a limit count, without looking at boxes behind the last one taken."""
    taken = np.empty(max(0, min(most, order.size)), np.intp)
    count = first = 0
    while first < order.size and count < taken.size:
        some = order[first : first + min(max(_TOGETHER[0], 2 * (taken.size - count)), _TOGETHER[1])]
        first += some.size
        if count:
            some = some[~(boxes.between(some, taken[:count]) > limit).any(1)]
        close = boxes.between(some, some) > limit
        np.fill_diagonal(close, False)
        left = np.ones(some.size, np.bool_)
        for i in np.flatnonzero(close.any(1)).tolist():
            if left[i]:
                left[close[i]] = False
        found = some[left][: taken.size - count]
        taken[count : count + found.size] = found
        count += found.size
    return taken[:count]


def suppress_adaptively(order: np.ndarray, count: int, neighbours: Neighbours, threshold: float, eta: float) -> np.ndarray:
    """The boxes in ``order`` that overlap those taken before by less than a threshold.

    With each box taken the threshold shrinks by ``eta``, while it is above 0.5.
    """
    worst = np.zeros(count, np.float32)
    limit = np.float32(threshold)
    taken: list[int] = []
    for box in order.tolist():
        if taken and worst[box] >= limit:
            continue
        taken.append(box)
        if limit > 0.5:
            limit = np.float32(limit * np.float32(eta))
        places, overlaps = neighbours.of(box)
        worst[places] = np.maximum(worst[places], overlaps)
    return np.array(taken, np.intp)


def suppress_softly(
    scores: np.ndarray, least: np.float32, neighbours: Neighbours, sigma: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` boxes with a score above ``least``, the highest first, where each taken lowers its neighbours' scores.

    Scores fall by exp(-IoU² / 2 sigma). Returns the boxes and the scores they had when taken.
    Source: Bodla et al., Soft-NMS, arXiv 1704.04503.
    """
    left = np.where(scores > least, scores, -np.inf).astype(np.float32)
    scale = np.float32(-0.5) / np.float32(sigma)
    taken: list[int] = []
    values: list[np.float32] = []
    while len(taken) < most and left.size:
        box = int(left.argmax())
        if not left[box] > least:
            break
        taken.append(box)
        values.append(left[box])
        left[box] = -np.inf
        places, overlaps = neighbours.of(box)
        open_ = left[places] > least
        places, overlaps = places[open_], overlaps[open_]
        left[places] *= np.exp(scale * overlaps * overlaps)
    return np.array(taken, np.intp), np.array(values, np.float32)


def decays(boxes: np.ndarray, normalized: bool, decay: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """By how much each of the boxes [n, 4], the best first, loses against those before it; 1 is nothing.

    ``decay`` takes the IoU of boxes with those before them and the greatest IoU that those have with
    any before themselves. Source: Wang et al., SOLOv2 (Matrix NMS), arXiv 2003.10152.
    """
    count = len(boxes)
    sides = np.ascontiguousarray(boxes.T)
    greatest, least = np.zeros(count, np.float32), np.ones(count, np.float32)
    # Where boxes that are apart lose nothing, as almost always, only the others are looked at.
    all_count = bool((decay(np.zeros(2, np.float32), np.array([0, 1], np.float32)) < 1).any())
    for rows in _blocks(count):
        before = np.arange(rows.stop) < np.arange(rows.start, rows.stop)[:, None]
        overlaps = np.where(before, _matrix(sides[:, rows], sides[:, : rows.stop], normalized), 0)
        greatest[rows] = np.fmax.reduce(overlaps, 1)
        row, other = np.nonzero(before if all_count else overlaps)
        if row.size:
            with np.errstate(all="ignore"):
                lost = decay(overlaps[row, other], greatest[other])
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            losers = row[starts] + rows.start
            least[losers] = np.fmin(np.fmin.reduceat(lost, starts), 1)
    return least


_PAIRS_AT_ONCE = 1 << 18


def _blocks(count: int) -> Iterator[slice]:
    size = max(_PAIRS_AT_ONCE // max(count, 1), 1)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _matrix(one: np.ndarray, other: np.ndarray, normalized: bool) -> np.ndarray:
    """The IoU [n, m] of boxes given by the coordinates [4, n] and [4, m] of corners, which may be upside down."""
    unit = np.float32(not normalized)
    a, b = one[:, :, None], other[:, None]
    with np.errstate(all="ignore"):
        shared = np.minimum(a[2], b[2]) - np.maximum(a[0], b[0]) + unit
        shared *= np.minimum(a[3], b[3]) - np.maximum(a[1], b[1]) + unit
        overlaps = shared / (_areas(one, unit)[:, None] + _areas(other, unit) - shared)
    overlaps[(b[0] > a[2]) | (b[2] < a[0]) | (b[1] > a[3]) | (b[3] < a[1])] = 0
    return overlaps


def _areas(sides: np.ndarray, unit: np.float32) -> np.ndarray:
    width, height = sides[2] - sides[0], sides[3] - sides[1]
    return np.where((width < 0) | (height < 0), np.float32(0), (width + unit) * (height + unit))
