"""Postprocessing that is appended gives what NumPy gives of the outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from tests.support.edited import DEFAULT, NAMES, Original, by_openvino, check_values, saved
from tests.support.tiers import some


@pytest.fixture(scope="module", params=some((name for name in NAMES if name != "yolo"), DEFAULT))
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(request.param, tmp_path_factory.mktemp("network"))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _appended(original: Original, folder: Path, kind: str, **options: Any) -> tuple[list[np.ndarray], np.ndarray, int]:
    """The outputs with the step, the first output without it, and the axis of its classes."""
    model = original.model()
    with model.edit() as g:
        g.append(kind, 0, **options)
    first = original.values()[0]
    found = by_openvino(saved(model, folder), list(original.feed.values()))
    assert irexec.read_model(folder / "edited.xml").outputs[0].name == original.outputs[0]
    return found, first, options.get("axis", 1 if first.ndim >= 4 else first.ndim - 1)


def test_softmax(original: Original, tmp_path: Path) -> None:
    found, first, axis = _appended(original, tmp_path, "softmax")
    check_values(found[:1], [_softmax(first, axis)])


def test_softmax_along_an_axis(original: Original, tmp_path: Path) -> None:
    found, first, axis = _appended(original, tmp_path, "softmax", axis=0)
    check_values(found[:1], [_softmax(first, axis)])


def test_sigmoid(original: Original, tmp_path: Path) -> None:
    found, first, _ = _appended(original, tmp_path, "sigmoid")
    check_values(found[:1], [1 / (1 + np.exp(-first))])


def test_argmax(original: Original, tmp_path: Path) -> None:
    """Where the two largest values are nearly equal, rounding may choose either."""
    found, first, axis = _appended(original, tmp_path, "argmax")
    assert found[0].dtype == np.int64
    chosen = np.take_along_axis(first, np.expand_dims(found[0], axis), axis).squeeze(axis)
    check_values([chosen], [first.max(axis)])
    assert np.mean(found[0] == first.argmax(axis)) > 0.99


def test_topk(original: Original, tmp_path: Path) -> None:
    found, first, axis = _appended(original, tmp_path, "topk", k=2)
    assert len(found) == len(original.outputs) + 1
    check_values(found[:1], [np.flip(np.sort(first, axis), axis).take([0, 1], axis)])
    check_values([np.take_along_axis(first, found[-1], axis)], found[:1])
    names = irexec.read_model(tmp_path / "edited.xml").outputs[-1].names
    assert f"{original.outputs[0]}_indices" in names


def test_nms(tmp_path: Path) -> None:
    """Boxes and scores as outputs, and the boxes that a loop in NumPy keeps."""
    boxes, scores = (
        irexec.opset.parameter("1,6,4", "f32", name="boxes"),
        irexec.opset.parameter("1,2,6", "f32", name="scores"),
    )
    model = irexec.Model([boxes * 1.0, scores * 1.0], [boxes, scores])
    names = [port.name for port in model.outputs]
    with model.edit() as g:
        g.append("nms", boxes=names[0], scores=names[1], iou=0.4, score=0.3, max=3)
    rng = np.random.default_rng(1)
    corners = np.sort(rng.uniform(0, 1, (1, 6, 2, 2)).astype(np.float32), 2).reshape(1, 6, 4)
    values = rng.uniform(0, 1, (1, 2, 6)).astype(np.float32)
    found = by_openvino(saved(model, tmp_path), [corners, values])
    kept = [(0, c, i) for c in range(2) for i in kept_boxes(corners[0], values[0, c], iou=0.4, score=0.3, most=3)]
    count = int(found[4].reshape(-1)[0])
    assert sorted(map(tuple, found[2][:count].tolist())) == sorted(kept)
    assert [port.name for port in model.outputs][2:] == ["selected_indices", "selected_scores", "valid_outputs"]


def kept_boxes(boxes: np.ndarray, scores: np.ndarray, *, iou: float, score: float, most: int) -> list[int]:
    """The indices of the boxes that a loop over falling scores keeps."""
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] > score and len(kept) < most and all(_overlap(boxes[i], boxes[j]) <= iou for j in kept):
            kept.append(int(i))
    return kept


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return float(common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common))


@pytest.mark.parametrize(
    ("kind", "output", "options", "message"),
    [
        ("softmaxx", 0, {}, "'softmaxx' is not one of softmax, sigmoid, argmax, topk, nms"),
        ("softmax", "nowhere", {}, "there is no output 'nowhere'"),
        ("softmax", 0, {"k": 2}, "softmax has no option 'k'; it has axis"),
        ("softmax", 0, {"axis": 9}, "there is no axis 9"),
        ("topk", 0, {"k": "a"}, "topk: the option k is 'a', expected a whole number"),
        ("topk", 0, {"k": 0}, "topk: the option k is 0, expected at least 1"),
        ("nms", 0, {"iou": "x"}, "nms: the option iou is 'x', expected a number"),
        ("nms", 0, {}, "nms needs the options boxes and scores"),
    ],
)
def test_what_does_not_fit_is_refused(
    kind: str, output: str | int, options: dict[str, Any], message: str, original: Original
) -> None:
    model = original.model()
    with pytest.raises(irexec.InputError, match=message), model.edit() as g:
        g.append(kind, output, **options)
