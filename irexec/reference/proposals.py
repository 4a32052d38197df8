"""Region proposals: anchors, boxes decoded from deltas, what is too small, and the greedy suppression of overlaps.

A box is (xmin, ymin, xmax, ymax) along the last axis. With an ``offset`` of 1 the corners are pixels that belong
to the box, so that its width is xmax - xmin + 1; with 0 they are points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.reference.special import round_half_away

# The logarithm of how much a box may grow, as Detectron has it.
MOST_GROWTH = float(np.float32(np.log(1000 / 16)))


def make_anchors(base_size: int, ratios: Sequence[float], scales: Sequence[float], *, centred: bool) -> np.ndarray:
    """The boxes (ratios * scales, 4) of the base size's area in each ratio, times each scale, as f32.

    They surround the middle of the base box, whose corner is the origin and whose sides are rounded; or, ``centred``,
    the origin, unrounded. Source: Proposal-1; the rounding is that of the CPU plugin.
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
    boxes: np.ndarray, deltas: np.ndarray, offset: float, *, inclusive: bool = False, most: float | None = None
) -> np.ndarray:  # fmt: skip
    """Boxes (..., 4) moved by the first two of their deltas (dx, dy, dw, dh) (..., 4) and grown by exp of the others.

    Args:
        offset: 1 if the corners of ``boxes`` are pixels, 0 if they are points.
        inclusive: the last corner of the result is less by ``offset``, a pixel again.
        most: what dw and dh are at most.
    """
    with np.errstate(all="ignore"):
        sizes = boxes[..., 2:] - boxes[..., :2] + offset
        centres = boxes[..., :2] + 0.5 * sizes
        moved = deltas[..., :2] * sizes + centres
        grown = deltas[..., 2:] if most is None else np.minimum(deltas[..., 2:], most)
        half = 0.5 * (np.exp(grown) * sizes)
        return np.concatenate([moved - half, moved + half - (offset if inclusive else 0)], -1)


def clip(boxes: np.ndarray, width: float, height: float) -> np.ndarray:
    """Boxes with every corner inside the image; NaN becomes 0."""
    # What std::max(0, std::min(x, limit)) does with NaN.
    return np.fmax(np.minimum(boxes, np.array([width, height] * 2, boxes.dtype)), boxes.dtype.type(0))


def spread(boxes: np.ndarray, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """The widths and heights of boxes."""
    with np.errstate(all="ignore"):
        return boxes[..., 2] - boxes[..., 0] + offset, boxes[..., 3] - boxes[..., 1] + offset


def areas(boxes: np.ndarray, offset: float) -> np.ndarray:
    """The areas of boxes."""
    with np.errstate(all="ignore"):
        return np.multiply(*spread(boxes, offset))


def without(scores: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Scores times 0 where they are not to be kept."""
    with np.errstate(invalid="ignore"):
        return scores * keep


def descending(scores: np.ndarray) -> np.ndarray:
    """The places of scores from the greatest to the least: the earlier of equal ones first, NaN last."""
    return np.argsort(-scores, kind="stable")


def suppress(
    boxes: np.ndarray, sizes: np.ndarray, threshold: float, offset: float, limit: int | None = None, eta: float = 1.0
) -> np.ndarray:  # fmt: skip
    """The places of the boxes that remain when, first come first kept, each is dropped that overlaps a kept one too much.

    Args:
        boxes: (N, 4), the best first.
        sizes: (N,), the areas of the boxes.
        threshold: the overlap, intersection over union, that is still allowed.
        limit: how many are kept at most.
        eta: what a threshold above one half is multiplied with after each box kept.
    """
    worst = np.full(len(boxes), -np.inf, boxes.dtype)
    kept: list[int] = []
    place = 0
    # Whether a box stays depends on those kept before, so one box kept is one step.
    while place < len(boxes) and (limit is None or len(kept) < limit):
        kept.append(place)
        tail = place + 1
        np.fmax(worst[tail:], overlap(boxes[place], boxes[tail:], sizes[place], sizes[tail:], offset), out=worst[tail:])
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        free = np.flatnonzero(~(worst[tail:] > threshold))
        place = tail + int(free[0]) if free.size else len(boxes)
    return np.asarray(kept, np.int64)


def overlap(box: np.ndarray, others: np.ndarray, size: np.ndarray, sizes: np.ndarray, offset: float) -> np.ndarray:
    """Intersection over union of one box (4,) and others (N, 4), whose areas are given; 0 where they do not even touch."""
    with np.errstate(all="ignore"):
        sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]) + offset
        shared = np.fmax(sides, box.dtype.type(0)).prod(-1)
        quotient = shared / (size + sizes - shared)
        touch = ((box[:2] <= others[:, 2:]) & (others[:, :2] <= box[2:])).all(-1)
    return np.where(touch, quotient, box.dtype.type(0))
