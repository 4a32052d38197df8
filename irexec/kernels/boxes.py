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
        self.centres = numbers[:, :2]
        self.halves = np.abs(numbers[:, 2:4]) / 2
        self.areas = numbers[:, 2] * numbers[:, 3]
        self.angles = numbers[:, 4]
        self.reach = np.hypot(self.halves[:, 0], self.halves[:, 1])

    def overlaps(self, box: int) -> np.ndarray:
        found = np.zeros(len(self.areas), np.float32)
        if not self.areas[box] > 0:
            return found
        away = self.centres - self.centres[box]
        away *= away
        near = np.flatnonzero((away[:, 0] + away[:, 1] < (self.reach + self.reach[box]) ** 2) & (self.areas > 0))
        shared = self._shared(near, np.full_like(near, box))
        found[near] = shared / (self.areas[near] + self.areas[box] - shared)
        return found

    def _shared(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The areas that pairs of boxes share."""
        slack = 1e-10 * (self.reach[one] + self.reach[other])
        start, step, parts = self._clipped(one, other, slack)
        sums = ((start[..., 0] * step[..., 1] - start[..., 1] * step[..., 0]) * parts).sum(-1)
        # An edge and the centre of its own box make a triangle of a quarter of its area.
        back = self._clipped(other, one, -slack)[2]
        return np.maximum(sums / 2 + self.areas[other] / 4 * back.sum(-1), 0)

    def _clipped(self, one: np.ndarray, other: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The edges of ``one`` seen from ``other`` as start and step, [pairs, 4, 2], and how much of each is inside it."""
        corners = self.halves[one][:, None] * _SIGNS
        corners = _turned(corners, (self.angles[one] - self.angles[other])[:, None])
        away = _turned(self.centres[one] - self.centres[other], -self.angles[other])
        start = corners + away[:, None]
        step = np.roll(start, -1, 1) - start
        limit = (self.halves[other] + slack[:, None])[:, None]
        with np.errstate(all="ignore"):
            ends = np.stack([(-limit - start) / step, (limit - start) / step])
        enter = np.maximum(ends.min(0).max(-1), 0)
        leave = np.minimum(ends.max(0).min(-1), 1)
        return start, step, np.maximum(leave - enter, 0)


_SIGNS = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def _turned(points: np.ndarray, angles: np.ndarray) -> np.ndarray:
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = points[..., 0], points[..., 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], -1)


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
    greatest, least = np.zeros(count, np.float32), np.ones(count, np.float32)
    for rows in _blocks(count):
        before = np.arange(rows.stop) < np.arange(rows.start, rows.stop)[:, None]
        overlaps = _matrix(boxes[rows], boxes[: rows.stop], normalized)
        greatest[rows] = np.fmax.reduce(np.where(before, overlaps, 0), 1)
        with np.errstate(all="ignore"):
            lost = decay(overlaps, greatest[: rows.stop])
        least[rows] = np.fmin.reduce(np.where(before, lost, 1), 1, initial=1)
    return least


_PAIRS_AT_ONCE = 1 << 20


def _blocks(count: int) -> Iterator[slice]:
    size = max(_PAIRS_AT_ONCE // max(count, 1), 1)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _matrix(one: np.ndarray, other: np.ndarray, normalized: bool) -> np.ndarray:
    """The IoU of boxes [n, 4] with boxes [m, 4]; the corners of a box that is upside down stay as they are."""
    unit = np.float32(not normalized)
    a, b = one[:, None], other[None]
    with np.errstate(all="ignore"):
        apart = (b[..., :2] > a[..., 2:]).any(-1) | (b[..., 2:] < a[..., :2]).any(-1)
        sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]) + unit
        shared = sides[..., 0] * sides[..., 1]
        overlaps = shared / (_areas(one, unit)[:, None] + _areas(other, unit) - shared)
    overlaps[apart] = 0
    return overlaps


def _areas(boxes: np.ndarray, unit: np.float32) -> np.ndarray:
    sides = boxes[:, 2:] - boxes[:, :2]
    return np.where((sides < 0).any(-1), np.float32(0), (sides + unit).prod(-1))
