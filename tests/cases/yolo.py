"""Rows of RegionYolo and ReorgYolo."""

import math

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import odd

NAN, INF = float("nan"), float("inf")
LOG = math.log
V2 = {"axis": 1, "end_axis": 3, "do_softmax": True}
V3 = {"axis": 1, "end_axis": 3, "do_softmax": False}


def _numbers(name: str, *shape: int):
    return random(name, *shape, low=-4, high=4)


region_yolo = Operation("RegionYolo", 1, coords=4)
ROWS = [
    # By hand: x, y, w, h, score, two classes; the logistic function of log(a / (1 - a)) is a, softmax of log 1 and log 3 is 1/4 and 3/4.
    region_yolo(
        np.array([0, LOG(3), 5, -6, -LOG(3), LOG(1), LOG(3)], np.float32).reshape(1, 7, 1, 1),
        classes=2,
        num=1,
        **V2,
        gives=np.array([[0.5, 0.75, 5, -6, 0.25, 0.25, 0.75]], np.float32),
        id="by hand, YOLO v2",
    ),
    region_yolo(
        np.array([0, LOG(3), 5, -6, -LOG(3), LOG(1), LOG(3)], np.float32).reshape(1, 7, 1, 1),
        classes=2,
        num=9,
        mask="6",
        **V3,
        gives=np.array([0.5, 0.75, 5, -6, 0.25, 0.5, 0.75], np.float32).reshape(1, 7, 1, 1),
        id="by hand, YOLO v3",
    ),
    # Specification: do_softmax is true by default; OpenVINO's reader takes it for false.
    region_yolo(
        np.array([0, LOG(3), 5, -LOG(3), LOG(1), LOG(3)], np.float32).reshape(1, 6, 1, 1),
        coords=3,
        classes=2,
        num=1,
        axis=1,
        end_axis=3,
        gives=np.array([[0.5, 0.75, 5, 0.25, 0.25, 0.75]], np.float32),
        id="do_softmax by default",
    ),
    region_yolo(_numbers("f32", 2, 16, 2, 3), classes=3, num=2, anchors="1.5,2,3,4", **V2, id="two regions, two images"),
    region_yolo(_numbers("f32", 2, 16, 2, 3), classes=3, num=9, mask="3,7", anchors="1.5,2", **V3, id="mask of two"),
    region_yolo(_numbers("f32", 1, 18, 2, 1), classes=1, num=3, **V2, id="one class"),
    region_yolo(_numbers("f32", 1, 10, 2, 2), classes=0, num=2, mask="0,1", **V3, id="no classes"),
    region_yolo(_numbers("f32", 2, 12, 1, 2), coords=2, classes=3, num=2, **V2, id="two coords"),
    region_yolo(_numbers("f32", 2, 10, 1, 2), coords=1, classes=3, num=2, **V2, id="one coord, twice through the logistic function"),
    region_yolo(_numbers("f32", 2, 10, 1, 2), coords=1, classes=3, num=2, mask="0,1", **V3, id="one coord with a mask"),
    region_yolo(_numbers("f32", 2, 8, 1, 2), coords=0, classes=3, num=2, **V2, id="no coords"),
    region_yolo(_numbers("f32", 1, 9, 2, 2), classes=2, num=1, **V2, id="channels left over stay"),
    region_yolo(_numbers("f32", 1, 9, 2, 2), classes=2, num=1, mask="1", **V3, id="channels left over go"),
    region_yolo(_numbers("f16", 1, 16, 2, 2), classes=3, num=2, **V2, id="f16"),
    region_yolo(_numbers("bf16", 1, 16, 2, 2), classes=3, num=2, mask="0,1", **V3, id="bf16"),
    region_yolo(_numbers("f64", 1, 8, 1, 2), classes=3, num=1, **V2, id="f64"),
    region_yolo(typed("f32", np.array([INF, -INF, NAN, 1000, -1000, 1000, -1000]).reshape(1, 7, 1, 1)), classes=2, num=1, **V2, id="extremes"),
    region_yolo(typed("f32", np.array([INF, -INF, NAN, 1, NAN, INF, 2]).reshape(1, 7, 1, 1)), classes=2, num=1, mask="0", **V3, id="extremes with a mask"),
    # By hand: softmax of what has NaN is NaN.
    region_yolo(
        np.array([0, 0, 0, 0, NAN], np.float32).reshape(1, 5, 1, 1),
        coords=2,
        classes=2,
        num=1,
        **V2,
        gives=np.array([[0.5, 0.5, 0.5, NAN, NAN]], np.float32),
        id="NaN among the classes",
    ),
    region_yolo(np.zeros((0, 7, 2, 2), np.float32), classes=2, num=1, **V2, gives=np.zeros((0, 28), np.float32), id="no images"),
    region_yolo(_numbers("f32", 1, 7, 2, 2), classes=2, num=0, mask="", **V3, gives=np.zeros((1, 0, 2, 2), np.float32), id="empty mask"),
]  # fmt: skip
for axis, end in ((0, 3), (1, 2), (2, 3), (-3, -1), (3, 3), (2, 1), (0, 0)):
    ROWS.append(
        region_yolo(
            _numbers("f32", 2, 7, 2, 3),
            classes=2,
            num=1,
            do_softmax=True,
            axis=axis,
            end_axis=end,
            id=f"axes {axis} to {end} are one",
        )
    )
ROWS += [
    # Specification: its examples.
    region_yolo.facts("f32[1,255,26,26]", coords=4, classes=80, num=6, mask="0,1,2", **V3, gives="f32[1,255,26,26]", id="example, YOLO v3"),
    region_yolo.facts("f32[1,125,13,13]", coords=4, classes=20, num=5, **V2, gives="f32[1,21125]", id="example, YOLO v2"),
    region_yolo.facts("f16[?,125,2..4,13]", coords=4, classes=20, num=5, **V2, id="dynamic"),
    region_yolo.facts("f32[?,?,2..4,13]", coords=4, classes=20, num=5, mask="0,1", **V3, id="dynamic with a mask"),
    region_yolo.facts("f32[...]", coords=4, classes=20, num=5, mask="0,1", **V3, gives="f32[?,50,?,?]", id="rank unknown, with a mask"),
    region_yolo.facts("f32[...]", coords=4, classes=20, num=5, **V2, gives="f32[?,?]", id="rank unknown"),
    region_yolo.refuses("i32[1,7,2,2]", coords=4, classes=2, num=1, **V2, says="element type i32", id="integers"),
    region_yolo.refuses("f32[1,7,2]", coords=4, classes=2, num=1, **V2, says="data has rank 3", id="three axes"),
    region_yolo.refuses("f32[1,6,2,2]", coords=4, classes=2, num=1, **V2, says="data has 6 channels, expected 7", id="too few channels"),
    region_yolo.refuses("f32[1,13,2,2]", coords=4, classes=2, num=1, mask="0,1", **V3, says="13 channels, expected 14", id="too few channels for a mask"),
    region_yolo.refuses("f32[1,7,2,2]", coords=4, classes=2, num=1, axis=1, end_axis=4, do_softmax=True, says="end_axis 4 is out of range", id="axis out of range"),
    # By hand: the image of 4 channels of 2x2 is read as one channel of 4x4, channel 2i + j takes every second point from (i, j) on.
    case(
        "ReorgYolo", 2, np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2), stride=2,
        gives=np.array([0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15], np.float32).reshape(1, 16, 1, 1), id="by hand",
    ),
    case("ReorgYolo", 2, _numbers("f32", 2, 8, 4, 6), stride=2, id="two images"),
    case("ReorgYolo", 2, _numbers("f32", 1, 9, 3, 6), stride=3, id="stride 3"),
    case("ReorgYolo", 2, _numbers("f32", 2, 3, 2, 3), stride=1, id="stride 1"),
    case("ReorgYolo", 2, _numbers("f32", 2, 7, 4, 2), stride=2, id="channels that do not divide"),
    case("ReorgYolo", 2, _numbers("f32", 3, 5, 2, 4), stride=2, id="one channel over"),
    case("ReorgYolo", 2, _numbers("f32", 1, 5, 4, 6), stride="2,3", id="a list of strides"),
    case("ReorgYolo", 2, random("u8", 1, 4, 2, 4, low=0, high=255), stride=2, id="u8"),
    case("ReorgYolo", 2, random("i64", 1, 4, 2, 4, low=-9, high=9), stride=2, id="i64"),
    case("ReorgYolo", 2, _numbers("f16", 1, 4, 2, 4), stride=2, id="f16"),
    case("ReorgYolo", 2, _numbers("bf16", 1, 4, 2, 4), stride=2, id="bf16"),
    case("ReorgYolo", 2, random("boolean", 1, 4, 2, 4), stride=2, id="boolean"),
    case("ReorgYolo", 2, np.zeros((0, 4, 2, 4), np.float32), stride=2, gives=np.zeros((0, 16, 1, 2), np.float32), id="no images"),
    case("ReorgYolo", 2, np.zeros((2, 4, 0, 4), np.float32), stride=2, gives=np.zeros((2, 16, 0, 2), np.float32), id="no rows"),
    # Specification: its example.
    facts_case("ReorgYolo", 2, "f32[1,64,26,26]", stride=2, gives="f32[1,256,13,13]", id="example"),
    facts_case("ReorgYolo", 2, "f32[?,4..6,?,3..5]", stride=2, id="dynamic"),
    facts_case("ReorgYolo", 2, "f32[?,?,4,4]", stride=2, gives="f32[?,16..,2,2]", id="channels unknown"),
    facts_case("ReorgYolo", 2, "f32[...]", stride=2, gives="f32[?,16..,?,?]", id="rank unknown"),
    refuses("ReorgYolo", 2, "f32[1,4,2]", stride=2, says="data has rank 3", id="three axes"),
    refuses("ReorgYolo", 2, "f32[1,3,2,2]", stride=2, says="data has 3 channels, expected stride 2 squared", id="too few channels"),
    refuses("ReorgYolo", 2, "f32[1,4,3,2]", stride=2, says="3 is not a multiple of 2", id="rows that do not divide"),
    refuses("ReorgYolo", 2, "f32[1,4,2,2]", stride="", says="stride is empty", id="no stride"),
    refuses("ReorgYolo", 2, "f32[1,4,2,2]", stride="0", says="attribute 'stride': 0 is below the minimum, 1", id="stride 0"),
]  # fmt: skip
ROWS += [*odd(ROWS)]
