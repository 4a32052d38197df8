"""Boxes: overlaps against a polygon clipped edge by edge, suppression, and bins of regions of interest."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from irexec.errors import OpError
from irexec.reference import boxes, detection, roi_align
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
from irexec.reference.detection import suppress_groups
from irexec.reference.roi_align import Boxes, corner_boxes, pool_boxes, rotated_boxes

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


# Bins of many points: as many passes over them as there are few points, and the same results whichever way is taken.


RNG = np.random.default_rng(3)
FEATURES = RNG.standard_normal((2, 3, 9, 13)).astype(np.float32)
CORNERS = np.concatenate([RNG.uniform(-30, 20, (12, 2)), RNG.uniform(-10, 40, (12, 2))], 1).astype(np.float32)
IMAGES = RNG.integers(0, 2, 12)


def _boxes(kind: str) -> Boxes:
    if kind == "rotated":
        return rotated_boxes(
            np.concatenate([CORNERS, RNG.uniform(-4, 4, (12, 1)).astype(np.float32)], 1), 0.75, clockwise=True
        )
    return corner_boxes(CORNERS, 0.75, kind)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of points of every call that interpolates."""
    counted: list[int] = []
    for module in (roi_align,):
        plain = module.sample

        def sample(
            rows: np.ndarray, starts: np.ndarray, sizes: object, y: np.ndarray, x: np.ndarray, plain=plain
        ) -> np.ndarray:
            counted.append(np.broadcast(starts, y, x).size)
            return plain(rows, starts, sizes, y, x)

        monkeypatch.setattr(module, "sample", sample)
    return counted


@pytest.mark.parametrize(
    "features",
    [FEATURES, FEATURES.astype(np.float64), np.where(FEATURES > 2, np.nan, FEATURES)],
    ids=["f32", "f64", "NaN"],
)
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize(
    ("kind", "mode"), [("asymmetric", "avg"), ("half_pixel", "avg"), ("half_pixel", "max"), ("rotated", "avg")]
)
def test_both_ways_give_the_same(
    features: np.ndarray, ratio: int, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = _boxes(kind)
    found = []
    for few in (1 << 30, 0):
        monkeypatch.setattr(roi_align, "_FEW_POINTS", few)
        monkeypatch.setattr(roi_align, "_MAX_PASSES", 0)
        found.append(pool_boxes(features, boxes, IMAGES, (3, 2), ratio, mode))
    assert found[0].any()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("box", "mode", "maximum"),
    [
        (corner_boxes(np.array([[0, 0, 2000, 2000]], np.float32), 1), "avg", 0),
        (corner_boxes(np.array([[0, 0, 1000, 1000]], np.float32), 1), "max", 16),
        (rotated_boxes(np.array([[4, 4, 1000, 1000, 0.3]], np.float32), 1, False), "avg", 16),
    ],
)
def test_a_large_box_takes_few_passes(box: Boxes, mode: str, maximum: int, passes: list[int]) -> None:
    pool_boxes(np.ones((1, 1, 8, 8), np.float32), box, np.zeros(1, np.int64), (2, 2), 0, mode)
    assert len(passes) <= maximum
    assert max(passes, default=0) <= 1 << 17


def test_many_boxes_of_some_points_are_pooled_together(passes: list[int]) -> None:
    corners = np.tile(np.array([[0, 0, 20, 20]], np.float32), (500, 1))
    pool_boxes(np.ones((1, 1, 8, 8), np.float32), corner_boxes(corners, 1), np.zeros(500, np.int64), (2, 2), 0, "avg")
    assert len(passes) == 100


def test_the_mean_of_a_box_that_covers_the_image() -> None:
    """By hand: 36 x 36 points at intervals of a quarter pixel cover the image symmetrically, so that their mean is that of the pixels."""
    plane = np.add.outer(np.arange(10), 2 * np.arange(10)).astype(np.float32)[None, None]
    box = corner_boxes(np.array([[0, 0, 9, 9]], np.float32), 1)
    (found,) = pool_boxes(plane, box, np.zeros(1, np.int64), (1, 1), 36, "avg").ravel()
    assert found == pytest.approx(4.5 + 2 * 4.5, rel=1e-6)


def test_absurd_work_is_refused() -> None:
    corners = np.tile(np.array([[0, 0, 2000, 2000]], np.float32), (60, 1))
    features = np.ones((1, 80, 4, 4), np.float32)
    with pytest.raises(
        OpError, match=r"^the bins of the boxes have 60000000 points, 19200000000 values, expected 17179869184 at most$"
    ):
        pool_boxes(features, corner_boxes(corners, 1), np.zeros(60, np.int64), (2, 2), 0, "max")
    with pytest.raises(OpError, match=r"^a bin has 4000000 points, expected 1048576 at most$"):
        pool_boxes(features, corner_boxes(corners[:1], 1), np.zeros(1, np.int64), (1, 1), 0, "avg")


# Suppression of boxes that overlap a better one: all groups together as one by one.


def _iou_of_detection(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0) for i in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    shared = width * height
    return shared / (sum(areas) - shared) if shared else 0


def _one_by_one(boxes: np.ndarray, overlap: float) -> list[bool]:
    kept: list[np.ndarray] = []
    mask = []
    for box in boxes:
        mask.append(all(_iou_of_detection(box, other) <= overlap for other in kept))
        kept += [box] * mask[-1]
    return mask


@pytest.mark.parametrize("pairs", [0, 1 << 16], ids=["by boxes", "by pairs"])
@pytest.mark.parametrize("overlap", [-0.5, 0, 0.2, 0.6])
def test_groups_together_keep_what_each_keeps_alone(
    overlap: float, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "_PAIRS", pairs)
    rng = np.random.default_rng(3)
    groups = []
    for count in (0, 40, 1, 17, 0, 25):
        first = rng.integers(0, 8, (count, 2))
        groups.append(np.concatenate([first, first + rng.integers(0, 6, (count, 2))], 1).astype(np.float32))
    found = suppress_groups(groups, overlap)
    assert [one.tolist() for one in found] == [_one_by_one(group, overlap) for group in groups]


def test_empty_groups() -> None:
    assert suppress_groups([], 0.5) == []
    assert [one.shape for one in suppress_groups([np.zeros((0, 4), np.float32)] * 2, 0.5)] == [(0,), (0,)]
