"""Rows of PriorBox and PriorBoxClustered."""

import numpy as np

from irexec.dtypes.elements import I64
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from irexec.testing import case, facts_case, refuses, typed

GRID, IMAGE = [2, 3], [20, 45]
ONE = [1, 1]
EXAMPLE = {
    "aspect_ratio": "2.0", "clip": "false", "density": "", "fixed_ratio": "", "fixed_size": "", "flip": "true",
    "max_size": "38.46", "min_size": "16.0", "offset": "0.5", "step": "16.0", "variance": "0.1,0.1,0.2,0.2",
}  # fmt: skip
CLUSTERS = {
    "clip": "false",
    "height": "44.0,10.0,30.0,19.0,94.0,32.0,61.0,53.0,17.0",
    "offset": "0.5",
    "step": "16.0",
    "variance": "0.1,0.1,0.2,0.2",
    "width": "86.0,13.0,57.0,39.0,68.0,34.0,142.0,50.0,23.0",
}


def _bounds(*sizes):
    return Fact(I64, (2,), np.array([*sizes], object))


ROWS = []
for since in (1, 8):
    ROWS += [
        # By hand: the centre of 10x20 is (10, 5), the box of 4 reaches 2 around it.
        case("PriorBox", since, ONE, [10, 20], min_size="4", offset="0.5", gives=np.array([[0.4, 0.3, 0.6, 0.7], [0.1] * 4], np.float32), id="by hand"),
        # By hand: offset counts with a step alone.
        case("PriorBox", since, ONE, [10, 20], min_size="4", offset="7", variance="1,2,3,4", gives=np.array([[0.4, 0.3, 0.6, 0.7], [1, 2, 3, 4]], np.float32), id="by hand, no step"),
        case("PriorBox", since, ONE, [10, 20], min_size="4", offset="0.75", step="8", variance="0.5", gives=np.array([[0.2, 0.4, 0.4, 0.8], [0.5] * 4], np.float32), id="by hand, a step"),
        # By hand: sqrt(4 * 9) = 6, the ratio 4 makes 8x2 of 4x4.
        case(
            "PriorBox", since, ONE, [10, 20], min_size="4", max_size="9", aspect_ratio="4", offset="0.5",
            gives=np.array([[0.4, 0.3, 0.6, 0.7, 0.35, 0.2, 0.65, 0.8, 0.3, 0.4, 0.7, 0.6], [0.1] * 12], np.float32), id="by hand, the order",
        ),
        case("PriorBox", since, GRID, IMAGE, min_size="4,7.5", max_size="9,11", aspect_ratio="2,3", offset="0.5", id="several of each"),
        case("PriorBox", since, GRID, IMAGE, min_size="4,7.5", max_size="9", aspect_ratio="2,0.4", flip="true", offset="0.25", step="5.5", variance="0.2", id="flipped, a max for one"),
        case("PriorBox", since, GRID, IMAGE, min_size="4", aspect_ratio="2,0.5,1,2", flip="true", offset="0", step="4", id="ratios given twice"),
        case("PriorBox", since, GRID, IMAGE, min_size="40,9", max_size="60", aspect_ratio="3", clip="true", offset="0.5", variance="0.1,0.1,0.2,0.2", id="clipped"),
        case("PriorBox", since, GRID, IMAGE, min_size="40,9", offset="0.5", variance="", id="beyond the image"),
        case("PriorBox", since, GRID, IMAGE, min_size="0.1,0.25", aspect_ratio="2,3", scale_all_sizes="false", offset="0.5", step="-1", id="sizes are parts, step -1"),
        case("PriorBox", since, GRID, IMAGE, min_size="0.1,0.25,0.4", aspect_ratio="2", flip="true", scale_all_sizes="false", offset="0.25", step="0.3", id="sizes and step are parts"),
        case("PriorBox", since, GRID, IMAGE, min_size="0.1", scale_all_sizes="false", offset="0.25", id="sizes are parts, no step"),
        # Specification: max_size is ignored then; OpenVINO writes beyond its memory.
        case(
            "PriorBox", since, ONE, [10, 20], min_size="0.4", max_size="0.9", scale_all_sizes="false", offset="0.5",
            gives=np.array([[0.4, 0.3, 0.6, 0.7], [0.1] * 4], np.float32), id="sizes are parts, max_size means nothing",
        ),
        case("PriorBox", since, GRID, IMAGE, min_size="4", offset="0.5", step="-1", id="step -1 with sizes in pixels"),
        case("PriorBox", since, GRID, IMAGE, fixed_size="7.5,3", density="3,2", offset="0.25", step="5", variance="0.3", id="fixed sizes"),
        case("PriorBox", since, GRID, IMAGE, fixed_size="7.5,3", density="2,1", aspect_ratio="2,0.4", flip="true", offset="0.5", id="fixed sizes, ratios"),
        case("PriorBox", since, GRID, IMAGE, fixed_size="17.5,30", density="2,1.9", fixed_ratio="2.5", offset="0.5", clip="true", id="fixed ratio"),
        case("PriorBox", since, ONE, IMAGE, fixed_size="8", density="2", fixed_ratio="2,0.5", aspect_ratio="3", offset="0.5", step="4", id="two fixed ratios"),
        case("PriorBox", since, GRID, IMAGE, fixed_size="40,60.5", density="1,2", offset="0.5", scale_all_sizes="false", step="0.5", id="fixed sizes are cut at the borders"),
        case("PriorBox", since, GRID, IMAGE, min_size="4", density="1", offset="0.5", id="density without fixed sizes"),
        case("PriorBox", since, typed("i32", GRID), typed("i32", IMAGE), min_size="4", offset="0.5", id="i32"),
        case("PriorBox", since, typed("u8", GRID), typed("u8", IMAGE), min_size="4", offset="0.5", id="u8"),
        case("PriorBox", since, GRID, IMAGE, offset="0.5", gives=np.zeros((2, 0), np.float32), id="no sizes"),
        case("PriorBox", since, [0, 3], IMAGE, min_size="4", offset="0.5", gives=np.zeros((2, 0), np.float32), id="no places"),
        facts_case("PriorBox", since, [24, 42], [384, 672], **EXAMPLE, gives="f32[2,16128]", id="example"),
        facts_case("PriorBox", since, "i64[2]", "i64[2]", **EXAMPLE, id="sizes unknown"),
        facts_case("PriorBox", since, [4, 5], "i64[?]", **EXAMPLE, id="image unknown"),
        facts_case("PriorBox", since, _bounds(Dim(2, 3), 5), IMAGE, **EXAMPLE, gives="f32[2,160..240]", id="bounded size"),
        facts_case("PriorBox", since, _bounds(ANY, 5), "i64[...]", **EXAMPLE, gives="f32[2,?]", id="rank unknown"),
        refuses("PriorBox", since, "f32[2]", IMAGE, **EXAMPLE, says="output_size has element type f32", id="float size"),
        refuses("PriorBox", since, "i64[3]", IMAGE, **EXAMPLE, says="expected 2 values", id="three sizes"),
        refuses("PriorBox", since, GRID, "i64[1,2]", **EXAMPLE, says="image_size has rank 2", id="matrix"),
        refuses("PriorBox", since, [2, -3], IMAGE, **EXAMPLE, says="output_size has -3", id="negative size"),
        refuses("PriorBox", since, GRID, IMAGE, **EXAMPLE | {"variance": "1,2"}, says="variance has 2 values", id="two variances"),
        refuses("PriorBox", since, GRID, IMAGE, **EXAMPLE | {"aspect_ratio": "0"}, says="aspect_ratio has values that are not positive", id="ratio 0"),
        refuses("PriorBox", since, GRID, IMAGE, **EXAMPLE | {"aspect_ratio": "nan"}, says="aspect_ratio has values", id="ratio NaN"),
        refuses("PriorBox", since, GRID, IMAGE, **EXAMPLE | {"max_size": "20,30"}, says="make 4 boxes in each cell, but count as 5", id="a max without a min"),
        refuses("PriorBox", since, GRID, IMAGE, fixed_size="4,5", density="1", offset="0", says="density has 1 values for 2 fixed sizes", id="density missing"),
        refuses("PriorBox", since, GRID, IMAGE, fixed_size="4", density="0.5", offset="0", says="density has values", id="density below 1"),
        refuses("PriorBox", since, GRID, IMAGE, fixed_size="inf", density="1", offset="0", says="that are not sizes", id="infinite size"),
        refuses("PriorBox", since, GRID, IMAGE, fixed_size="4", density="1", fixed_ratio="1,2", offset="0", says="make 2 boxes in each cell, but count as 1", id="ratios uncounted"),
        refuses("PriorBox", since, GRID, IMAGE, min_size="4", says="required attribute 'offset' is missing", id="no offset"),
    ]  # fmt: skip
ROWS += [
    case("PriorBox", 8, GRID, IMAGE, min_size="4,7", max_size="9,11", aspect_ratio="2,3", min_max_aspect_ratios_order="true", offset="0.5", id="max first"),
    case("PriorBox", 8, GRID, IMAGE, min_size="4,7", max_size="9,11", aspect_ratio="2,3", min_max_aspect_ratios_order="false", offset="0.5", id="max last"),
    case("PriorBox", 8, GRID, IMAGE, min_size="0.2,0.3", aspect_ratio="2", scale_all_sizes="false", min_max_aspect_ratios_order="false", offset="0.5", id="max last, sizes are parts"),
    # By hand: the centre is (10, 5).
    case(
        "PriorBoxClustered", 1, ONE, [10, 20], width="4,8", height="2,6", offset="0.5",
        gives=np.array([[0.4, 0.4, 0.6, 0.6, 0.3, 0.2, 0.7, 0.8], [0.1] * 8], np.float32), id="by hand",
    ),
    # Specification: width and height are 1 by default; OpenVINO's reader takes them for none.
    case("PriorBoxClustered", 1, ONE, [10, 20], offset="0.5", gives=np.array([[0.475, 0.45, 0.525, 0.55], [0.1] * 4], np.float32), id="sizes by default"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="7.5,3", height="3,2", offset="0.25", variance="0.1,0.1,0.2,0.2", id="no step"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="7.5,3", height="3,2", offset="0.25", step="16", id="step"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="7.5,3", height="3,2", offset="0.25", step="16", step_h="5", clip="false", variance="0.3", id="step_h"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="7.5", height="3", offset="0.25", step_w="5.5", clip="false", variance="", id="step_w alone leaves step_h 0"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="75,30", height="30,2", offset="0", step_w="4", step_h="6", clip="true", id="clipped"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="75,30", height="30,2", offset="0", step_w="4", step_h="6", clip="false", id="beyond the image"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="75,30", height="30,2", offset="1", id="clipped by default"),
    case("PriorBoxClustered", 1, typed("i32", GRID), typed("u16", IMAGE), width="7", height="3", offset="0.5", id="two types"),
    case("PriorBoxClustered", 1, GRID, IMAGE, width="", height="", offset="0.5", gives=np.zeros((2, 0), np.float32), id="no sizes"),
    case("PriorBoxClustered", 1, [2, 0], IMAGE, width="3", height="4", offset="0.5", gives=np.zeros((2, 0), np.float32), id="no places"),
    facts_case("PriorBoxClustered", 1, [10, 19], [180, 320], **CLUSTERS, gives="f32[2,6840]", id="example"),
    facts_case("PriorBoxClustered", 1, "i64[2]", "i32[2]", **CLUSTERS, id="sizes unknown"),
    facts_case("PriorBoxClustered", 1, _bounds(Dim(2, 3), Dim(4)), IMAGE, **CLUSTERS, gives="f32[2,288..]", id="bounded size"),
    refuses("PriorBoxClustered", 1, GRID, IMAGE, width="3,4", height="4", offset="0.5", says="width has 2 values, height 1", id="widths without heights"),
    refuses("PriorBoxClustered", 1, GRID, IMAGE, width="3", height="4", offset="0.5", variance="1,2,3", says="variance has 3 values", id="three variances"),
    refuses("PriorBoxClustered", 1, "boolean[2]", IMAGE, width="3", height="4", offset="0.5", says="output_size has element type boolean", id="boolean size"),
]  # fmt: skip
ROWS += [
    *(
        case(
            "PriorBox",
            since,
            [0, 3],
            IMAGE,
            min_size="4",
            offset="0.5",
            gives=np.zeros((2, 0), np.float32),
            id="no rows of places",
        )
        for since in (1, 8)
    )
]
