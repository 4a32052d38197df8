"""Boxes: the overlap of two of them, and non-maximum suppression.

Overlap is intersection over union (IoU), computed in f32 in the order of OpenVINO's reference, so that
comparing it with a threshold gives the same result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

import numpy as np

from irexec.reference.indexing import as_indices
from irexec.reference.limits import blocks, check_time


class BoxSet(Protocol):
    """Boxes whose overlaps can be computed."""

    def overlaps(self, box: int) -> np.ndarray:
        """The IoU of one box with every box, its own included."""
        ...


class AxisAligned:
    """Boxes with sides parallel to the axes.

    A box without a positive area overlaps nothing. ``unit`` is 1 where coordinates are pixels that belong to the box,
    so that a box from 2 to 4 is 3 wide, else 0.
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
        """The IoU [n, m] of ``some`` boxes with ``others``, both indices; the same values as those of ``overlaps``."""
        (low, high, areas), (low_of_others, high_of_others, areas_of_others) = (
            (self.low.take(indices, 1), self.high.take(indices, 1), self.areas[indices])
            for indices in (as_indices(some), as_indices(others))
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


def by_corners(boxes: np.ndarray) -> AxisAligned:
    """Boxes [n, 4] given by any two opposite corners."""
    first, second = boxes[:, :2], boxes[:, 2:]
    return AxisAligned(np.minimum(first, second), np.maximum(first, second))


def by_centre(boxes: np.ndarray) -> AxisAligned:
    """Boxes [n, 4] given by centre, width and height."""
    half = boxes[:, 2:].astype(np.float32) / np.float32(2)
    return AxisAligned(boxes[:, :2] - half, boxes[:, :2] + half)


class Rotated:
    """Rotated boxes [n, 5]: centre x and y, width, height and angle in radians, from the first axis to the second.

    The intersection area of two boxes is integrated along its border, which consists of the parts of either's edges
    that are inside the other. Where edges coincide, a tolerance in favour of one box makes them count once. In f64.
    """

    def __init__(self, boxes: np.ndarray) -> None:
        values = boxes.astype(np.float64)
        halves = np.abs(values[:, 2:4]) / 2
        # Points of the plane are complex numbers; a rotation is a product with a number of absolute value 1.
        self.centres = values[:, 0] + 1j * values[:, 1]
        self.rotations = np.exp(1j * values[:, 4])
        self.corners = (halves[:, :1] * [-1, 1, 1, -1] + 1j * halves[:, 1:] * [-1, -1, 1, 1]) * self.rotations[:, None]
        self.halves = halves
        self.areas = values[:, 2] * values[:, 3]
        # Half the diagonal; NaN for a box without area, which makes every comparison of distances false.
        self.radius = np.where(self.areas > 0, np.hypot(halves[:, 0], halves[:, 1]), np.nan)

    def overlaps(self, box: int) -> np.ndarray:
        found = np.zeros(len(self.areas), np.float32)
        near = np.flatnonzero(np.abs(self.centres - self.centres[box]) < self.radius + self.radius[box])
        if near.size:
            shared = self._intersection(near, np.full_like(near, box))
            found[near] = shared / (self.areas[near] + self.areas[box] - shared)
        return found

    def _intersection(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The intersection areas of pairs of boxes."""
        tolerance = 1e-10 * (self.radius[one] + self.radius[other])
        start, edge, inside = self._clip_edges(one, other, tolerance)
        sums = ((start.conj() * edge).imag * inside).sum(-1)
        # The triangle of an edge and the centre of its own box is a quarter of the box.
        back = self._clip_edges(other, one, -tolerance)[2]
        return np.maximum(sums / 2 + self.areas[other] / 4 * back.sum(-1), 0)

    def _clip_edges(
        self, one: np.ndarray, other: np.ndarray, tolerance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The edges of ``one`` in the coordinates of ``other``: start and vector [pairs, 4], and the fraction of each
        that is inside."""
        away = self.centres[one] - self.centres[other]
        start = (self.corners[one] + away[:, None]) * self.rotations[other].conj()[:, None]
        edge = start[:, [1, 2, 3, 0]] - start
        enter, leave = np.zeros(start.shape), np.ones(start.shape)
        for position, direction, half in (
            (start.real, edge.real, self.halves[other, 0]),
            (start.imag, edge.imag, self.halves[other, 1]),
        ):
            limit = (half + tolerance)[:, None]
            with np.errstate(all="ignore"):
                first, second = (-limit - position) / direction, (limit - position) / direction
            np.maximum(enter, np.minimum(first, second), out=enter)
            np.minimum(leave, np.maximum(first, second), out=leave)
        return start, edge, np.maximum(leave - enter, 0)


# The maximum number of overlaps that are cached, 12 bytes each.
_MAX_CACHED = 1 << 23

# Boxes up to which the overlaps of all pairs are computed at once.
_FEW = 64


class OverlapCache:
    """The other boxes that overlap each box by more than a threshold; computed once and cached for all classes up to a
    limit."""

    def __init__(self, boxes: BoxSet, threshold: np.float32, *, inclusive: bool = False) -> None:
        """``inclusive``: an overlap equal to the threshold counts too."""
        self.boxes = boxes
        self.threshold = threshold
        self.inclusive = inclusive
        self.cached: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.room = _MAX_CACHED

    def of(self, box: int) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the other boxes that overlap ``box``, and their IoU with it."""
        check_time()
        if not self.cached and isinstance(self.boxes, AxisAligned) and self.boxes.areas.size <= _FEW:
            self._compare_all(self.boxes)
        found = self.cached.get(box)
        if found is None:
            overlaps = self.boxes.overlaps(box)
            mask = self._are_enough(overlaps)
            mask[box] = False
            indices = np.flatnonzero(mask)
            found = indices, overlaps[indices]
            if len(indices) < self.room:
                self.room -= len(indices) + 1
                self.cached[box] = found
        return found

    def _compare_all(self, boxes: AxisAligned) -> None:
        every = np.arange(boxes.areas.size)
        overlaps = boxes.between(every, every)
        mask = self._are_enough(overlaps)
        np.fill_diagonal(mask, False)
        rows, columns = mask.nonzero()
        values, ends = overlaps[rows, columns], np.searchsorted(rows, every, "right").tolist()
        for box, (start, end) in enumerate(itertools.pairwise([0, *ends])):
            self.cached[box] = columns[start:end], values[start:end]

    def _are_enough(self, overlaps: np.ndarray) -> np.ndarray:
        return overlaps >= self.threshold if self.inclusive else overlaps > self.threshold


def descending(scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The indices where ``candidates`` is true, in descending order of score; of equal scores the lower index first."""
    indices = np.flatnonzero(candidates)
    return indices[np.argsort(-scores[indices], kind="stable")]


def suppress(order: np.ndarray, count: int, cache: OverlapCache, limit: int) -> np.ndarray:
    """The first ``limit`` of the boxes in ``order`` that overlap none selected before; there are ``count`` boxes."""
    dropped = np.zeros(count, np.bool_)
    selected: list[int] = []
    for box in order.tolist() if limit > 0 else []:
        if dropped[box]:
            continue
        selected.append(box)
        if len(selected) == limit:
            break
        dropped[cache.of(box)[0]] = True
    return np.array(selected, np.intp)


# Minimum and maximum number of boxes that are compared in one block.
_BLOCK_SIZES = (32, 128)


def suppress_in_blocks(order: np.ndarray, boxes: AxisAligned, threshold: np.float32, limit: int) -> np.ndarray:
    """``suppress`` for IoUs above a threshold, block by block, so that boxes after the last selected one are not
    compared.

    The boxes of a block are compared with those selected before, then with each other.
    """
    selected = np.empty(max(0, min(limit, order.size)), np.intp)
    count = first = 0
    while first < order.size and count < selected.size:
        check_time()
        block = order[first : first + min(max(_BLOCK_SIZES[0], 2 * (selected.size - count)), _BLOCK_SIZES[1])]
        first += block.size
        if count:
            block = block[~(boxes.between(block, selected[:count]) > threshold).any(1)]
        overlap = boxes.between(block, block) > threshold
        np.fill_diagonal(overlap, False)
        kept = np.ones(block.size, np.bool_)
        for i in np.flatnonzero(overlap.any(1)).tolist():
            if kept[i]:
                kept[overlap[i]] = False
        found = block[kept][: selected.size - count]
        selected[count : count + found.size] = found
        count += found.size
    return selected[:count]


def suppress_adaptively(order: np.ndarray, count: int, cache: OverlapCache, threshold: float, eta: float) -> np.ndarray:
    """The boxes in ``order`` that overlap those selected before by less than a threshold; there are ``count`` boxes.

    After each selected box the threshold is multiplied by ``eta``, while it is above 0.5.
    """
    max_overlap = np.zeros(count, np.float32)
    current = np.float32(threshold)
    selected: list[int] = []
    for box in order.tolist():
        if selected and max_overlap[box] >= current:
            continue
        selected.append(box)
        if current > 0.5:
            current = np.float32(current * np.float32(eta))
        indices, overlaps = cache.of(box)
        if indices.size:
            max_overlap[indices] = np.maximum(max_overlap[indices], overlaps)
    return np.array(selected, np.intp)


def suppress_softly(
    scores: np.ndarray, threshold: np.float32, cache: OverlapCache, sigma: float, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Up to ``limit`` boxes with a score above ``threshold``, the highest first; each selected one lowers the scores of
    those it overlaps.

    Scores are multiplied by exp(-IoU² / (2 * sigma)). Returns the boxes and the scores they had when selected.
    Source: Bodla et al., Soft-NMS, arXiv 1704.04503.
    """
    remaining = np.where(scores > threshold, scores, -np.inf).astype(np.float32)
    scale = np.float32(-0.5) / np.float32(sigma)
    selected: list[int] = []
    values: list[np.float32] = []
    while len(selected) < limit and remaining.size:
        check_time()
        box = int(remaining.argmax())
        if not remaining[box] > threshold:
            break
        selected.append(box)
        values.append(remaining[box])
        remaining[box] = -np.inf
        indices, overlaps = cache.of(box)
        if not indices.size:
            continue
        candidates = remaining[indices] > threshold
        indices, overlaps = indices[candidates], overlaps[candidates]
        remaining[indices] *= np.exp(scale * overlaps * overlaps)
    return np.array(selected, np.intp), np.array(values, np.float32)


def decays(boxes: np.ndarray, normalized: bool, decay: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """The factor by which the score of each of the boxes [n, 4], in descending order of score, is lowered by those
    before it.

    ``decay`` takes the IoU of boxes with better ones and the maximum IoU that those have with boxes better than
    themselves. Source: Wang et al., SOLOv2 (Matrix NMS), arXiv 2003.10152.
    """
    count = len(boxes)
    coordinates = np.ascontiguousarray(boxes.T)
    max_overlap, factors = np.zeros(count, np.float32), np.ones(count, np.float32)
    # Usually boxes that do not overlap lower no score; then only pairs that do are evaluated.
    all_count = bool((decay(np.zeros(2, np.float32), np.array([0, 1], np.float32)) < 1).any())
    for rows in blocks(count, count, _PAIRS_PER_BLOCK):
        check_time()
        before = np.arange(rows.stop) < np.arange(rows.start, rows.stop)[:, None]
        overlaps = np.where(before, _overlap_matrix(coordinates[:, rows], coordinates[:, : rows.stop], normalized), 0)
        max_overlap[rows] = np.fmax.reduce(overlaps, 1)
        row, other = np.nonzero(before if all_count else overlaps)
        if row.size:
            with np.errstate(all="ignore"):
                lowered = decay(overlaps[row, other], max_overlap[other])
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            factors[row[starts] + rows.start] = np.fmin(np.fmin.reduceat(lowered, starts), 1)
    return factors


_PAIRS_PER_BLOCK = 1 << 18


def _overlap_matrix(one: np.ndarray, other: np.ndarray, normalized: bool) -> np.ndarray:
    """The IoU [n, m] of boxes given by the coordinates [4, n] and [4, m] of two corners, of which the first may exceed
    the second."""
    unit = np.float32(not normalized)
    a, b = one[:, :, None], other[:, None]
    with np.errstate(all="ignore"):
        shared = np.minimum(a[2], b[2]) - np.maximum(a[0], b[0]) + unit
        shared *= np.minimum(a[3], b[3]) - np.maximum(a[1], b[1]) + unit
        overlaps = shared / (_areas_of(one, unit)[:, None] + _areas_of(other, unit) - shared)
    overlaps[(b[0] > a[2]) | (b[2] < a[0]) | (b[1] > a[3]) | (b[3] < a[1])] = 0
    return overlaps


def _areas_of(coordinates: np.ndarray, unit: np.float32) -> np.ndarray:
    width, height = coordinates[2] - coordinates[0], coordinates[3] - coordinates[1]
    return np.where((width < 0) | (height < 0), np.float32(0), (width + unit) * (height + unit))
