"""Overlaps of boxes, against a polygon clipped edge by edge; and what only many boxes reach."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from irexec.reference import boxes
from irexec.reference.boxes import (
    OverlapCache,
    Rotated,
    by_centre,
    by_corners,
    decays,
    descending,
    suppress,
    suppress_in_blocks,
)

Point = tuple[float, float]
ANGLES = (0, math.pi / 2, math.pi / 4, math.pi, -math.pi / 2, 0.3, 0.3 + math.pi / 2, 1e-7)


def _polygon(box: np.ndarray, origin: np.ndarray) -> list[Point]:
    x, y, width, height, angle = (box - origin).tolist()
    c, s = math.cos(angle), math.sin(angle)
    corners = ((-width, -height), (width, -height), (width, height), (-width, height))
    return [(x + (c * u - s * v) / 2, y + (s * u + c * v) / 2) for u, v in corners]


def _clipped(polygon: list[Point], a: Point, b: Point) -> Iterator[Point]:
    """What lies to the left of the line from a to b."""
    left = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for x, y in polygon]
    for k, (x, y) in enumerate(polygon):
        if left[k] >= 0:
            yield x, y
        (u, v), other = polygon[k - len(polygon) + 1], left[k - len(polygon) + 1]
        if (left[k] >= 0) != (other >= 0):
            t = left[k] / (left[k] - other)
            yield x + t * (u - x), y + t * (v - y)


def _iou(one: np.ndarray, other: np.ndarray) -> float:
    origin = np.array([*one[:2], 0, 0, 0])
    shared, window = _polygon(other, origin), _polygon(one, origin)
    for k in range(4):
        shared = list(_clipped(shared, window[k], window[(k + 1) % 4]))
    area = sum(x * v - u * y for (x, y), (u, v) in zip(shared, shared[1:] + shared[:1], strict=True)) / 2
    return area / (one[2] * one[3] + other[2] * other[3] - area)


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
@pytest.mark.parametrize("whole", [True, False], ids=["edges that coincide", "any"])
@pytest.mark.parametrize("shift", [0, 777])
def test_rotated_boxes_overlap_as_clipped_polygons(scale: float, whole: bool, shift: int) -> None:
    rng = np.random.default_rng(5)
    parts = rng.uniform(0, 3, (24, 2)), rng.uniform(0.2, 3, (24, 2))
    if whole:
        parts = np.rint(parts[0] * 2) / 2, np.ceil(parts[1] * 2) / 2
    numbers = (
        np.concatenate([parts[0] * scale + shift, parts[1] * scale, rng.choice(ANGLES, (24, 1))], 1)
        .astype(np.float32)
        .astype(np.float64)
    )
    rotated = Rotated(numbers)
    for i, one in enumerate(numbers):
        np.testing.assert_allclose(rotated.overlaps(i), [_iou(one, other) for other in numbers], atol=2e-7)


def _many(count: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    low = rng.uniform(0, 8, (count, 2))
    return np.concatenate([low, low + rng.uniform(0.2, 2, (count, 2))], 1).astype(np.float32)


def test_overlaps_beyond_the_cache_are_computed_again() -> None:
    found = by_corners(_many(90))
    kept, bare = (OverlapCache(found, np.float32(0.2)) for _ in range(2))
    bare.room = 0
    scores = np.linspace(1, 0, 90)
    order = descending(scores, scores > 0)
    for _ in range(2):
        np.testing.assert_array_equal(suppress(order, 90, kept, 90), suppress(order, 90, bare, 90))
    assert kept.cached
    assert not bare.cached


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0])
def test_overlaps_of_few_boxes_at_once_are_those_of_each(
    threshold: float, inclusive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some boxes are the same, some have no area, and some are not finite; a box is none of those that overlap it."""
    numbers = _many(40)
    numbers[3:5], numbers[7, 2:], numbers[9, 3], numbers[11, 0] = numbers[2], numbers[7, :2], np.inf, np.nan
    found = by_corners(numbers)
    together = OverlapCache(found, np.float32(threshold), inclusive=inclusive)
    pairs = [together.of(box) for box in range(40)]
    assert len(together.cached) == 40
    monkeypatch.setattr(boxes, "_FEW", 0)
    single = OverlapCache(found, np.float32(threshold), inclusive=inclusive)
    for box, (indices, overlaps) in enumerate(pairs):
        assert box not in indices.tolist()
        for one, other in zip((indices, overlaps), single.of(box), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sigma", [2.0, -2.0])
def test_decays_in_blocks_are_those_of_the_whole(sigma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def decay(overlaps: np.ndarray, maximum: np.ndarray) -> np.ndarray:
        return np.exp((maximum * maximum - overlaps * overlaps) * np.float32(sigma))

    many = _many(50)
    whole = decays(many, True, decay)
    monkeypatch.setattr(boxes, "_PAIRS_PER_BLOCK", 200)
    np.testing.assert_array_equal(decays(many, True, decay), whole)
    assert whole[0] == 1
    assert whole.min() < 0.9


@pytest.mark.parametrize("limit", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("maximum", [0, 1, 140, 1000])
def test_suppression_in_blocks_selects_what_suppression_one_by_one_selects(limit: float, maximum: int) -> None:
    """More boxes than a block has; some have no area, some are not finite."""
    rng = np.random.default_rng(3)
    numbers = np.concatenate([rng.uniform(0, 9, (500, 2)), rng.uniform(0, 2, (500, 2))], 1).astype(np.float32)
    numbers[rng.integers(0, 500, 30), rng.integers(0, 4, 30)] = rng.choice([0, np.inf, np.nan, -1], 30)
    all_boxes, threshold = by_centre(numbers), np.float32(limit)
    scores = np.round(rng.random(500), 2)
    order = descending(scores, scores > 0.2)
    one_by_one = suppress(order, 500, OverlapCache(all_boxes, threshold), maximum)
    np.testing.assert_array_equal(suppress_in_blocks(order, all_boxes, threshold, maximum), one_by_one)
