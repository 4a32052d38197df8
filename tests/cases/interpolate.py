"""Rows of Interpolate."""

from irexec.testing import random, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 1, 2, 4, 5)
MODES = ("nearest", "linear", "linear_onnx", "cubic")
TRANSFORMATIONS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
SIZES = {"shape_calculation_mode": "sizes"}
SCALES = {"shape_calculation_mode": "scales"}


interpolate_4 = Operation("Interpolate", 4)


def four(id, sizes, scales, axes, data=X, **texts):
    texts = {
        "pads_begin": "0",
        "pads_end": "0",
        "antialias": "false",
        "coordinate_transformation_mode": "half_pixel",
    } | texts
    return interpolate_4(data, sizes, scales, axes, **({"nearest_mode": "round_prefer_floor"} | texts), id=id)


interpolate_11 = Operation("Interpolate", 11)


def eleven(id, reference, axes, data=X, **texts):
    texts = {
        "pads_begin": "0",
        "pads_end": "0",
        "antialias": "false",
        "coordinate_transformation_mode": "half_pixel",
    } | texts
    return interpolate_11(data, reference, axes, **({"nearest_mode": "round_prefer_floor"} | texts), id=id)


ROWS = []
for mode in MODES:
    for transformation in TRANSFORMATIONS:
        texts = {"mode": mode, "coordinate_transformation_mode": transformation}
        ROWS += [
            four(f"{mode} {transformation} up", [7, 9], [1.75, 1.8], [2, 3], **texts, **SIZES),
            four(f"{mode} {transformation} down", [3, 2], [0.75, 0.4], [2, 3], **texts, **SIZES),
            eleven(f"{mode} {transformation} up", [7, 9], [2, 3], **texts, **SIZES),
            eleven(f"{mode} {transformation} down", [0.75, 0.4], [2, 3], **texts, **SCALES),
        ]
    ROWS += [
        four(f"{mode} scales", [1, 1], [1.5, 2.0], [2, 3], mode=mode, **SCALES),
        four(f"{mode} one axis", [9], [1.8], [3], mode=mode, **SIZES),
        four(
            f"{mode} padded",
            [8, 8],
            [1.0, 1.0],
            [2, 3],
            mode=mode,
            pads_begin="0, 0, 1, 0",
            pads_end="0, 0, 0, 2",
            **SIZES,
        ),
        four(f"{mode} f16", [6, 7], [1.5, 1.4], [2, 3], data=random("f16", 1, 1, 4, 5), mode=mode, **SIZES),
        eleven(f"{mode} scales", [1.5, 2.0], [2, 3], mode=mode, **SCALES),
    ]
for nearest in NEAREST:
    for transformation in TRANSFORMATIONS:
        texts = {"mode": "nearest", "nearest_mode": nearest, "coordinate_transformation_mode": transformation}
        ROWS += [
            four(f"nearest {nearest} {transformation}", [8, 10], [2.0, 2.0], [2, 3], **texts, **SIZES),
            eleven(f"nearest {nearest} {transformation} down", [2, 3], [2, 3], **texts, **SIZES),
        ]
for mode in ("bilinear_pillow", "bicubic_pillow"):
    ROWS += [
        eleven(f"{mode} up", [7, 9], [2, 3], mode=mode, **SIZES),
        eleven(f"{mode} down", [2, 3], [2, 3], mode=mode, **SIZES),
        eleven(f"{mode} scales", [0.5, 1.5], [2, 3], mode=mode, **SCALES),
        eleven(f"{mode} one axis kept", [4, 8], [2, 3], mode=mode, **SIZES),
        eleven(f"{mode} cube_coeff", [7, 3], [2, 3], mode=mode, cube_coeff="-0.5", **SIZES),
    ]
interpolate_1 = Operation("Interpolate", 1, axes="2, 3", mode="nearest")
ROWS += [
    four("linear antialias", [2, 2], [0.5, 0.4], [2, 3], mode="linear", antialias="true", **SIZES),
    eleven("linear antialias", [0.5, 0.4], [2, 3], mode="linear", antialias="true", **SCALES),
    four("cubic cube_coeff", [7, 9], [1.75, 1.8], [2, 3], mode="cubic", cube_coeff="-0.5", **SIZES),
    four(
        "linear 3-D", [3, 5, 4], [1.5, 1.25, 2.0], [2, 3, 4], data=random("f32", 1, 1, 2, 4, 2), mode="linear", **SIZES
    ),
    four("linear_onnx 1-D", [7], [1.75], [2], data=random("f32", 1, 2, 4), mode="linear_onnx", **SIZES),
    eleven("nearest u8", [6, 7], [2, 3], data=random("u8", 1, 1, 4, 5, low=0, high=255), mode="nearest", **SIZES),
    four("nearest of i32", [4, 4], [2.0, 2.0], [0, 1], data=typed("i32", [[1, 2], [3, 4]]), mode="nearest", **SIZES),
    interpolate_4.facts("f32[?,2,4..6,5]", [8, 9], [1.0, 1.0], [2, 3], mode="nearest", **SIZES, id="sizes, dynamic"),
    interpolate_4.facts("f32[?,2,4..6,5]", [1, 1], [2.0, 1.5], [2, 3], mode="nearest", **SCALES, id="scales, bounded"),
    interpolate_4.facts("f32[1,2,4,5]", "i64[2]", [2.0, 1.5], [2, 3], mode="nearest", **SIZES, id="sizes unknown"),
    interpolate_11.facts("f32[?,2,4..6,5]", [8, 9], [2, 3], mode="nearest", **SIZES, id="sizes, dynamic"),
    interpolate_11.facts("f32[?,2,4..6,5]", [2.0, 1.5], [2, 3], mode="nearest", **SCALES, id="scales, bounded"),
    interpolate_4.refuses(
        "u16[1,2,4,5]",
        [8, 9],
        [2.0, 1.8],
        [2, 3],
        mode="nearest",
        **SIZES,
        says="a floating-point type, i8, i32, i64 or u8",
        id="type before 11",
    ),
    interpolate_11.refuses(
        "f4e2m1[1,2,4,5]",
        [8, 9],
        [2, 3],
        mode="nearest",
        **SIZES,
        says="a floating-point type, i8, i32, i64 or u8",
        id="type",
    ),
    interpolate_11.refuses(
        "f32[1,2,4,5]", [8, 9], [2, 7], mode="nearest", **SIZES, says="axis 7 is out of range", id="axis"
    ),
    interpolate_11.refuses(
        "f32[1,2,4,5]", [8], [2, 3], mode="nearest", **SIZES, says="1 sizes or scales for 2 axes", id="too few"
    ),
    interpolate_4.refuses(
        "f32[1,2,4]", [8], [-1.0], [2], mode="nearest", **SCALES, says="scale -1 is not a positive", id="scale"
    ),
    interpolate_1.facts("f32[?,2,4,5]", [8, 9], align_corners="false", id="dynamic"),
]
for mode in ("nearest", "linear", "cubic"):
    for corners in ("true", "false"):
        ROWS.append(
            interpolate_1(
                X,
                [7, 9],
                mode=mode,
                align_corners=corners,
                antialias="false",
                pads_begin="0",
                pads_end="0",
                id=f"{mode}, align_corners {corners}",
            )
        )
for mode in ("nearest", "linear", "cubic"):
    ROWS.append(
        interpolate_1(
            X,
            [2, 3],
            mode=mode,
            align_corners="false",
            antialias="true",
            pads_begin="0",
            pads_end="0",
            id=f"{mode}, antialias",
        )
    )
ROWS += [
    interpolate_1(
        random("f32", 1, 2, 4),
        [7],
        axes="2",
        align_corners="false",
        antialias="false",
        pads_begin="0",
        pads_end="0",
        id="1-D",
    ),
    interpolate_1.facts("f32[1,2,4,5]", [8, 9], mode="area", gives="f32[1,2,8,9]", id="area"),
    interpolate_1.refuses(
        "f32[1,2,4,5]", [8, 9], axes="2", says="target_spatial_shape has 2 values for 1 axis", id="too many sizes"
    ),
    interpolate_1.refuses("f32[1,2,4,5]", [8, 9], axes="2, 4", says="axis 4 is out of range", id="axis out of range"),
    # OpenVINO wants axes counted from the front. By hand: every number twice.
    interpolate_4(
        [[1.0, 2.0], [3.0, 4.0]],
        [4],
        [2.0],
        [-1],
        mode="nearest",
        **SIZES,
        gives=[[1.0, 1, 2, 2], [3, 3, 4, 4]],
        id="negative axis",
    ),
    interpolate_11(
        [[1.0, 2.0], [3.0, 4.0]],
        [2.0],
        [-1],
        mode="nearest",
        **SCALES,
        gives=[[1.0, 1, 2, 2], [3, 3, 4, 4]],
        id="negative axis",
    ),
    four("all axes by default", [1, 2, 7, 9], [1.0, 1.0, 1.75, 1.8], None, mode="nearest", **SIZES),
    eleven("all axes by default", [1, 2, 7, 9], None, mode="nearest", **SIZES),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "Interpolate")]
# Halves between bytes are rounded away from zero, after each axis in Pillow's modes; linear_onnx
# rounds towards zero. The answers are OpenVINO's.
BYTES = {
    "linear": [[4, 5, 5, 4, 2, 2], [4, 5, 5, 3, 1, 1], [4, 5, 5, 3, 0, 0]],
    "linear_onnx": [[4, 4, 5, 3, 2, 2], [4, 4, 5, 2, 0, 0], [4, 4, 5, 2, 0, 0]],
    "bilinear_pillow": [[4, 4, 5, 4, 3, 2], [4, 4, 5, 4, 2, 1], [4, 4, 5, 4, 1, 0]],
    "bicubic_pillow": [[4, 4, 5, 4, 3, 2], [4, 4, 5, 4, 2, 1], [4, 4, 5, 4, 1, 0]],
}
ROWS += [
    eleven(f"{mode} of bytes", [1.5, 2.0], [2, 3], data=typed("u8", [[[[4, 5, 2], [4, 5, 0]]]]), mode=mode, **SCALES,
           coordinate_transformation_mode="asymmetric", gives=typed("u8", [[result]]))
    for mode, result in BYTES.items()
]  # fmt: skip
ROWS += [
    interpolate_11.refuses(
        "f32[1,2,7,8]",
        [3.4e38, 0.5],
        [2, 3],
        mode="cubic",
        **SCALES,
        says="scale 3.4e+38 of an axis of 7 gives no size",
        id="scale beyond any size",
    )
]
