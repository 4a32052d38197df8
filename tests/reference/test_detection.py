"""Boxes that overlap a better one go: all groups at once as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.reference.detection import apart


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0) for i in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    shared = width * height
    return shared / (sum(areas) - shared) if shared else 0


def _one_by_one(boxes: np.ndarray, overlap: float) -> list[bool]:
    kept: list[np.ndarray] = []
    stays = []
    for box in boxes:
        stays.append(all(_iou(box, other) <= overlap for other in kept))
        kept += [box] * stays[-1]
    return stays


@pytest.mark.parametrize("overlap", [-0.5, 0, 0.2, 0.6])
def test_apart(overlap: float) -> None:
    rng = np.random.default_rng(3)
    groups = []
    for count in (0, 40, 1, 17, 0, 25):
        first = rng.integers(0, 8, (count, 2))
        groups.append(np.concatenate([first, first + rng.integers(0, 6, (count, 2))], 1).astype(np.float32))
    found = apart(groups, overlap)
    assert [one.tolist() for one in found] == [_one_by_one(group, overlap) for group in groups]


def test_apart_of_nothing() -> None:
    assert apart([], 0.5) == []
    assert [one.shape for one in apart([np.zeros((0, 4), np.float32)] * 2, 0.5)] == [(0,), (0,)]
