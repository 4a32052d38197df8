"""Random models of the suppression of boxes.

Scores are all different and thresholds are met by no overlap: which of equal scores comes first is not specified everywhere, and
the CPU plugin takes an overlap equal to the threshold for a greater one.
"""

from __future__ import annotations

import numpy as np

from tests.oracle.draw import Draw, Table
from tests.support.cases import Case, Typed, case, typed

DRAWS = Table()
_KINDS = ("f32", "f32", "f32", "f16")


def _scores(d: Draw, kind: str, *shape: int) -> Typed:
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return typed(kind, ((d.rng.permutation(1000)[:count] + 1) / 1024).reshape(shape))


def _corners(d: Draw, *shape: int, size: float = 1.0) -> np.ndarray:
    """Low corners, then high corners, of boxes that overlap often."""
    low = d.rng.uniform(0, size, (*shape, 2))
    return np.concatenate([low, low + d.rng.uniform(0.2, 1, (*shape, 2)) * size], -1)


def _flag(d: Draw) -> str:
    return d.pick("true", "false")


def _number(d: Draw, kind: str, value: float, vector: bool) -> Typed:
    return typed(kind, [value] if vector and d.chance(0.3) else value)


@DRAWS.row(*(("NonMaxSuppression", since) for since in (1, 3, 4, 5, 9)))
def non_max_suppression(d: Draw, type: str, since: int) -> Case:
    batches, classes, boxes, kind = d.size(1, 3), d.size(1, 4), d.size(1, 20), d.pick(*_KINDS)
    vector = since >= 5
    coordinates = _corners(d, batches, boxes)
    encoding = d.pick("corner", "center")
    if encoding == "center":
        coordinates[..., 2:] -= coordinates[..., :2]
    elif d.chance():
        coordinates = coordinates[..., d.pick([2, 1, 0, 3], [0, 3, 2, 1], [2, 3, 0, 1])]
    inputs = [
        _number(d, d.pick("i64", "i32"), d.pick(1, 2, 5, 100), vector),
        _number(d, "f32", d.pick(0.1, 0.31, 0.52, 0.9, 1.5), vector),
        _number(d, "f32", d.pick(0.0, 0.0, 0.3, 0.6), vector),
        *([_number(d, "f32", d.pick(0.0, 0.2, 0.5, 1.0), vector)] if vector else []),
    ]
    texts = {"output_type": d.pick("i32", "i64")} if since > 1 else {}
    return case(
        type, since, typed(kind, coordinates), _scores(d, kind, batches, classes, boxes), *inputs[: d.size(2, len(inputs))],
        box_encoding=encoding, sort_result_descending=_flag(d), id="drawn", **texts,
    )  # fmt: skip


@DRAWS.row(("NMSRotated", 13))
def nms_rotated(d: Draw, type: str, since: int) -> Case:
    batches, classes, boxes, kind = d.size(1, 2), d.size(1, 3), d.size(1, 16), d.pick(*_KINDS)
    coordinates = _corners(d, batches, boxes, size=3)
    coordinates[..., 2:] -= coordinates[..., :2]
    angles = d.rng.uniform(-4, 4, (batches, boxes, 1)) if d.chance(0.8) else np.full((batches, boxes, 1), np.pi / 4)
    return case(
        type, since, typed(kind, np.concatenate([coordinates, angles], -1)), _scores(d, kind, batches, classes, boxes),
        _number(d, "i64", d.pick(1, 2, 5, 100), True), _number(d, "f32", d.pick(0.1, 0.31, 0.52, 0.9, 1.5), True),
        _number(d, "f32", d.pick(0.0, 0.0, 0.3, 0.6), True), sort_result_descending=_flag(d), output_type=d.pick("i32", "i64"),
        clockwise=_flag(d), id="drawn",
    )  # fmt: skip


def _texts(d: Draw) -> dict[str, str]:
    return {
        "sort_result_type": d.pick("none", "score", "classid"),
        "sort_result_across_batch": _flag(d),
        "output_type": d.pick("i32", "i64"),
        "score_threshold": d.pick("0", "0", "0.3", "0.6"),
        "nms_top_k": d.pick("-1", "-1", "1", "3", "50"),
        "keep_top_k": d.pick("-1", "-1", "1", "3", "50"),
        "background_class": d.pick("-1", "-1", "0", "2", "7"),
        "normalized": _flag(d),
    }


@DRAWS.row(("MatrixNms", 8))
def matrix_nms(d: Draw, type: str, since: int) -> Case:
    batches, classes, boxes = d.size(1, 3), d.size(1, 4), d.size(1, 14)
    return case(
        type, since, typed("f32", _corners(d, batches, boxes, size=d.pick(1, 10))), _scores(d, "f32", batches, classes, boxes),
        decay_function=d.pick("linear", "gaussian"), gaussian_sigma=d.pick("0.5", "2"), post_threshold=d.pick("0", "0.05", "0.4"),
        id="drawn", **_texts(d),
    )  # fmt: skip


@DRAWS.row(("MulticlassNms", 8), ("MulticlassNms", 9))
def multiclass_nms(d: Draw, type: str, since: int) -> Case:
    batches, classes, boxes, kind = d.size(1, 3), d.size(1, 4), d.size(1, 14), d.pick(*_KINDS)
    texts = _texts(d) | {"iou_threshold": d.pick("0.1", "0.31", "0.52", "0.73", "0.91"), "nms_eta": d.pick("1", "1", "0.9", "0.6", "0")}
    size = d.pick(1, 10)
    if since == 8 or d.chance():
        given = [typed(kind, _corners(d, batches, boxes, size=size)), _scores(d, kind, batches, classes, boxes)]
    else:
        # Without any box the plugin does not write its outputs.
        counts = [d.size(1, 6), *d.sizes(batches - 1, 0, 6)]
        counts = [counts[i] for i in d.rng.permutation(batches)]
        given = [
            typed(kind, _corners(d, classes, sum(counts), size=size)),
            _scores(d, kind, classes, sum(counts)),
            d.ints(counts, ("i64", "i32")),
        ]
    return case(type, since, *given, id="drawn", **texts)
