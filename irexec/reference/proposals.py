"""Region proposals: anchors, boxes decoded from deltas, and greedy suppression of overlaps.

A box is (xmin, ymin, xmax, ymax) along the last axis. With an ``offset`` of 1 the corners are pixels that belong
to the box, so that its width is xmax - xmin + 1; with 0 they are points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.reference.limits import check_time
from irexec.reference.special import round_half_away

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


def decode(
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


def descending(scores: np.ndarray) -> np.ndarray:
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
        np.fmax(
            max_overlap[rest], overlap(boxes[box], boxes[rest], sizes[box], sizes[rest], offset), out=max_overlap[rest]
        )
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
