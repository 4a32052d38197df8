"""Random models of the suppression of boxes.

Scores are all different and thresholds are met by no overlap: which of equal scores comes first is not specified
everywhere, and the CPU plugin takes an overlap equal to the threshold for a greater one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, case, typed
from irexec.testing.case_generator import CaseGenerator, Table

RANDOM_CASES = Table()
_KINDS = ("f32", "f32", "f32", "f16")


def _scores(gen: CaseGenerator, kind: str, *shape: int) -> Typed:
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return typed(kind, ((gen.rng.permutation(1000)[:count] + 1) / 1024).reshape(shape))


def _corners(gen: CaseGenerator, *shape: int, size: float = 1.0) -> np.ndarray:
    """Low corners, then high corners, of boxes that overlap often."""
    low = gen.rng.uniform(0, size, (*shape, 2))
    return np.concatenate([low, low + gen.rng.uniform(0.2, 1, (*shape, 2)) * size], -1)


def _flag(gen: CaseGenerator) -> str:
    return gen.pick("true", "false")


def _number(gen: CaseGenerator, kind: str, value: float, vector: bool) -> Typed:
    return typed(kind, [value] if vector and gen.chance(0.3) else value)


@RANDOM_CASES.row(*(("NonMaxSuppression", since) for since in (1, 3, 4, 5, 9)))
def non_max_suppression(gen: CaseGenerator, type: str, since: int) -> Case:
    batches, classes, boxes, kind = gen.size(1, 3), gen.size(1, 4), gen.size(1, 20), gen.pick(*_KINDS)
    vector = since >= 5
    coordinates = _corners(gen, batches, boxes)
    encoding = gen.pick("corner", "center")
    if encoding == "center":
        coordinates[..., 2:] -= coordinates[..., :2]
    elif gen.chance():
        coordinates = coordinates[..., gen.pick([2, 1, 0, 3], [0, 3, 2, 1], [2, 3, 0, 1])]
    inputs = [
        _number(gen, gen.pick("i64", "i32"), gen.pick(1, 2, 5, 100), vector),
        _number(gen, "f32", gen.pick(0.1, 0.31, 0.52, 0.9, 1.5), vector),
        _number(gen, "f32", gen.pick(0.0, 0.0, 0.3, 0.6), vector),
        *([_number(gen, "f32", gen.pick(0.0, 0.2, 0.5, 1.0), vector)] if vector else []),
    ]
    texts = {"output_type": gen.pick("i32", "i64")} if since > 1 else {}
    return case(
        type,
        since,
        typed(kind, coordinates),
        _scores(gen, kind, batches, classes, boxes),
        *inputs[: gen.size(2, len(inputs))],
        box_encoding=encoding,
        sort_result_descending=_flag(gen),
        id="random",
        **texts,
    )


@RANDOM_CASES.row(("NMSRotated", 13))
def nms_rotated(gen: CaseGenerator, type: str, since: int) -> Case:
    batches, classes, boxes, kind = gen.size(1, 2), gen.size(1, 3), gen.size(1, 16), gen.pick(*_KINDS)
    coordinates = _corners(gen, batches, boxes, size=3)
    coordinates[..., 2:] -= coordinates[..., :2]
    angles = gen.rng.uniform(-4, 4, (batches, boxes, 1)) if gen.chance(0.8) else np.full((batches, boxes, 1), np.pi / 4)
    return case(
        type,
        since,
        typed(kind, np.concatenate([coordinates, angles], -1)),
        _scores(gen, kind, batches, classes, boxes),
        _number(gen, "i64", gen.pick(1, 2, 5, 100), True),
        _number(gen, "f32", gen.pick(0.1, 0.31, 0.52, 0.9, 1.5), True),
        _number(gen, "f32", gen.pick(0.0, 0.0, 0.3, 0.6), True),
        sort_result_descending=_flag(gen),
        output_type=gen.pick("i32", "i64"),
        clockwise=_flag(gen),
        id="random",
    )


def _texts(gen: CaseGenerator) -> dict[str, Any]:
    return {
        "sort_result_type": gen.pick("none", "score", "classid"),
        "sort_result_across_batch": _flag(gen),
        "output_type": gen.pick("i32", "i64"),
        "score_threshold": gen.pick("0", "0", "0.3", "0.6"),
        "nms_top_k": gen.pick("-1", "-1", "1", "3", "50"),
        "keep_top_k": gen.pick("-1", "-1", "1", "3", "50"),
        "background_class": gen.pick("-1", "-1", "0", "2", "7"),
        "normalized": _flag(gen),
    }


@RANDOM_CASES.row(("MatrixNms", 8))
def matrix_nms(gen: CaseGenerator, type: str, since: int) -> Case:
    batches, classes, boxes = gen.size(1, 3), gen.size(1, 4), gen.size(1, 14)
    return case(
        type,
        since,
        typed("f32", _corners(gen, batches, boxes, size=gen.pick(1, 10))),
        _scores(gen, "f32", batches, classes, boxes),
        decay_function=gen.pick("linear", "gaussian"),
        gaussian_sigma=gen.pick("0.5", "2"),
        post_threshold=gen.pick("0", "0.05", "0.4"),
        id="random",
        **_texts(gen),
    )


@RANDOM_CASES.row(("MulticlassNms", 8), ("MulticlassNms", 9))
def multiclass_nms(gen: CaseGenerator, type: str, since: int) -> Case:
    batches, classes, boxes, kind = gen.size(1, 3), gen.size(1, 4), gen.size(1, 14), gen.pick(*_KINDS)
    texts = _texts(gen) | {
        "iou_threshold": gen.pick("0.1", "0.31", "0.52", "0.73", "0.91"),
        "nms_eta": gen.pick("1", "1", "0.9", "0.6", "0"),
    }
    size = gen.pick(1, 10)
    if since == 8 or gen.chance():
        given = [typed(kind, _corners(gen, batches, boxes, size=size)), _scores(gen, kind, batches, classes, boxes)]
    else:
        # Without any box the plugin does not write its outputs.
        counts = [gen.size(1, 6), *gen.sizes(batches - 1, 0, 6)]
        counts = [counts[i] for i in gen.rng.permutation(batches)]
        given = [
            typed(kind, _corners(gen, classes, sum(counts), size=size)),
            _scores(gen, kind, classes, sum(counts)),
            gen.ints(counts, ("i64", "i32")),
        ]
    return case(type, since, *given, id="random", **texts)
