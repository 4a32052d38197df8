"""Rows of GridSample."""

import numpy as np

from irexec.testing import random, typed
from tests.cases import Operation

X = random("f32", 2, 3, 4, 5)
GRID = random("f32", 2, 3, 4, 2, low=-1.6, high=1.6)
STEPS = np.array(
    [[[[-1, -1], [1, 1], [0, 0], [-0.5, 0.25]], [[-2, 0.5], [0.75, 2], [3, -3], [-1.25, 1.25]]]], np.float32
)
IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)

grid_sample = Operation("GridSample", 9)
ROWS = [
    grid_sample(
        X,
        GRID,
        mode=mode,
        padding_mode=padding,
        align_corners=corners,
        id=f"{mode}, {padding}{', corners' if corners == 'true' else ''}",
    )
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for corners in ("false", "true")
]
# On the border, on pixels, far beyond: where a rule is off by one it shows.
ROWS += [
    grid_sample(IMAGE, STEPS, mode=mode, padding_mode=padding, align_corners="true", id=f"steps, {mode}, {padding}")
    for mode in ("bilinear", "bicubic")
    for padding in ("zeros", "border", "reflection")
]
ROWS += [
    grid_sample(X, GRID, id="defaults"),
    grid_sample(random("f16", 2, 3, 4, 5), GRID, id="f16 data"),
    grid_sample(random("f16", 2, 3, 4, 5), GRID, mode="bicubic", id="f16 data, bicubic"),
    grid_sample(random("bf16", 2, 3, 4, 5), GRID, padding_mode="border", id="bf16 data"),
    grid_sample(random("f64", 2, 3, 4, 5), GRID, padding_mode="border", id="f64 data"),
    grid_sample(random("i32", 2, 3, 4, 5, low=-99, high=99), GRID, id="i32 data"),
    grid_sample(random("i32", 2, 3, 4, 5, low=-99, high=99), GRID, mode="bicubic", id="i32 data, bicubic"),
    grid_sample(random("i64", 2, 3, 4, 5, low=-99, high=99), GRID, mode="nearest", id="i64 data, nearest"),
    # By hand: (0, 0) lies amid 6, 7, 10, 11; halves are cut. The plugin rounds where the reference cuts.
    grid_sample(typed("u8", IMAGE), [[[[0.0, 0.0]]]], gives=np.array([[[[8]]]], np.uint8), id="u8 data"),
    # By hand: what is only copied is exact in any type.
    grid_sample(
        typed("i64", [[[[2**62 + 1, 3]]]]),
        [[[[-0.5, 0.0], [0.5, 0.0]]]],
        mode="nearest",
        gives=np.array([[[[2**62 + 1, 3]]]]),
        id="large numbers are copied",
    ),
    grid_sample(
        typed("boolean", [[[[True, False]]]]),
        [[[[-0.5, 0.0], [0.5, 0.0]]]],
        mode="nearest",
        gives=np.array([[[[True, False]]]]),
        id="boolean data, nearest",
    ),
    # By hand: numbers beyond the type are cut to it, here where bicubic overshoots from 255 and below 0.
    grid_sample(
        typed("u8", [[[[0, 0, 255, 255, 0, 0]]]]),
        [[[[0.0, 0.0], [-2 / 3, 0.0]]]],
        mode="bicubic",
        padding_mode="border",
        gives=np.array([[[[255, 0]]]], np.uint8),
        id="u8 data, bicubic",
    ),
    # By hand: amid pixels 0 and 1, and amid pixels 1 and 2.
    grid_sample(
        [[[[1.0, 2.0, 3.0]]]],
        [[[[-0.5, 0.0], [0.5, 0.0]]]],
        mode="nearest",
        align_corners="true",
        gives=np.array([[[[1, 3]]]], np.float32),
        id="ties go to the even pixel",
    ),
    grid_sample(IMAGE, [[[[0.0, 0.0], [-1.0, 1.0]]]], mode="nearest", padding_mode="border", id="ties, half pixels"),
    # NaN and infinities have no pixel: NaN, but for nearest. Those beyond what the reference's integers hold are brought back.
    grid_sample(IMAGE, [[[[np.nan, 0.0], [0.0, np.inf], [-np.inf, 0.0]]]], id="NaN and infinity"),
    grid_sample(
        IMAGE, [[[[np.nan, 0.0], [0.0, np.inf]]]], mode="bicubic", padding_mode="reflection", id="NaN, bicubic"
    ),
    grid_sample(IMAGE, [[[[np.nan, 0.0], [0.0, np.inf], [1e30, 0.0]]]], mode="nearest", id="NaN, nearest, zeros"),
    grid_sample(
        IMAGE,
        [[[[1e30, -1.0], [-1e30, -1.0], [np.inf, -1.0], [np.nan, -1.0]]]],
        mode="nearest",
        padding_mode="border",
        gives=np.array([[[[4, 1, 4, 1]]]], np.float32),
        id="far beyond, nearest, border",
    ),
    grid_sample(
        IMAGE,
        [[[[1e30, -1.0], [-1e30, -1.0]]]],
        padding_mode="border",
        align_corners="true",
        gives=np.array([[[[4, 1]]]], np.float32),
        id="far beyond, border",
    ),
    grid_sample(
        random("f32", 1, 2, 1, 1), GRID.array[:1], padding_mode="reflection", align_corners="true", id="one pixel"
    ),
    grid_sample(random("f32", 1, 2, 1, 4), GRID.array[:1], mode="bicubic", padding_mode="reflection", id="one line"),
    grid_sample(random("f32", 1, 2, 3, 3), random("f64", 1, 2, 2, 2), gives=None, id="f64 grid"),
    grid_sample(
        random("f32", 1, 2, 3, 3),
        np.zeros((1, 0, 2, 2), np.float32),
        gives=np.zeros((1, 2, 0, 2), np.float32),
        id="no points",
    ),
    # The specification's example.
    grid_sample.facts(
        "f32[1,3,100,100]",
        "f32[1,10,10,2]",
        align_corners="true",
        mode="nearest",
        padding_mode="border",
        gives="f32[1,3,10,10]",
        id="example",
    ),
    grid_sample.facts("f32[?,3,?,?]", "f32[2,5..7,?,2]", id="dynamic"),
    grid_sample.facts("f32[1..4,?,8,8]", "f32[2..9,4,4,?]", id="batches meet"),
    grid_sample.facts("f32[...]", "f32[2,5..7,?,2]", id="data unknown"),
    grid_sample.facts("i32[1,3,8,8]", "f32[...]", id="grid unknown"),
    grid_sample.refuses("f32[1,3,8]", "f32[1,2,2,2]", says="data has rank 3, expected 4", id="rank of data"),
    grid_sample.refuses("f32[1,3,8,8]", "f32[1,2,2]", says="grid has rank 3, expected 4", id="rank of grid"),
    grid_sample.refuses(
        "f32[1,3,8,8]", "f32[1,2,2,3]", says="grid has 3 coordinates for each point, expected 2", id="pairs"
    ),
    grid_sample.refuses(
        "f32[1,3,8,8]", "f32[2,2,2,2]", says="data has a batch of 1, grid one of 2", id="batches differ"
    ),
    grid_sample.refuses("f32[1,3,8,8]", "i32[1,2,2,2]", says="grid has element type i32", id="grid of integers"),
    grid_sample.refuses(
        "string[1,3,8,8]",
        "f32[1,2,2,2]",
        says="data has element type string, expected any element type but string",
        id="text",
    ),
]
ROWS += [
    grid_sample(
        random("f32", 1, 1, 3, 3),
        [[[[1e10, 0.0], [-1e10, 0.0]]]],
        padding_mode="reflection",
        id="far beyond, reflection",
    ),
    grid_sample(np.zeros((0, 1, 3, 3), np.float32), np.zeros((0, 2, 2, 2), np.float32), id="no images"),
]
