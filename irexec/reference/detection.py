"""Boxes of detectors: prior boxes on a grid, boxes decoded from offsets, and their selection by score and overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.reference.boxes import descending
from irexec.reference.limits import check_time

# First and last coordinates of boxes along one axis: f32 (cells along the axis, boxes of a cell).
Edges = tuple[np.ndarray, np.ndarray]


def cell_centres(count: int, step: np.floating, offset: float) -> np.ndarray:
    """The f32 centres of ``count`` cells at distances of ``step``, the first at ``offset`` * ``step``."""
    return (np.arange(count, dtype=np.float32) + np.float32(offset)) * step


def grid_of_boxes(rows: Edges, columns: Edges, clip: bool, variance: Sequence[float]) -> np.ndarray:
    """The boxes of a grid, row by row, as x and y of the first and of the last corner, and their variances.

    Args:
        rows, columns: the edges of the boxes along y and x.
        clip: limit coordinates to 0..1.
        variance: one value, four for each box, or none, which means 0.1.

    Returns:
        f32 (2, coordinates): boxes and variances.
    """
    boxes = np.empty((2, len(rows[0]), len(columns[0]), rows[0].shape[1], 4), np.float32)
    for i in (0, 1):
        boxes[0, ..., 2 * i] = columns[i]
        boxes[0, ..., 2 * i + 1] = rows[i][:, None]
    if clip:
        np.clip(boxes[0], 0, 1, out=boxes[0])
    with np.errstate(all="ignore"):
        boxes[1] = variance or 0.1
    return boxes.reshape(2, -1)


def decode(
    priors: np.ndarray, variances: np.ndarray | None, offsets: np.ndarray, *, corner: bool, clip: bool
) -> np.ndarray:
    """Boxes at ``offsets`` from ``priors``, all (..., 4); corners of both, x first.

    With ``corner`` the offsets are added to the corners, else to the centre, relative to the size, and to the logarithm
    of the size. Offsets are multiplied by ``variances``, where given. Source: Liu et al., SSD, arXiv 1512.02325.
    """
    with np.errstate(all="ignore"):
        moved = offsets if variances is None else variances * offsets
        if corner:
            boxes = priors + moved
        else:
            first, last = priors[..., :2], priors[..., 2:]
            sizes = last - first
            centres, halves = moved[..., :2] * sizes + (first + last) / 2, np.exp(moved[..., 2:]) * sizes / 2
            boxes = np.concatenate([centres - halves, centres + halves], -1)
    return clip_to_unit(boxes) if clip else boxes


def clip_to_unit(boxes: np.ndarray) -> np.ndarray:
    """Coordinates limited to 0..1; NaN becomes 1, as with C++'s min and max."""
    return np.fmax(np.fmin(boxes, 1), 0)


@dataclass(frozen=True)
class DetectionLimits:
    """Rules by which boxes of an image are detections.

    Attributes:
        min_score: boxes with a lower score are dropped.
        max_overlap: boxes that overlap a better box of their class by more are dropped.
        max_candidates: of a class, before suppression; of an image with ``best_class_only``; -1 for all.
        max_kept: of an image, after suppression; -1 for all.
        background: the class that is no detection; -1 if there is none.
        best_class_only: a box counts only for its best class, never for the first, and its score may equal
            ``min_score``.
    """

    min_score: float
    max_overlap: float
    max_candidates: int
    max_kept: int
    background: int
    best_class_only: bool


def detect(scores: np.ndarray, boxes: np.ndarray, limits: DetectionLimits) -> tuple[np.ndarray, np.ndarray]:
    """The classes and box indices of an image's detections, sorted by class, then by descending score.

    Args:
        scores: (classes, n).
        boxes: (classes or 1, n, 4), corners.
    """
    orders = (_best_classes if limits.best_class_only else _all_classes)(scores, limits)
    kept = suppress_groups([boxes[c % len(boxes)][order] for c, order in enumerate(orders)], limits.max_overlap)
    selected = [order[keep] for order, keep in zip(orders, kept, strict=True)]
    classes, indices = np.repeat(np.arange(len(selected)), [len(one) for one in selected]), np.concatenate(selected)
    if -1 < limits.max_kept < len(indices):
        best = np.sort(np.lexsort((classes, indices, -scores[classes, indices]))[: limits.max_kept])
        classes, indices = classes[best], indices[best]
    return classes, indices


_PAIRS = 1 << 16
"""Pairs of boxes up to which the overlaps of all are computed at once."""


def suppress_groups(groups: list[np.ndarray], max_overlap: float) -> list[np.ndarray]:
    """Mask of each group of boxes: True for a box that overlaps no earlier kept box by more than ``max_overlap``.

    All groups are processed together. IoU is in f32 as in the reference; a box without an area overlaps nothing.

    Args:
        groups: (n, 4) each, corners, the best first.
    """
    longest = max(map(len, groups), default=0)
    boxes = np.zeros((4, len(groups), longest), np.float32)
    candidates = np.zeros((len(groups), longest), np.bool_)
    with np.errstate(all="ignore"):
        for i, group in enumerate(groups):
            boxes[:, i, : len(group)] = group.T
            candidates[i, : len(group)] = True
        areas = (boxes[2] - boxes[0]) * (boxes[3] - boxes[1])
    suppress = _suppressed_by_pairs if candidates.size * longest <= _PAIRS else _suppressed_by_boxes
    kept = suppress(boxes, areas, candidates, np.float32(max_overlap))
    return [mask[: len(group)] for mask, group in zip(kept, groups, strict=True)]


def _suppressed_by_boxes(
    boxes: np.ndarray, areas: np.ndarray, candidates: np.ndarray, max_overlap: np.floating
) -> np.ndarray:
    """The kept boxes of each row, one of each row at a time.

    Args:
        boxes: (4, rows, n).
        areas, candidates: (rows, n); ``candidates`` are overwritten.
    """
    kept, rows = np.zeros_like(candidates), np.arange(len(candidates) if candidates.size else 0)
    while len(rows):
        check_time()
        first = candidates.argmax(1)
        at = np.arange(len(rows)), first
        unfinished = candidates[at]
        if not unfinished.all():
            rows, candidates = rows[unfinished], candidates[unfinished]
            boxes, areas = boxes[:, unfinished], areas[unfinished]
            continue
        kept[rows, first] = True
        candidates[at] = False
        start = int(first.min())
        one, area = boxes[:, *at][..., None], areas[at][:, None]
        candidates[:, start:] &= ~(_overlaps(boxes[..., start:], areas[:, start:], one, area) > max_overlap)
    return kept


def _suppressed_by_pairs(
    boxes: np.ndarray, areas: np.ndarray, candidates: np.ndarray, max_overlap: np.floating
) -> np.ndarray:
    """The same for few boxes, from the overlaps of all pairs: a set of boxes is an integer with a bit for each."""
    overlapping = _overlaps(boxes[..., None, :], areas[:, None], boxes[..., None], areas[..., None]) > max_overlap
    # A box that overlaps no other one is kept, and drops none.
    overlapping &= ~np.eye(overlapping.shape[-1], dtype=np.bool_)
    is_alone = ~overlapping.any(-1)
    kept = candidates & is_alone
    pairs, every = (np.packbits(mask, -1, bitorder="little") for mask in (overlapping, candidates & ~is_alone))
    size = pairs.shape[-1]
    for row, (sets, members) in enumerate(zip(pairs, every, strict=True)):
        check_time()
        data, left, found = sets.tobytes(), int.from_bytes(members.tobytes(), "little"), []
        while left:
            check_time()
            best = (left & -left).bit_length() - 1
            found.append(best)
            left &= ~(1 << best | int.from_bytes(data[best * size : (best + 1) * size], "little"))
        kept[row, found] = True
    return kept


def _overlaps(boxes: np.ndarray, areas: np.ndarray, others: np.ndarray, other_areas: np.ndarray) -> np.ndarray:
    """The IoU of boxes with others; boxes are (4, ...), areas (...), all of which broadcast."""
    with np.errstate(all="ignore"):
        shared, height = (np.minimum(boxes[i + 2], others[i + 2]) for i in (0, 1))
        shared -= np.maximum(boxes[0], others[0])
        height -= np.maximum(boxes[1], others[1])
        zeros = np.zeros(shared.shape[-1], np.float32)
        shared = np.maximum(shared, zeros, out=shared)
        shared *= np.maximum(height, zeros, out=height)
        whole = np.add(areas, other_areas, out=height)
        whole -= shared
        # 0 / 0 must be 0.
        whole = np.maximum(whole, zeros + np.finfo(np.float32).tiny, out=whole)
        return np.divide(shared, whole, out=whole)


def _all_classes(scores: np.ndarray, limits: DetectionLimits) -> list[np.ndarray]:
    """The candidates of each class, in descending order of score."""
    candidates = scores > np.float32(limits.min_score)
    candidates[np.arange(len(scores)) == limits.background] = False
    return [descending(row, mask)[_first(limits.max_candidates)] for row, mask in zip(scores, candidates, strict=True)]


def _best_classes(scores: np.ndarray, limits: DetectionLimits) -> list[np.ndarray]:
    """The candidates of each class where a box counts only for its best class, of equal ones for the first.

    They are in descending order of score, those of equal scores by class, then by index.
    """
    allowed = np.isin(np.arange(len(scores)), (0, limits.background), invert=True)[:, None] & ~np.isnan(scores)
    rated = np.where(allowed, scores, -np.inf)
    classes = rated.argmax(0)
    values = rated.max(0)
    indices = np.flatnonzero((values > -1) & (values >= np.float32(limits.min_score)))
    order = indices[np.lexsort((indices, classes[indices], -values[indices]))][_first(limits.max_candidates)]
    return [order[classes[order] == c] for c in range(len(scores))]


def _first(count: int) -> slice:
    return slice(None if count < 0 else count)
