"""Bins of many points: as many passes over them as there are few points, and the same results whichever way is taken."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from irexec.errors import OpError
from irexec.reference import roi_align
from irexec.reference.roi_align import Boxes, corner_boxes, pool_boxes, rotated_boxes

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
