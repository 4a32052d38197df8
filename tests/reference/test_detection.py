"""Suppression of boxes that overlap a better one: all groups together as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.reference import detection
from irexec.reference.detection import suppress_groups


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0) for i in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    shared = width * height
    return shared / (sum(areas) - shared) if shared else 0


def _one_by_one(boxes: np.ndarray, overlap: float) -> list[bool]:
    kept: list[np.ndarray] = []
    mask = []
    for box in boxes:
        mask.append(all(_iou(box, other) <= overlap for other in kept))
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
