"""Rows of pooling of regions of interest."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.support.cases import emptied, odd

X = random("f32", 2, 3, 7, 9, low=-2, high=2)
BATCH = [1, 0, 1, 0]
# Inside; beyond the border; a point; larger than the image.
CORNERS = np.array([[1.3, 0.7, 6.2, 5.1], [-2.5, -1.25, 3.5, 2.75], [4, 3, 4, 3], [-3, -2, 11.5, 9.5]], np.float32)
# Bins of hundreds of points: inside of a large image, partly outside, larger than the image, and few points beside them.
LARGE = random("f32", 2, 2, 40, 50, low=-2, high=2)
MANY_POINTS = np.array(
    [[2.3, 1.1, 47.2, 38.4], [-30.5, -12.25, 20.5, 31.75], [-40, -50, 95.5, 90.25], [4, 3, 9, 7]], np.float32
)
MANY_ROTATED = np.array([[25, 20, 40.5, 30.25, 0.4], [1, 1, 61, 47, -1.2], [4, 3, 3.5, 2.25, 3]], np.float32)
ROTATED_BOXES = np.array(
    [[4.2, 3.1, 5.3, 3.7, 0.4], [1, 1, 6, 2, -1.2], [4, 3, 0.5, 0.25, 3], [5, 3, 14, 10, 2]], np.float32
)


def aligned(h=2, w=3, ratio=2, scale=1, **more):
    return {"pooled_h": h, "pooled_w": w, "sampling_ratio": ratio, "spatial_scale": scale} | more


def boxed(corners, images=(1, 0, 1, 0), kind="f32"):
    return typed(kind, np.concatenate([np.array(images, np.float32)[:, None], corners], 1))


# One row is one line.
# fmt: off
ROWS = []
for since, modes in ((3, (None,)), (9, ("asymmetric", "half_pixel_for_nn", "half_pixel"))):
    for mode in ("avg", "max"):
        for ratio in (0, 1, 2):
            for way in modes:
                # Of a point, half a pixel moved, the plugin makes NaN: see the row below.
                rois = CORNERS if way in (None, "asymmetric") or ratio else CORNERS + np.array([0, 0, 1.5, 1], np.float32)
                extra = {} if way is None else {"aligned_mode": way}
                name = ", ".join(filter(None, (mode, f"ratio {ratio}", way)))
                ROWS.append(case("ROIAlign", since, X, rois, BATCH, **aligned(ratio=ratio, mode=mode, **extra), id=name))
    ROWS += [
        case("ROIAlign", since, X, CORNERS * 8, BATCH, **aligned(scale=0.125, mode="avg"), id="scaled"),
        case("ROIAlign", since, X, CORNERS, typed("i32", BATCH), **aligned(4, 1, mode="avg"), id="i32 indices"),
        # In quarters, which f16 and bf16 hold exactly.
        case("ROIAlign", since, random("f16", 2, 3, 7, 9), typed("f16", np.rint(CORNERS * 4) / 4), BATCH, **aligned(2, 2, mode="avg"), id="f16"),
        case("ROIAlign", since, random("bf16", 2, 3, 7, 9), typed("bf16", np.rint(CORNERS * 4) / 4), BATCH, **aligned(2, 2, mode="max"), id="bf16"),
        # By hand: a box that is NaN has no point; the mean of points that are NaN is NaN.
        case("ROIAlign", since, X.array[:1, :1], [[np.nan, 0.0, 3.0, 3.0]], [0], **aligned(1, 1, mode="max"), gives=np.zeros((1, 1, 1, 1), np.float32), id="NaN, max"),
        case("ROIAlign", since, X.array[:1, :1], [[np.nan, 0.0, 3.0, 3.0]], [0], **aligned(1, 1, mode="avg"), id="NaN, avg"),
        case("ROIAlign", since, -np.abs(X.array), CORNERS, BATCH, **aligned(mode="max"), id="the maximum is 0 at least"),
        case("ROIAlign", since, X, np.zeros((0, 4), np.float32), np.zeros(0, np.int64), **aligned(mode="avg"), gives=np.zeros((0, 3, 2, 3), np.float32), id="no boxes"),
        facts_case("ROIAlign", since, "f32[?,3..5,?,?]", "f32[2..7,?]", "i64[5..]", **aligned(mode="avg"), id="dynamic"),
        facts_case("ROIAlign", since, "f32[...]", "f32[...]", "i64[4]", **aligned(mode="avg"), id="ranks unknown"),
        refuses("ROIAlign", since, "f32[1,3,8]", "f32[2,4]", "i64[2]", **aligned(mode="avg"), says="data has rank 3, expected 4", id="rank of data"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f32[2,5]", "i64[2]", **aligned(mode="avg"), says="a box has 5 values, expected 4", id="numbers"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f32[8]", "i64[2]", **aligned(mode="avg"), says="rois has rank 1, expected 2", id="rank of rois"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f32[2,4]", "i64[3]", **aligned(mode="avg"), says="2 boxes and 3 batch indices", id="counts"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f32[2,4]", "f32[2]", **aligned(mode="avg"), says="batch_indices has element type f32", id="indices"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f16[2,4]", "i64[2]", **aligned(mode="avg"), says="element types f32 and f16 differ", id="types"),
        refuses("ROIAlign", since, "i32[1,3,8,8]", "i32[2,4]", "i64[2]", **aligned(mode="avg"), says="expected a floating-point type", id="integers"),
        refuses("ROIAlign", since, "f32[1,3,8,8]", "f32[2,4]", "i64[2]", **aligned(scale=0, mode="avg"), says="spatial_scale 0.0 is not a positive", id="scale"),
    ]
ROWS += [
    case("ROIAlign", 9, X.array[:1, :1], [[2.0, 2.0, 2.0, 2.0]], [0], **aligned(1, 2, 0, mode="avg", aligned_mode="half_pixel"), gives=np.zeros((1, 1, 1, 2), np.float32), id="no extent"),
    case("ROIAlign", 9, X, CORNERS[:, [2, 3, 0, 1]], BATCH, **aligned(mode="avg", aligned_mode="half_pixel"), id="inside out"),
]
for mode in ("avg", "max"):
    ROWS += [
        case("ROIAlign", 9, LARGE, MANY_POINTS, BATCH, **aligned(ratio=0, mode=mode, aligned_mode="half_pixel"), id=f"many points, {mode}"),
        case("ROIAlign", 3, LARGE, MANY_POINTS[:2], BATCH[:2], **aligned(1, 2, 11, mode=mode), id=f"many points of small boxes, {mode}"),
    ]
ROWS.append(case("ROIAlignRotated", 15, LARGE, MANY_ROTATED, BATCH[:3], **aligned(ratio=0, clockwise_mode="true"), id="many points"))
for clockwise in ("true", "false"):
    for ratio in (0, 1, 3):
        ROWS.append(case("ROIAlignRotated", 15, X, ROTATED_BOXES, BATCH, **aligned(ratio=ratio, clockwise_mode=clockwise), id=f"ratio {ratio}, clockwise {clockwise}"))
ROWS += [
    case("ROIAlignRotated", 15, X, ROTATED_BOXES, BATCH, **aligned(3, 1), id="defaults"),
    case("ROIAlignRotated", 15, X, ROTATED_BOXES * np.array([4, 4, 4, 4, 1], np.float32), typed("i32", BATCH), **aligned(scale=0.25), id="scaled"),
    case("ROIAlignRotated", 15, random("f16", 2, 3, 7, 9), typed("f16", ROTATED_BOXES), BATCH, **aligned(), id="f16"),
    # By hand: a turn by nothing is ROIAlign of half_pixel_for_nn; the middle of pixels 0 to 3 is amid all four.
    case("ROIAlignRotated", 15, [[[[1.0, 2.0], [3.0, 6.0]]]], [[1.0, 1.0, 1.0, 1.0, 0.0]], [0], **aligned(1, 1, 1), gives=np.array([[[[3]]]], np.float32), id="middle"),
    case("ROIAlignRotated", 15, typed("bf16", [[[[1.0, 2.0], [3.0, 6.0]]]]), typed("bf16", [[1.0, 1.0, 1.0, 1.0, 0.0]]), [0], **aligned(1, 1, 1), gives=np.array([[[[3]]]], np.float32), id="bf16"),
    facts_case("ROIAlignRotated", 15, "f32[?,3..5,?,?]", "f32[2..7,?]", "i64[5..]", **aligned(), id="dynamic"),
    refuses("ROIAlignRotated", 15, "f32[1,3,8,8]", "f32[2,4]", "i64[2]", **aligned(), says="a box has 4 values, expected 5", id="numbers"),
]


def pooled(h=2, w=3, scale=1, **more):
    return {"pooled_h": h, "pooled_w": w, "spatial_scale": scale} | more


PARTS = CORNERS / np.array([8, 6, 8, 6], np.float32)
ROWS += [
    case("ROIPooling", 2, X, boxed(CORNERS), **pooled(), id="max"),
    case("ROIPooling", 2, X, boxed(CORNERS), **pooled(3, 3, method="max"), id="max, shared pixels"),
    case("ROIPooling", 2, X, boxed(CORNERS), **pooled(1, 1, method="max"), id="max, one bin"),
    case("ROIPooling", 2, X, boxed(CORNERS * 4), **pooled(scale=0.25, method="max"), id="max, scaled"),
    case("ROIPooling", 2, X, boxed(CORNERS + 20), **pooled(method="max"), id="max, outside"),
    case("ROIPooling", 2, X, boxed(CORNERS[:, [2, 3, 0, 1]]), **pooled(method="max"), id="max, inside out"),
    # Halves are rounded away from zero.
    case("ROIPooling", 2, X, boxed(np.array([[0.5, 1.5, 2.5, 3.5], [-0.5, -1.5, 4.5, 2.5]], np.float32), (0, 1)), **pooled(), id="max, halves"),
    case("ROIPooling", 2, X, boxed(PARTS), **pooled(method="bilinear"), id="bilinear"),
    case("ROIPooling", 2, X, boxed(PARTS), **pooled(1, 1, 0.5, method="bilinear"), id="bilinear, one bin"),
    case("ROIPooling", 2, X, boxed(np.array([[0, 0, 1, 1]], np.float32), (1,)), **pooled(7, 9, method="bilinear"), id="bilinear, all"),
    case("ROIPooling", 2, X, boxed(CORNERS, (1, 0, -1, 0)), **pooled(), id="ended"),
    case("ROIPooling", 2, X, boxed(PARTS, (1, -1, 0, 0)), **pooled(method="bilinear"), id="bilinear, ended"),
    case("ROIPooling", 2, random("f16", 2, 3, 7, 9), boxed(np.rint(CORNERS), kind="f16"), **pooled(), id="f16"),
    case("ROIPooling", 2, random("bf16", 2, 3, 7, 9), boxed(np.rint(CORNERS), kind="bf16"), **pooled(), id="bf16"),
    case("ROIPooling", 2, random("f16", 2, 3, 7, 9), boxed(np.array([[0.25, 0.25, 0.75, 0.5]]), (1,), "f16"), **pooled(3, 3, method="bilinear"), id="bilinear, f16"),
    case("ROIPooling", 2, X, np.zeros((0, 5), np.float32), **pooled(), gives=np.zeros((0, 3, 2, 3), np.float32), id="no boxes"),
    # By hand: points at NaN are not inside.
    case("ROIPooling", 2, X.array[:1, :1], [[0.0, 0.0, 0.25, 0.5, np.nan]], **pooled(method="bilinear"), gives=np.zeros((1, 1, 2, 3), np.float32), id="bilinear, NaN"),
    facts_case("ROIPooling", 2, "f32[?,3..5,?,?]", "f32[2..7,?]", **pooled(), id="dynamic"),
    facts_case("ROIPooling", 2, "f32[...]", "f32[...]", **pooled(), id="ranks unknown"),
    refuses("ROIPooling", 2, "f32[1,3,8]", "f32[2,5]", **pooled(), says="data has rank 3, expected 4", id="rank of data"),
    refuses("ROIPooling", 2, "f32[1,3,8,8]", "f32[2,4]", **pooled(), says="a box has 4 values, expected 5", id="numbers"),
    refuses("ROIPooling", 2, "f32[1,3,8,8]", "f16[2,5]", **pooled(), says="element types f32 and f16 differ", id="types"),
    refuses("ROIPooling", 2, "i64[1,3,8,8]", "i64[2,5]", **pooled(), says="expected a floating-point type", id="integers"),
    refuses("ROIPooling", 2, "f32[1,3,8,8]", "f32[2,5]", **pooled(scale="nan"), says="spatial_scale nan is not a positive", id="scale"),
]

S = random("f32", 2, 8, 7, 9, low=-2, high=2)


def sensitive(outputs=2, group=2, scale=1, mode="average", **more):
    return {"output_dim": outputs, "group_size": group, "spatial_scale": scale, "mode": mode} | more


BINS = {"spatial_bins_x": 2, "spatial_bins_y": 2}
ROWS += [
    case("PSROIPooling", 1, S, boxed(CORNERS), **sensitive(), id="average"),
    case("PSROIPooling", 1, S, boxed(CORNERS), **sensitive(8, 1), id="average, one bin"),
    case("PSROIPooling", 1, S, boxed(CORNERS * 2), **sensitive(scale=0.5), id="average, scaled"),
    case("PSROIPooling", 1, S, boxed(CORNERS + 20), **sensitive(), id="average, outside"),
    case("PSROIPooling", 1, S, boxed(CORNERS[:, [2, 3, 0, 1]]), **sensitive(), id="average, inside out"),
    case("PSROIPooling", 1, S, boxed(PARTS), **sensitive(mode="bilinear", **BINS), id="bilinear"),
    case("PSROIPooling", 1, S, boxed(PARTS), **sensitive(2, 3, mode="bilinear", **BINS), id="bilinear, more bins"),
    case("PSROIPooling", 1, S, boxed(PARTS), **sensitive(1, 1, mode="bilinear", spatial_bins_x=4, spatial_bins_y=2), id="bilinear, one bin"),
    case("PSROIPooling", 1, S, boxed(PARTS * 2), **sensitive(4, 2, 0.5, mode="bilinear", spatial_bins_x=1, spatial_bins_y=2), id="bilinear, scaled"),
    case("PSROIPooling", 1, S, boxed(CORNERS, (1, 0, -1, 0)), **sensitive(), id="ended"),
    case("PSROIPooling", 1, random("f16", 2, 8, 7, 9), boxed(np.rint(CORNERS), kind="f16"), **sensitive(), id="f16"),
    case("PSROIPooling", 1, random("f16", 2, 8, 7, 9), boxed(CORNERS), **sensitive(), id="f16 data"),
    case("PSROIPooling", 1, random("bf16", 2, 8, 7, 9), boxed(np.rint(CORNERS), kind="bf16"), **sensitive(), id="bf16"),
    case("PSROIPooling", 1, S, np.zeros((0, 5), np.float32), **sensitive(), gives=np.zeros((0, 2, 2, 2), np.float32), id="no boxes"),
    # By hand: the specification's defaults, which OpenVINO's reader does not know; pixels 1 to 2 of both axes.
    case("PSROIPooling", 1, np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), [[0.0, 1.0, 1.0, 2.0, 2.0]], output_dim="1", spatial_scale="1", gives=np.array([[[[6]]]], np.float32), id="defaults"),
    facts_case("PSROIPooling", 1, "f32[?,?,?,?]", "f32[2..7,?]", **sensitive(spatial_bins_x=1, spatial_bins_y=1), id="dynamic"),
    facts_case("PSROIPooling", 1, "f32[...]", "f32[...]", **sensitive(spatial_bins_x=1, spatial_bins_y=1), id="ranks unknown"),
    refuses("PSROIPooling", 1, "f32[1,9,8,8]", "f32[2,5]", **sensitive(), says="data has 9 channels, expected 4 for each of 2 outputs", id="channels"),
    refuses("PSROIPooling", 1, "f32[1,9,8,8]", "f32[2,5]", **sensitive(mode="bilinear"), says="data has 9 channels, expected 1 for each of 2 outputs", id="channels, bilinear"),
    refuses("PSROIPooling", 1, "f32[1,8,8,8]", "f32[2,4]", **sensitive(), says="a box has 4 values, expected 5", id="numbers"),
    refuses("PSROIPooling", 1, "f32[1,8,8]", "f32[2,5]", **sensitive(), says="data has rank 3, expected 4", id="rank of data"),
    refuses("PSROIPooling", 1, "f32[1,8,8,8]", "i32[2,5]", **sensitive(), says="rois has element type i32, expected a floating-point type", id="integers"),
]

OFFSETS = random("f32", 4, 2, 3, 3)


def deformable(outputs=2, group=2, scale=1, **more):
    return {"output_dim": outputs, "group_size": group, "spatial_scale": scale} | more


ROWS += [
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS), **deformable(), id="defaults, no offsets"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS), **deformable(mode="bilinear_deformable", spatial_bins_x=3, spatial_bins_y=2), id="no offsets"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS * 2), **deformable(8, 1, 0.5, **BINS), id="one bin, scaled"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS), OFFSETS, **deformable(part_size=3, trans_std=0.3, **BINS), id="offsets"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS), random("f32", 4, 4, 1, 1), **deformable(**BINS), id="two classes"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS), random("f32", 4, 4, 2, 2), **deformable(part_size=2, trans_std=0, **BINS), id="offsets that do not count"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS, (1, 0, -1, 0)), OFFSETS, **deformable(part_size=3), id="ended"),
    case("DeformablePSROIPooling", 1, S, boxed(CORNERS + 20), **deformable(), id="outside"),
    case("DeformablePSROIPooling", 1, random("f16", 2, 8, 7, 9), boxed(np.rint(CORNERS), kind="f16"), **deformable(**BINS), id="f16"),
    case("DeformablePSROIPooling", 1, random("f16", 2, 8, 7, 9), boxed(np.rint(CORNERS), kind="f16"), random("f16", 4, 2, 3, 3), **deformable(part_size=3, trans_std=0.1, **BINS), id="f16, offsets"),
    case("DeformablePSROIPooling", 1, random("bf16", 2, 8, 7, 9), boxed(np.rint(CORNERS), kind="bf16"), **deformable(**BINS), id="bf16"),
    case("DeformablePSROIPooling", 1, S, np.zeros((0, 5), np.float32), **deformable(), gives=np.zeros((0, 2, 2, 2), np.float32), id="no boxes"),
    facts_case("DeformablePSROIPooling", 1, "f32[?,?,?,?]", "f32[2..7,?]", **deformable(), id="dynamic"),
    facts_case("DeformablePSROIPooling", 1, "f32[...]", "f32[2..7,5]", "f32[3..9,2,3,3]", **deformable(part_size=3), id="dynamic offsets"),
    refuses("DeformablePSROIPooling", 1, "f32[1,9,8,8]", "f32[2,5]", **deformable(), says="data has 9 channels, expected 4 for each of 2 outputs", id="channels"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "f32[3,2,1,1]", **deformable(), says="there are 2 boxes and offsets of 3", id="boxes"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "f32[2,2,1,1]", **deformable(part_size=2), says="are not of 2 by 2 parts", id="parts"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", **deformable(spatial_bins_x=10**9, spatial_bins_y=4), says="a bin has 4 by 1000000000 points, expected 1048576 at most", id="points"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "f32[2,3,1,1]", **deformable(), says="3 channels of offsets", id="pairs"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "f32[2,6,1,1]", **deformable(), says="6 channels of offsets", id="classes"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "f32[2,2,1]", **deformable(), says="offsets has rank 3, expected 4", id="rank of offsets"),
    refuses("DeformablePSROIPooling", 1, "f32[1,8,8,8]", "f32[2,5]", "i32[2,2,1,1]", **deformable(), says="offsets has element type i32", id="integers"),
]
# The examples of the specifications, and other types.
ROWS += [
    facts_case("ROIAlign", 9, "f32[7,256,200,200]", "f32[1000,4]", "i32[1000]", **aligned(6, 6, 2, 16.0, mode="avg", aligned_mode="half_pixel"), gives="f32[1000,256,6,6]", id="example"),
    facts_case("ROIAlignRotated", 15, "f32[7,256,200,200]", "f32[1000,5]", "i32[1000]", **aligned(6, 6, 2, 16.0, clockwise_mode="True"), gives="f32[1000,256,6,6]", id="example"),
    facts_case("PSROIPooling", 1, "f32[1,3240,38,38]", "f32[100,5]", **sensitive(360, 6, mode="bilinear", spatial_bins_x=3, spatial_bins_y=3), gives="f32[100,360,6,6]", id="example"),
    facts_case("DeformablePSROIPooling", 1, "f32[1,7938,63,38]", "f32[300,5]", **deformable(882, 3, 0.0625, spatial_bins_x=4, spatial_bins_y=4, trans_std=0.0, part_size=3), gives="f32[300,882,3,3]", id="example"),
    facts_case("DeformablePSROIPooling", 1, "f32[1,392,38,63]", "f32[300,5]", "f32[300,2,7,7]", **deformable(8, 7, 0.0625, spatial_bins_x=4, spatial_bins_y=4, trans_std=0.1, part_size=7), gives="f32[300,8,7,7]", id="example with offsets"),
    case("ROIAlign", 9, random("f64", 2, 3, 7, 9), CORNERS.astype(np.float64), BATCH, **aligned(mode="avg"), id="f64"),
    case("ROIPooling", 2, random("f64", 2, 3, 7, 9), boxed(CORNERS, kind="f64"), **pooled(), id="f64"),
    case("PSROIPooling", 1, random("f64", 2, 8, 7, 9), boxed(CORNERS, kind="f64"), **sensitive(), id="f64"),
    case("DeformablePSROIPooling", 1, random("f64", 2, 8, 7, 9), boxed(CORNERS, kind="f64"), **deformable(), id="f64"),
]
ROWS += [*odd(ROWS, but=("ROIAlignRotated",)), *emptied(ROWS, "ROIAlignRotated", inputs=(1, 2))]
