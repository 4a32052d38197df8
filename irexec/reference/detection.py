"""Boxes of detectors: prior boxes, region proposals, boxes decoded and selected by score and overlap.

A box is (xmin, ymin, xmax, ymax) along the last axis. With an ``offset`` of 1 the corners are pixels that belong
to the box, so that its width is xmax - xmin + 1; with 0 they are points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.reference.boxes import descending
from irexec.reference.limits import check_time
from irexec.reference.special import round_half_away

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
        background: the class that is not a detection; -1 if there is none.
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


# The maximum of dw and dh in Detectron.
MAX_LOG_SCALE = float(np.float32(np.log(1000 / 16)))


def widened(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays in one type, at least f32."""
    return [array.astype(np.result_type(np.float32, *arrays), copy=False) for array in arrays]


def as_f32(value: float) -> float:
    """An attribute rounded to f32, in which OpenVINO keeps it, also where the tensors are wider."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def make_anchors(base_size: int, ratios: Sequence[float], scales: Sequence[float], *, centred: bool) -> np.ndarray:
    """The boxes (ratios * scales, 4) of the base size's area in each ratio, times each scale, as f32.

    Their centre is that of the base box, which starts at the origin, and their sides are rounded; or, ``centred``,
    the origin, without rounding. Source: Proposal-1; the rounding is that of the CPU plugin.
    """
    offset = np.float32(0 if centred else 1)
    ratio, scale = np.asarray(ratios, np.float32)[:, None], np.asarray(scales, np.float32)
    widths = np.sqrt(np.float32(base_size) * np.float32(base_size) / ratio)
    if not centred:
        widths = round_half_away(widths)
    heights = widths * ratio if centred else round_half_away(widths * ratio)
    half = np.stack(np.broadcast_arrays(widths * scale, heights * scale), -1) - offset
    half = half.reshape(-1, 2) * np.float32(0.5)
    middle = np.float32(0.5) * (np.float32(base_size) - offset)
    corners = np.concatenate([middle - half, middle + half], -1)
    return corners - np.float32(base_size) * np.float32(0.5) if centred else corners


def placed(
    boxes: np.ndarray, deltas: np.ndarray, offset: float, *, inclusive: bool = False, max_log_scale: float | None = None
) -> np.ndarray:  # fmt: skip
    """Boxes (..., 4) moved and scaled by deltas (dx, dy, dw, dh) (..., 4): the centre by (dx, dy) * size, the size by
    exp(dw, dh).

    Args:
        offset: 1 if the corners of ``boxes`` are pixels, 0 if they are points.
        inclusive: subtract ``offset`` from the last corner of the result, so that it is a pixel again.
        max_log_scale: the maximum of dw and dh; None for none.
    """
    with np.errstate(all="ignore"):
        sizes = boxes[..., 2:] - boxes[..., :2] + offset
        centres = boxes[..., :2] + 0.5 * sizes
        moved = deltas[..., :2] * sizes + centres
        log_scale = deltas[..., 2:] if max_log_scale is None else np.minimum(deltas[..., 2:], max_log_scale)
        half = 0.5 * (np.exp(log_scale) * sizes)
        return np.concatenate([moved - half, moved + half - (offset if inclusive else 0)], -1)


def clip(boxes: np.ndarray, width: float, height: float) -> np.ndarray:
    """Boxes with every corner inside the image; NaN becomes 0."""
    # As std::max(0, std::min(x, limit)) treats NaN.
    return np.fmax(np.minimum(boxes, np.array([width, height] * 2, boxes.dtype)), boxes.dtype.type(0))


def sides(boxes: np.ndarray, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """The widths and heights of boxes."""
    with np.errstate(all="ignore"):
        return boxes[..., 2] - boxes[..., 0] + offset, boxes[..., 3] - boxes[..., 1] + offset


def areas(boxes: np.ndarray, offset: float) -> np.ndarray:
    """The areas of boxes."""
    with np.errstate(all="ignore"):
        return np.multiply(*sides(boxes, offset))


def zero_unless(keep: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores times ``keep``: 0 (NaN of infinities) where it is false."""
    with np.errstate(invalid="ignore"):
        return scores * keep


def best_first(scores: np.ndarray) -> np.ndarray:
    """The indices of scores in descending order; of equal ones the lower index first, NaN last."""
    return np.argsort(-scores, kind="stable")


def suppress(
    boxes: np.ndarray, sizes: np.ndarray, threshold: float, offset: float, limit: int | None = None, eta: float = 1.0
) -> np.ndarray:  # fmt: skip
    """The indices of the boxes that overlap no box kept before them by more than a threshold.

    Args:
        boxes: (N, 4), the best first.
        sizes: (N,), the areas of the boxes.
        threshold: the maximum overlap, intersection over union.
        limit: maximum number of kept boxes; None for all.
        eta: the factor of a threshold above one half after each box kept.
    """
    max_overlap = np.full(len(boxes), -np.inf, boxes.dtype)
    kept: list[int] = []
    box = 0
    # Whether a box is kept depends on those kept before, so each kept box is one iteration.
    while box < len(boxes) and (limit is None or len(kept) < limit):
        check_time()
        kept.append(box)
        rest = slice(box + 1, None)
        overlaps = overlap(boxes[box], boxes[rest], sizes[box], sizes[rest], offset)
        np.fmax(max_overlap[rest], overlaps, out=max_overlap[rest])
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        free = np.flatnonzero(~(max_overlap[rest] > threshold))
        box = box + 1 + int(free[0]) if free.size else len(boxes)
    return np.asarray(kept, np.int64)


def overlap(box: np.ndarray, others: np.ndarray, size: np.ndarray, sizes: np.ndarray, offset: float) -> np.ndarray:
    """Intersection over union of one box (4,) and others (N, 4), whose areas are given; 0 where they are disjoint."""
    with np.errstate(all="ignore"):
        lengths = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]) + offset
        shared = np.fmax(lengths, box.dtype.type(0)).prod(-1)
        quotient = shared / (size + sizes - shared)
        touch = ((box[:2] <= others[:, 2:]) & (others[:, :2] <= box[2:])).all(-1)
    return np.where(touch, quotient, box.dtype.type(0))
