"""Rows of blocks and patches: SpaceToBatch, BatchToSpace, ExtractImagePatches, Col2Im."""

import numpy as np

from irexec.testing import random, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

PLAIN = {"strides": "1, 1", "dilations": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0"}
HUNDRED = np.arange(1, 101, dtype=np.float32).reshape(1, 1, 10, 10)
space_to_batch = Operation("SpaceToBatch", 2)
batch_to_space = Operation("BatchToSpace", 2)
ROWS = [
    space_to_batch(random("f32", 2, 4, 6), [1, 2, 3], [0, 0, 0], [0, 0, 0], id="two axes"),
    space_to_batch(random("f32", 1, 3, 5), [1, 2, 3], [0, 1, 0], [0, 0, 1], id="pads"),
    space_to_batch(random("f32", 2, 3), [1, 3], [0, 0], [0, 0], id="rank 2"),
    space_to_batch(random("i32", 1, 2, 3, 3, 4, low=0, high=9), [1, 1, 2, 3, 2], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], id="rank 5, i32"),
    space_to_batch(random("f16", 2, 4), typed("i32", [1, 1]), typed("i32", [0, 0]), typed("i32", [0, 0]), id="f16, blocks of one"),
    space_to_batch.facts("f32[?,2..6,3]", [1, 2, 3], [0, 1, 0], [0, 1, 0], id="dynamic"),
    space_to_batch.facts("f32[2,4]", [1, 2], "i64[2]", [0, 0], id="pads unknown"),
    space_to_batch.facts("f32[...]", [1, 2], [0, 0], [0, 0], id="rank unknown"),
    space_to_batch.refuses("f32[2,5]", [1, 2], [0, 0], [0, 0], says="5 is not a multiple of 2", id="uneven"),
    space_to_batch.refuses("f32[2,4]", [2, 2], [0, 0], [0, 0], says="must begin with 1", id="blocks of the batch"),
    space_to_batch.refuses("f32[2,4]", [1, 2, 2], [0, 0], [0, 0], says="block_shape has 3 values for data f32[2,4]", id="too many blocks"),
    batch_to_space(random("f32", 12, 2, 2), [1, 2, 3], [0, 0, 0], [0, 0, 0], id="two axes"),
    batch_to_space(random("f32", 6, 2, 2), [1, 2, 3], [0, 1, 0], [0, 0, 2], id="crops"),
    batch_to_space(random("f32", 6, 1), [1, 3], [0, 0], [0, 0], id="rank 2"),
    batch_to_space(random("u8", 4, 3, 2, 1, high=9, low=0), [1, 1, 2, 2], [0, 0, 0, 1], [0, 0, 0, 0], id="rank 4, u8"),
    batch_to_space.facts("f32[?,2..6,3]", [1, 2, 3], [0, 1, 0], [0, 1, 0], id="dynamic"),
    batch_to_space.facts("f32[6,4]", [1, 2], "i64[2]", [0, 0], id="crops unknown"),
    batch_to_space.facts("f32[6,4,2..]", "i64[3]", [0, 1, 0], [0, 2, 1], id="blocks unknown"),
    batch_to_space.facts("f32[...]", [1, 2], [0, 0], [0, 0], id="rank unknown"),
    batch_to_space.refuses("f32[5,4]", [1, 2], [0, 0], [0, 0], says="5 is not a multiple of 2", id="uneven"),
    batch_to_space.refuses("f32[4,2]", [1, 2], [0, 3], [0, 2], says="crops of 5 leave nothing of 4", id="crops too much"),
]  # fmt: skip
extract_image_patches = Operation("ExtractImagePatches", 3)
# Specification of ExtractImagePatches-3: its examples 1 to 4 on the numbers 1 to 100, and 5 on two channels.
for number, size, stride, rate, auto_pad in (
    (1, 3, 5, 1, "valid"),
    (2, 4, 8, 1, "valid"),
    (3, 4, 9, 1, "same_upper"),
    (4, 3, 5, 2, "valid"),
):
    texts = {"sizes": (size, size), "strides": (stride, stride), "rates": (rate, rate), "auto_pad": auto_pad}
    ROWS.append(extract_image_patches(HUNDRED, id=f"example {number}", **texts))
col2_im = Operation("Col2Im", 15)
ROWS += [
    extract_image_patches(
        np.arange(1, 51, dtype=np.float32).reshape(1, 2, 5, 5),
        sizes="2, 2",
        strides="3, 3",
        rates="1, 1",
        auto_pad="valid",
        gives=np.array(
            [
                [
                    [[1, 4], [16, 19]],
                    [[26, 29], [41, 44]],
                    [[2, 5], [17, 20]],
                    [[27, 30], [42, 45]],
                    [[6, 9], [21, 24]],
                    [[31, 34], [46, 49]],
                    [[7, 10], [22, 25]],
                    [[32, 35], [47, 50]],
                ]
            ],
            np.float32,
        ),
        id="example 5",
    ),
    extract_image_patches(
        random("f32", 2, 2, 4, 5), sizes="2, 3", strides="2, 1", rates="1, 2", auto_pad="same_lower", id="same_lower"
    ),
    extract_image_patches(
        random("i32", 1, 2, 4, 5, low=0, high=9),
        sizes="2, 3",
        strides="3, 2",
        rates="2, 1",
        auto_pad="same_upper",
        id="same_upper, i32",
    ),
    extract_image_patches(
        random("f32", 1, 1, 3, 5),
        sizes="4, 4",
        strides="1, 1",
        rates="1, 1",
        auto_pad="valid",
        gives=np.zeros((1, 16, 0, 2), np.float32),
        id="none fits",
    ),
    extract_image_patches.facts(
        "f32[?,3,?,10]", sizes="3, 3", strides="5, 5", rates="1, 1", auto_pad="valid", id="dynamic"
    ),
    extract_image_patches.facts(
        "f32[1,3,7..20,?]", sizes="3, 3", strides="2, 2", rates="2, 2", auto_pad="same_upper", id="bounded"
    ),
    extract_image_patches.facts(
        "f32[...]", sizes="3, 3", strides="5, 5", rates="1, 1", auto_pad="valid", id="rank unknown"
    ),
    extract_image_patches.refuses(
        "f32[1,2,3]", sizes="1, 1", strides="1, 1", rates="1, 1", auto_pad="valid", says="rank 3", id="rank 3"
    ),
    extract_image_patches.refuses(
        "f32[1,2,3,4]",
        sizes="1",
        strides="1, 1",
        rates="1, 1",
        auto_pad="valid",
        says="sizes has length 1, expected 2: for rows and columns",
        id="one size",
    ),
    col2_im(random("f32", 2, 8, 6), [3, 4], [2, 2], id="plain", **PLAIN),
    col2_im(
        random("f32", 2, 8, 6),
        [3, 4],
        [2, 2],
        strides="2, 1",
        dilations="1, 2",
        pads_begin="1, 0",
        pads_end="0, 1",
        id="strides, dilations, pads",
    ),
    col2_im(random("f32", 8, 6), [3, 4], [2, 2], id="no batch", **PLAIN),
    col2_im(
        random("i64", 1, 6, 4, low=0, high=9),
        typed("i32", [4, 2]),
        typed("i32", [1, 3]),
        strides="1, 1",
        dilations="1, 1",
        pads_begin="0, 1",
        pads_end="0, 0",
        id="i64",
    ),
    col2_im(random("f16", 1, 4, 4), [3, 3], [2, 2], id="f16", **PLAIN),
    col2_im.facts("f32[?,12,225]", [16, 16], [2, 2], id="specification's example, batch unknown", **PLAIN),
    col2_im.facts("f32[1,?,?]", "i64[2]", [2, 2], id="image unknown", **PLAIN),
    col2_im.facts("f32[...]", [16, 16], [2, 2], id="rank unknown", **PLAIN),
    col2_im.refuses("f32[1,10,4]", [3, 3], [2, 2], says="10 is not a multiple of 4", id="uneven"),
    col2_im.refuses("f32[1,8,5]", [3, 3], [2, 2], says="has 5 columns, an image of 3 x 3 gives 4", id="other count"),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "SpaceToBatch", "BatchToSpace", "ExtractImagePatches", "Col2Im")]
