"""Boxes of detectors: on a grid, decoded from what a network says of them, and chosen by score and overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.reference.boxes import descending

Edges = tuple[np.ndarray, np.ndarray]


def spread(count: int, step: np.floating, offset: float) -> np.ndarray:
    """The f32 centres of ``count`` places, ``step`` apart, the first at ``offset`` steps."""
    return (np.arange(count, dtype=np.float32) + np.float32(offset)) * step


def grid_of_boxes(rows: Edges, columns: Edges, clip: bool, variance: Sequence[float]) -> np.ndarray:
    """The boxes of a grid in one line, x and y of the first and of the last corner, and below them their variances.

    Args:
        rows, columns: where boxes begin and end along y and x: f32 (places along the axis, boxes of a place).
        clip: cut what is below 0 and above 1.
        variance: one number, four for each box, or none, which means 0.1.

    Returns:
        f32 (2, numbers).
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


def decode(priors: np.ndarray, variances: np.ndarray | None, offsets: np.ndarray, *, corner: bool, clip: bool) -> np.ndarray:
    """Boxes that lie ``offsets`` from ``priors``, all (..., 4); corners of both, x first.

    With ``corner`` the offsets move the corners, else the centre, in parts of the size, and the logarithm of the size.
    Offsets count ``variances`` times, where there are any. Source: Liu et al., SSD, arXiv 1512.02325.
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
    return cut(boxes) if clip else boxes


def cut(boxes: np.ndarray) -> np.ndarray:
    """What is below 0 becomes 0, what is above 1, or not a number, becomes 1, as C++'s min and max have it."""
    return np.fmax(np.fmin(boxes, 1), 0)


@dataclass(frozen=True)
class Limits:
    """What is kept of the boxes of an image.

    Attributes:
        confidence, overlap: the least score, and the greatest overlap with a better box of the class.
        candidates, kept: at most so many before and after those that overlap go; -1: all.
        background: the class that is none; -1 if there is none.
        one_class: a box counts for its best class alone, never the first; ``candidates`` are then those of the image, not of a class.
    """

    confidence: float
    overlap: float
    candidates: int
    kept: int
    background: int
    one_class: bool


def detect(scores: np.ndarray, boxes: np.ndarray, limits: Limits) -> tuple[np.ndarray, np.ndarray]:
    """The class and the number of each box of an image that is kept, by class and then from the best score on.

    Args:
        scores: (classes, n).
        boxes: (classes or 1, n, 4), corners.
    """
    orders = (_best_of_each if limits.one_class else _of_every_class)(scores, limits)
    kept = apart([boxes[c % len(boxes)][order] for c, order in enumerate(orders)], limits.overlap)
    taken = [order[stays] for order, stays in zip(orders, kept, strict=True)]
    classes, places = np.repeat(np.arange(len(taken)), [len(one) for one in taken]), np.concatenate(taken)
    if -1 < limits.kept < len(places):
        best = np.sort(np.lexsort((classes, places, -scores[classes, places]))[: limits.kept])
        classes, places = classes[best], places[best]
    return classes, places


def apart(groups: list[np.ndarray], overlap: float) -> list[np.ndarray]:
    """Which boxes of each group do not overlap one before them, that stays itself, by more than ``overlap``.

    All groups are gone through at once, from one box that stays to the next. IoU is in f32 as in the reference; a box without extent
    overlaps nothing.

    Args:
        groups: (n, 4) each, corners, the best first.
    """
    most = max(map(len, groups), default=0)
    boxes = np.zeros((4, len(groups), most), np.float32)
    open_, stays = np.zeros((2, len(groups), most), np.bool_)
    rows = np.arange(len(groups) if most else 0)
    with np.errstate(all="ignore"):
        for i, group in enumerate(groups):
            boxes[:, i, : len(group)] = group.T
            open_[i, : len(group)] = True
        areas = (boxes[2] - boxes[0]) * (boxes[3] - boxes[1])
    while len(rows):
        first = open_.argmax(1)
        left = open_[np.arange(len(rows)), first]
        if not left.all():
            rows, first, open_, boxes, areas = rows[left], first[left], open_[left], boxes[:, left], areas[left]
            continue
        stays[rows, first] = True
        open_[np.arange(len(rows)), first] = False
        start = int(first.min())
        open_[:, start:] &= ~(_overlaps(boxes[..., start:], areas[:, start:], first - start) > np.float32(overlap))
    return [one[: len(group)] for one, group in zip(stays, groups, strict=True)]


def _overlaps(boxes: np.ndarray, areas: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The IoU of the chosen box of each row with those of the row; boxes are (4, rows, n)."""
    at = (np.arange(len(chosen)), chosen)
    one = [side[at][:, None] for side in boxes]
    nothing = np.zeros(areas.shape[1], np.float32)
    with np.errstate(all="ignore"):
        shared, height = (np.minimum(boxes[i + 2], one[i + 2]) for i in (0, 1))
        shared -= np.maximum(boxes[0], one[0])
        height -= np.maximum(boxes[1], one[1])
        shared = np.maximum(shared, nothing, out=shared)
        shared *= np.maximum(height, nothing, out=height)
        whole = np.add(areas, areas[at][:, None], out=height)
        whole -= shared
        # Nothing shared by nothing is nothing.
        whole = np.maximum(whole, nothing + np.finfo(np.float32).tiny, out=whole)
        return np.divide(shared, whole, out=whole)


def _of_every_class(scores: np.ndarray, limits: Limits) -> list[np.ndarray]:
    enough = scores > np.float32(limits.confidence)
    enough[np.arange(len(scores)) == limits.background] = False
    return [descending(one, candidates)[_first(limits.candidates)] for one, candidates in zip(scores, enough, strict=True)]


def _best_of_each(scores: np.ndarray, limits: Limits) -> list[np.ndarray]:
    """Of equal scores in a box the first class counts; of equal scores of boxes, that of the first class, then the first box."""
    allowed = np.isin(np.arange(len(scores)), (0, limits.background), invert=True)[:, None] & ~np.isnan(scores)
    rated = np.where(allowed, scores, -np.inf)
    classes = rated.argmax(0)
    values = rated.max(0)
    places = np.flatnonzero((values > -1) & (values >= np.float32(limits.confidence)))
    order = places[np.lexsort((places, classes[places], -values[places]))][_first(limits.candidates)]
    return [order[classes[order] == c] for c in range(len(scores))]


def _first(count: int) -> slice:
    return slice(None if count < 0 else count)
