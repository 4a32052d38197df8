"""Rows of DetectionOutput."""

import dataclasses
from typing import Any

import numpy as np

from irexec.testing import Case, Typed, case, facts_case, random, refuses, typed

NAN, INF = float("nan"), float("inf")
CORNER, CENTER = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"
PLAIN = {"keep_top_k": "-1", "nms_threshold": "0.4", "normalized": "true"}
TARGET = PLAIN | {"variance_encoded_in_target": "true"}
# Boxes of which the second overlaps the first by half, the third none; offsets that leave them, and scores of background and two classes.
THREE = np.array([[[0.1, 0.1, 0.4, 0.4, 0.1, 0.1, 0.4, 0.25, 0.5, 0.5, 0.9, 0.8]]], np.float32)
STAY = np.zeros((1, 12), np.float32)
SCORES = np.array([[0.1, 0.5, 0.25, 0.2, 0.75, 0, 0.3, 0.25, 0.125]], np.float32)
FIRST, SECOND, THIRD = [0.1, 0.1, 0.4, 0.4], [0.1, 0.1, 0.4, 0.25], [0.5, 0.5, 0.9, 0.8]


def _found(rows: int, *found: list[float]) -> np.ndarray:
    """What is found, then a row that ends it, if there is room, and zeros."""
    result = np.zeros((1, 1, rows, 7), np.float32)
    for i, row in enumerate([*found, [-1, 0, 0, 0, 0, 0, 0]][:rows]):
        result[0, 0, i] = row
    return result


def _inputs(
    kind: str = "f32",
    images: int = 2,
    boxes: int = 5,
    classes: int = 3,
    *,
    share: bool = True,
    encoded: bool = False,
    batch: int = 1,
    sizes: tuple[int, int] | None = None,
    aux: bool = False,
    seed: int = 0,
) -> list[Typed]:
    """Boxes that overlap often, with scores of which no two are equal."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 0.4, (batch, boxes, 2))
    corners = np.concatenate([first, first + rng.uniform(0.1, 0.5, (batch, boxes, 2))], -1)
    if sizes is not None:
        corners = np.concatenate([np.zeros((batch, boxes, 1)), corners * np.array(sizes * 2)], -1)
    rows = [corners.reshape(batch, -1)]
    if not encoded:
        rows.append(rng.uniform(0.05, 0.5, rows[0].shape))
    count = images * boxes * classes
    locations = boxes * 4 * (1 if share else classes)
    given = [
        random(kind, images, locations, low=-0.4, high=0.4, seed=seed),
        typed(kind, rng.permutation(count).reshape(images, -1) / count),
        typed(kind, np.stack(rows, 1)),
    ]
    return (
        given
        + [
            random(kind, images, boxes * 2, low=0, seed=seed),
            random(kind, images, locations, low=-0.4, high=0.4, seed=seed + 1),
        ]
        * aux
    )


def _ones(images: int, boxes: int, classes: int, share: bool, normalized: bool, encoded: bool) -> tuple[str, str, str]:
    """The texts of the three inputs as facts."""
    locations = boxes * 4 * (1 if share else classes)
    return (
        f"f32[{images},{locations}]",
        f"f32[{images},{boxes * classes}]",
        f"f32[1,{1 if encoded else 2},{boxes * (4 if normalized else 5)}]",
    )


ROWS = []
for since in (1, 8):
    name = "DetectionOutput"

    def _of(classes: int, since: int = since, **attributes: Any) -> dict[str, Any]:
        return attributes | ({"num_classes": classes} if since == 1 else {})

    three, two, one = (_of(n, **TARGET) for n in (3, 2, 1))
    ROWS += [
        # By hand: the second box overlaps the first by 0.5, so of class 1 the first goes, of class 2 the score of the second is not above 0.
        case(
            name, since, STAY, SCORES, THREE, **three, id="by hand",
            gives=_found(9, [0, 1, 0.75, *SECOND], [0, 1, 0.25, *THIRD], [0, 2, 0.25, *FIRST], [0, 2, 0.125, *THIRD]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"nms_threshold": 0.6}, id="by hand, a threshold above the overlap",
            gives=_found(9, [0, 1, 0.75, *SECOND], [0, 1, 0.5, *FIRST], [0, 1, 0.25, *THIRD], [0, 2, 0.25, *FIRST], [0, 2, 0.125, *THIRD]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"keep_top_k": "3,7"}, id="by hand, keep_top_k, ties go by box",
            gives=_found(3, [0, 1, 0.75, *SECOND], [0, 1, 0.25, *THIRD], [0, 2, 0.25, *FIRST]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"keep_top_k": "2"}, id="by hand, keep_top_k of the image",
            gives=_found(2, [0, 1, 0.75, *SECOND], [0, 2, 0.25, *FIRST]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"top_k": "2"}, id="by hand, top_k before boxes go",
            gives=_found(6, [0, 1, 0.75, *SECOND], [0, 2, 0.25, *FIRST], [0, 2, 0.125, *THIRD]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"confidence_threshold": 0.25}, id="by hand, scores equal to the threshold",
            gives=_found(9, [0, 1, 0.75, *SECOND]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"decrease_label_id": True, "confidence_threshold": 0.25}, id="by hand, the best class of each box",
            gives=_found(9, [0, 0, 0.75, *SECOND], [0, 0, 0.25, *THIRD]),
        ),
        case(
            name, since, STAY, SCORES, THREE, **three | {"background_label_id": 1}, id="by hand, another background",
            gives=_found(9, [0, 0, np.float32(0.3), *THIRD], [0, 0, np.float32(0.2), *SECOND], [0, 2, 0.25, *FIRST], [0, 2, 0.125, *THIRD]),
        ),
        # By hand: OpenVINO wants the whole spelling.
        case(
            name, since, STAY, SCORES, THREE, **three | {"code_type": "center_size", "nms_threshold": 0.6, "keep_top_k": "1"}, id="by hand, the short name of a code_type",
            gives=_found(1, [0, 1, 0.75, *SECOND]),
        ),
        # By hand, the reference's rule: the plugin refuses a background but 0 with decrease_label_id.
        case(
            name, since, STAY, SCORES, THREE, **three | {"background_label_id": 1, "decrease_label_id": True}, id="by hand, the best class but the background",
            gives=_found(9, [0, 1, 0.25, *FIRST], [0, 1, 0.125, *THIRD]),
        ),
        case(name, since, STAY, np.zeros((1, 9), np.float32), THREE, **three, gives=_found(9), id="nothing"),
        case(name, since, STAY, SCORES, THREE, **three | {"keep_top_k": "0"}, gives=_found(9), id="keep_top_k 0"),
        case(name, since, STAY, SCORES, THREE, **three | {"top_k": "0"}, gives=_found(9), id="top_k 0"),
        case(name, since, STAY, SCORES, THREE, **three | {"nms_threshold": -1, "background_label_id": -1}, id="negative threshold of overlap"),
        case(name, since, STAY, SCORES, THREE, **three | {"confidence_threshold": -1}, id="negative threshold of scores"),
        # By hand: no images, no rows.
        case(name, since, STAY[:0], SCORES[:0], THREE, **three, gives=np.zeros((1, 1, 0, 7), np.float32), id="no images"),
    ]  # fmt: skip
    for code, encoded, share in (
        (CORNER, True, True),
        (CORNER, False, False),
        (CENTER, True, False),
        (CENTER, False, True),
    ):
        text = f"{code[24:].lower()}, {'target' if encoded else 'variances'}, {'shared' if share else 'of each class'}"
        form = _of(3, **PLAIN, code_type=code, share_location=share, variance_encoded_in_target=encoded)
        sized = form | {"normalized": "false", "input_width": "30", "input_height": "20"}
        ROWS += [
            case(name, since, *_inputs(share=share, encoded=encoded), **form, id=text),
            case(name, since, *_inputs(share=share, encoded=encoded, batch=2, sizes=(30, 20)), **sized, id=f"{text}, pixels"),
            case(name, since, *_inputs(share=share, encoded=encoded, aux=True), **form, objectness_score="0.3", id=f"{text}, five inputs"),
            case(name, since, *_inputs(share=share, encoded=encoded, aux=True, sizes=(30, 20)), **sized, objectness_score="0.3", id=f"{text}, five inputs, pixels"),
            case(name, since, *_inputs(share=share, encoded=encoded, seed=1), **form | {"top_k": "3", "keep_top_k": "4"}, clip_before_nms="true", id=f"{text}, clipped before"),
            case(name, since, *_inputs(share=share, encoded=encoded, seed=2), **form | {"top_k": "3"}, clip_after_nms="true", id=f"{text}, clipped after"),
            case(name, since, *_inputs(share=share, encoded=encoded, seed=3), **form | {"top_k": "4"}, decrease_label_id="true", id=f"{text}, the best class"),
        ]  # fmt: skip
    marked = _inputs(batch=2, sizes=(30, 20))
    marked[2].array.reshape(2, 2, 5, 5)[[0, 1], 0, [3, 1], 0] = -1
    pixels = _of(3, **PLAIN | {"normalized": "false"}, input_width="30", input_height="20")
    wild = typed("f32", np.where(np.arange(12) % 5 == 0, [INF, NAN, 300] * 4, 0.1).reshape(1, 12))
    ROWS += [
        case(name, since, *marked, **pixels, id="boxes end at -1"),
        case(name, since, *_inputs(sizes=(1, 1)), **_of(3, keep_top_k="-1", nms_threshold="0.4"), id="not normalized by default"),
        case(name, since, *_inputs(batch=2), **_of(3, **PLAIN), id="proposals of each image"),
        case(name, since, *_inputs(aux=True, seed=4), **_of(3, **PLAIN), objectness_score="0.6", decrease_label_id="true", id="five inputs, the best class"),
        case(name, since, *_inputs(aux=True, seed=4), **_of(3, **PLAIN), objectness_score="0.6", background_label_id="2", id="five inputs, background 2"),
        case(name, since, *_inputs(aux=True, seed=4), **_of(3, **PLAIN), objectness_score="0.6", background_label_id="-1", id="five inputs, no background"),
        case(name, since, *_inputs(images=1, boxes=30, classes=4, share=False), **_of(4, **PLAIN | {"top_k": "20", "keep_top_k": "10"}), share_location="false", id="many boxes"),
        case(name, since, STAY, np.array([[0, NAN, 0.5, 0, 0.25, NAN, 0, INF, -INF]], np.float32), THREE, **three, id="scores that are not finite"),
        case(name, since, STAY, np.array([[0, NAN, 0.5, 0, 0.25, NAN, 0, INF, -INF]], np.float32), THREE, **three, decrease_label_id="true", id="scores that are not finite, the best class"),
        case(name, since, STAY, np.full((1, 9), 0.5, np.float32), THREE, **three | {"top_k": "2"}, id="equal scores"),
        case(name, since, STAY, np.full((1, 9), 0.5, np.float32), THREE, **three | {"top_k": "2"}, decrease_label_id="true", id="equal scores, the best class"),
        case(name, since, wild, SCORES, THREE, **three, code_type=CENTER, id="offsets that are not finite"),
        case(name, since, wild, SCORES, THREE, **three, code_type=CENTER, clip_before_nms="true", id="offsets that are not finite, clipped"),
        case(name, since, STAY, SCORES, THREE[..., [2, 3, 0, 1, 4, 5, 6, 7, 8, 11, 10, 9]], **three, id="corners the wrong way round"),
        case(name, since, *_inputs("f16"), **_of(3, **PLAIN), id="f16"),
        case(name, since, *_inputs("bf16"), **_of(3, **PLAIN), id="bf16"),
        case(name, since, *_inputs("f64"), **_of(3, **PLAIN), id="f64"),
        case(name, since, *_inputs("f16")[:2], _inputs()[2], **_of(3, **PLAIN), id="proposals of another type"),
        case(name, since, *_inputs()[:2], _inputs("f16")[2], **_of(3, **PLAIN), id="f16 proposals"),
        # By hand: one class, which is the background.
        case(name, since, STAY, SCORES[:, :3], THREE, **one, gives=_found(3), id="background alone"),
        case(name, since, STAY, SCORES[:, :3], THREE, **one, background_label_id="-1", id="one class"),
        # Specification: its example, in which only the shapes are given.
        facts_case(
            name, since, "f32[1,5376]", "f32[1,2688]", "f32[1,2,5376]", gives="f32[1,1,200,7]", id="example",
            **_of(2, **PLAIN | {"keep_top_k": "200", "top_k": "200", "nms_threshold": "0.449", "code_type": CENTER}),
        ),
        facts_case(name, since, *_ones(2, 5, 3, True, True, True), **three, id="all scores"),
        facts_case(name, since, *_ones(2, 5, 3, True, True, True), **three | {"top_k": "4"}, id="top_k"),
        facts_case(name, since, *_ones(2, 5, 3, False, False, True), **three | {"normalized": "false", "share_location": "false"}, id="of each class"),
        facts_case(name, since, "f32[?,20]", "f32[1..3,15]", "f32[1,1,20]", **three, id="images unknown"),
        facts_case(name, since, "f32[?,20]", "f32[?,15]", "f32[3,1,20]", **three, gives="f32[1,1,45,7]", id="images by the proposals"),
        facts_case(name, since, "f32[2,?]", "f32[2,?]", "f32[1,1,?]", **three, id="boxes unknown"),
        facts_case(name, since, "f32[2,?]", "f32[2,?]", "f32[1,1,?]", **three | {"top_k": "4"}, id="boxes unknown, top_k"),
        facts_case(name, since, "f32[2,20]", "f32[2,?]", "f32[...]", **three, id="by the offsets alone"),
        facts_case(name, since, "f32[...]", "f32[...]", "f32[...]", **three | {"keep_top_k": "4"}, id="ranks unknown, keep_top_k"),
        facts_case(name, since, "f32[...]", "f32[...]", "f32[...]", "f32[2,10]", "f32[...]", **three, id="by the additional scores"),
        facts_case(name, since, "f32[?,?]", "f32[?,20]", "f32[...]", "f32[2,?]", "f32[2,40]", **two, gives="f32[1,1,40,7]", id="by the additional offsets"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", "f32[1,10]", **three, says="there are 4 inputs", id="four inputs"),
        refuses(name, since, "i32[1,20]", "i32[1,15]", "i32[1,1,20]", **three, says="box_logits has element type i32, expected a floating-point type", id="integers"),
        refuses(name, since, "f32[1,20]", "f16[1,15]", "f32[1,1,20]", **three, says="element types f32 and f16 differ", id="types that differ"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "i64[1,1,20]", **three, says="proposals has element type i64, expected a floating-point type", id="integer proposals"),
        refuses(name, since, "f32[1,20,1]", "f32[1,15]", "f32[1,1,20]", **three, says="box_logits has rank 3", id="rank of the offsets"),
        refuses(name, since, "f32[1,20]", "f32[15]", "f32[1,1,20]", **three, says="class_preds has rank 1", id="rank of the scores"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,20]", **three, says="proposals has rank 2", id="rank of the proposals"),
        refuses(name, since, "f32[1,20]", "f32[2,15]", "f32[1,1,20]", **three, says="class_preds is for 2 images, expected 1", id="images that differ"),
        refuses(name, since, "f32[3,20]", "f32[3,15]", "f32[2,1,20]", **three, says="is for 3 images, expected 2", id="proposals for fewer images"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,2,20]", **three, says="proposals have size 2 on axis 1, expected 1", id="variances that are not reference"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,21]", **three, says="proposals has 21 values for an image, expected 4", id="parts of boxes"),
        refuses(name, since, "f32[1,24]", "f32[1,15]", "f32[1,1,20]", **three, says="box_logits has 24 values for an image, expected 4 for each of 5 boxes", id="offsets of more boxes"),
        refuses(name, since, "f32[1,20]", "f32[1,16]", "f32[1,1,20]", **three, says="class_preds has 16 values for an image", id="scores of parts of boxes"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", **three, share_location="false", says="box_logits has 20 values for an image", id="offsets of one class"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", "f32[1,9]", "f32[1,20]", **three, says="aux_class_preds has 9 values", id="additional scores"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", "f32[1,10]", "f32[1,24]", **three, says="aux_box_preds has 24 values", id="additional offsets"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", **three | {"keep_top_k": ""}, says="keep_top_k is empty", id="no keep_top_k"),
        refuses(name, since, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", **three | {"code_type": "CENTRE"}, says="attribute 'code_type': 'CENTRE' is not one of caffe.PriorBoxParameter.CORNER, caffe.PriorBoxParameter.CENTER_SIZE, CORNER, CENTER_SIZE", id="code_type"),
    ]  # fmt: skip
ROWS += [
    # By hand: without boxes nothing is found.
    case("DetectionOutput", 1, np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32), np.zeros((1, 1, 0), np.float32), num_classes=2, **TARGET | {"keep_top_k": "2"}, gives=_found(4), id="no boxes"),
    refuses("DetectionOutput", 8, "f32[1,0]", "f32[1,0]", "f32[1,1,0]", **TARGET, says="proposals have no boxes", id="no boxes"),
    refuses("DetectionOutput", 8, "f32[1,20]", "f32[1,0]", "f32[1,1,20]", **TARGET, says="class_preds has 0 values", id="no classes"),
    refuses("DetectionOutput", 1, "f32[1,20]", "f32[1,15]", "f32[1,1,20]", **TARGET, says="required attribute 'num_classes' is missing", id="no number of classes"),
]  # fmt: skip
# CORNER is understood without its prefix, too.
for since in (1, 8):
    ROWS += [
        dataclasses.replace(row, attributes=row.attributes | {"code_type": "CORNER"}, name=f"{row.name}, CORNER")
        for row in ROWS
        if isinstance(row, Case)
        and row.since == since
        and row.gives is not None
        and row.attributes.get("code_type", CORNER) == CORNER
    ][:1]
