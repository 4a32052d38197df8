"""Rows of blocks and patches: SpaceToBatch, BatchToSpace, ExtractImagePatches, Col2Im."""

import numpy as np

from tests.support.cases import case, emptied, facts_case, halves, odd, random, refuses, typed

PLAIN = {"strides": "1, 1", "dilations": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0"}
HUNDRED = np.arange(1, 101, dtype=np.float32).reshape(1, 1, 10, 10)
ROWS = [
    case("SpaceToBatch", 2, random("f32", 2, 4, 6), [1, 2, 3], [0, 0, 0], [0, 0, 0], id="two axes"),
    case("SpaceToBatch", 2, random("f32", 1, 3, 5), [1, 2, 3], [0, 1, 0], [0, 0, 1], id="pads"),
    case("SpaceToBatch", 2, random("f32", 2, 3), [1, 3], [0, 0], [0, 0], id="rank 2"),
    case(
        "SpaceToBatch", 2, random("i32", 1, 2, 3, 3, 4, low=0, high=9), [1, 1, 2, 3, 2], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], id="rank 5, i32"
    ),
    case("SpaceToBatch", 2, random("f16", 2, 4), typed("i32", [1, 1]), typed("i32", [0, 0]), typed("i32", [0, 0]), id="f16, blocks of one"),
    facts_case("SpaceToBatch", 2, "f32[?,2..6,3]", [1, 2, 3], [0, 1, 0], [0, 1, 0], id="dynamic"),
    facts_case("SpaceToBatch", 2, "f32[2,4]", [1, 2], "i64[2]", [0, 0], id="pads unknown"),
    facts_case("SpaceToBatch", 2, "f32[...]", [1, 2], [0, 0], [0, 0], id="rank unknown"),
    refuses("SpaceToBatch", 2, "f32[2,5]", [1, 2], [0, 0], [0, 0], says="5 is not a multiple of 2", id="uneven"),
    refuses("SpaceToBatch", 2, "f32[2,4]", [2, 2], [0, 0], [0, 0], says="must begin with 1", id="blocks of the batch"),
    refuses(
        "SpaceToBatch", 2, "f32[2,4]", [1, 2, 2], [0, 0], [0, 0], says="block_shape has 3 values for data f32[2,4]", id="too many blocks"
    ),
    case("BatchToSpace", 2, random("f32", 12, 2, 2), [1, 2, 3], [0, 0, 0], [0, 0, 0], id="two axes"),
    case("BatchToSpace", 2, random("f32", 6, 2, 2), [1, 2, 3], [0, 1, 0], [0, 0, 2], id="crops"),
    case("BatchToSpace", 2, random("f32", 6, 1), [1, 3], [0, 0], [0, 0], id="rank 2"),
    case("BatchToSpace", 2, random("u8", 4, 3, 2, 1, high=9, low=0), [1, 1, 2, 2], [0, 0, 0, 1], [0, 0, 0, 0], id="rank 4, u8"),
    facts_case("BatchToSpace", 2, "f32[?,2..6,3]", [1, 2, 3], [0, 1, 0], [0, 1, 0], id="dynamic"),
    facts_case("BatchToSpace", 2, "f32[6,4]", [1, 2], "i64[2]", [0, 0], id="crops unknown"),
    facts_case("BatchToSpace", 2, "f32[6,4,2..]", "i64[3]", [0, 1, 0], [0, 2, 1], id="blocks unknown"),
    facts_case("BatchToSpace", 2, "f32[...]", [1, 2], [0, 0], [0, 0], id="rank unknown"),
    refuses("BatchToSpace", 2, "f32[5,4]", [1, 2], [0, 0], [0, 0], says="5 is not a multiple of 2", id="uneven"),
    refuses("BatchToSpace", 2, "f32[4,2]", [1, 2], [0, 3], [0, 2], says="crops of 5 leave nothing of 4", id="crops too much"),
]
# Specification of ExtractImagePatches-3: its examples 1 to 4 on the numbers 1 to 100, and 5 on two channels.
for number, size, stride, rate, auto_pad in (
    (1, 3, 5, 1, "valid"),
    (2, 4, 8, 1, "valid"),
    (3, 4, 9, 1, "same_upper"),
    (4, 3, 5, 2, "valid"),
):
    texts = {"sizes": (size, size), "strides": (stride, stride), "rates": (rate, rate), "auto_pad": auto_pad}
    ROWS.append(case("ExtractImagePatches", 3, HUNDRED, id=f"example {number}", **texts))
ROWS += [
    case(
        "ExtractImagePatches",
        3,
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
    case(
        "ExtractImagePatches",
        3,
        random("f32", 2, 2, 4, 5),
        sizes="2, 3",
        strides="2, 1",
        rates="1, 2",
        auto_pad="same_lower",
        id="same_lower",
    ),
    case(
        "ExtractImagePatches",
        3,
        random("i32", 1, 2, 4, 5, low=0, high=9),
        sizes="2, 3",
        strides="3, 2",
        rates="2, 1",
        auto_pad="same_upper",
        id="same_upper, i32",
    ),
    case(
        "ExtractImagePatches",
        3,
        random("f32", 1, 1, 3, 5),
        sizes="4, 4",
        strides="1, 1",
        rates="1, 1",
        auto_pad="valid",
        gives=np.zeros((1, 16, 0, 2), np.float32),
        id="none fits",
    ),
    facts_case("ExtractImagePatches", 3, "f32[?,3,?,10]", sizes="3, 3", strides="5, 5", rates="1, 1", auto_pad="valid", id="dynamic"),
    facts_case(
        "ExtractImagePatches", 3, "f32[1,3,7..20,?]", sizes="3, 3", strides="2, 2", rates="2, 2", auto_pad="same_upper", id="bounded"
    ),
    facts_case("ExtractImagePatches", 3, "f32[...]", sizes="3, 3", strides="5, 5", rates="1, 1", auto_pad="valid", id="rank unknown"),
    refuses(
        "ExtractImagePatches", 3, "f32[1,2,3]", sizes="1, 1", strides="1, 1", rates="1, 1", auto_pad="valid", says="rank 3", id="rank 3"
    ),
    refuses(
        "ExtractImagePatches",
        3,
        "f32[1,2,3,4]",
        sizes="1",
        strides="1, 1",
        rates="1, 1",
        auto_pad="valid",
        says="sizes has length 1, expected 2: for rows and columns",
        id="one size",
    ),
    case("Col2Im", 15, random("f32", 2, 8, 6), [3, 4], [2, 2], id="plain", **PLAIN),
    case(
        "Col2Im",
        15,
        random("f32", 2, 8, 6),
        [3, 4],
        [2, 2],
        strides="2, 1",
        dilations="1, 2",
        pads_begin="1, 0",
        pads_end="0, 1",
        id="strides, dilations, pads",
    ),
    case("Col2Im", 15, random("f32", 8, 6), [3, 4], [2, 2], id="no batch", **PLAIN),
    case(
        "Col2Im",
        15,
        random("i64", 1, 6, 4, low=0, high=9),
        typed("i32", [4, 2]),
        typed("i32", [1, 3]),
        strides="1, 1",
        dilations="1, 1",
        pads_begin="0, 1",
        pads_end="0, 0",
        id="i64",
    ),
    case("Col2Im", 15, random("f16", 1, 4, 4), [3, 3], [2, 2], id="f16", **PLAIN),
    facts_case("Col2Im", 15, "f32[?,12,225]", [16, 16], [2, 2], id="specification's example, batch unknown", **PLAIN),
    facts_case("Col2Im", 15, "f32[1,?,?]", "i64[2]", [2, 2], id="image unknown", **PLAIN),
    facts_case("Col2Im", 15, "f32[...]", [16, 16], [2, 2], id="rank unknown", **PLAIN),
    refuses("Col2Im", 15, "f32[1,10,4]", [3, 3], [2, 2], says="10 is not a multiple of 4", id="uneven"),
    refuses("Col2Im", 15, "f32[1,8,5]", [3, 3], [2, 2], says="has 5 columns, an image of 3 x 3 gives 4", id="other count"),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "SpaceToBatch", "BatchToSpace", "ExtractImagePatches", "Col2Im")]
