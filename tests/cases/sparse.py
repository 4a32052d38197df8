"""Rows of the embedding bags, SegmentMax and SparseFillEmptyRows."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

# The table of the specifications' examples.
TABLE = [[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]]
HALVES = [0.5, 0.5, 0.5, 0.5]
ROWS = []
for type, since in (("EmbeddingBagOffsetsSum", 3), ("EmbeddingBagOffsets", 15)):
    row = Operation(type, since)
    ROWS += [
        row(
            TABLE, [0, 2, 3, 4], [0, 2, 2], 0, HALVES, gives=[[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]], id="example 1"
        ),
        row(TABLE, [0, 2, 3, 4], [0, 2, 2], id="empty bag of zeros"),
        row(TABLE, [0, 2, 3, 4], [0, 2, 2], -1, HALVES, id="default -1 is zeros"),
        row(random("f32", 3, 2, 2), typed("i32", [0, 2, 1]), typed("i32", [0, 1]), id="rank 3, i32"),
        row(random("f16", 4, 3), [0, 2, 1, 3], [0, 1], id="f16"),
        # The specification's snippet: the first bag begins at its offset; the reference cannot have an empty last bag.
        row([[1.0], [2.0], [4.0]], [0, 1, 2], [1, 3], gives=[[6.0], [0.0]], id="first offset, last bag empty"),
        row.facts("f32[5,?,3]", "i64[?]", "i64[4]", id="dynamic"),
        row.facts("f32[5,2]", "i64[7]", "i64[2..4]", id="bags bounded"),
        row.refuses("f32[5,2]", "i64[2,3]", "i64[4]", says="indices has rank 2, expected 1", id="matrix of indices"),
        row.refuses(
            "f32[5,2]", "i64[3]", "i64[1]", 0, "f32[4]", says="do not have the shape", id="weights of another shape"
        ),
    ]
embedding_bag_offsets = Operation("EmbeddingBagOffsets", 15, reduction="mean")
ROWS += [
    embedding_bag_offsets(
        TABLE,
        [0, 2, 3, 4],
        [0, 2, 2],
        -1,
        [0.5, 0.2, -2.0, 1.0],
        reduction="sum",
        gives=[[-0.48, -0.66], [0.0, 0.0], [2.8, -3.7]],
        id="example 2",
    ),
    embedding_bag_offsets(
        TABLE, [0, 2, 3, 4], [0, 2, 2], gives=[[-1.05, -1.2], [0.0, 0.0], [-0.1, 0.4]], id="example 3"
    ),
    embedding_bag_offsets.refuses(
        "f32[5,2]",
        "i64[3]",
        "i64[1]",
        0,
        "f32[3]",
        says="reduction mean does not take per_sample_weights",
        id="mean with weights",
    ),
]
for type, since in (("EmbeddingBagPackedSum", 3), ("EmbeddingBagPacked", 15)):
    ROWS += [
        case(type, since, TABLE, [[0, 2], [1, 2], [3, 4]], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], id="weights"),
        case(type, since, TABLE, [[0, 2], [1, 2], [3, 4]], id="no weights"),
        case(type, since, random("f32", 3, 2, 2), typed("i32", [[0, 2, 1]]), id="rank 3, i32"),
        facts_case(type, since, "f32[5,?,3]", "i64[?,2]", id="dynamic"),
        facts_case(type, since, "f32[5,?,3]", "i64[2..,?]", "f32[..4,2]", id="weights know more"),
        facts_case(type, since, "f32[...]", "i64[3,2]", id="rank unknown"),
        refuses(type, since, "f32[5,2]", "i64[3]", says="indices has rank 1, expected 2", id="vector of indices"),
    ]
embedding_bag_packed = Operation("EmbeddingBagPacked", 15, reduction="mean")
embedding_segments_sum = Operation("EmbeddingSegmentsSum", 3)
ROWS += [
    embedding_bag_packed(TABLE, [[0, 2], [1, 2], [3, 4]], id="mean"),
    # (-1 - 4) / 2 and (-4 + 1) / 2: a mean of integers is truncated.
    embedding_bag_packed(typed("i32", [[-1, 3], [-4, 4], [1, 0]]), [[0, 1], [1, 2]], id="mean of integers"),
    embedding_bag_offsets(
        typed("i32", [[-1, 3], [-4, 4], [1, 0]]),
        [0, 1, 1, 2],
        [0, 2],
        gives=typed("i32", [[-2, 3], [-1, 2]]),
        id="mean of integers",
    ),
    embedding_bag_packed.refuses(
        "f32[5,2]",
        "i64[3,2]",
        "f32[3,2]",
        says="reduction mean does not take per_sample_weights",
        id="mean with weights",
    ),
    embedding_segments_sum(
        TABLE, [0, 2, 3, 4], [0, 0, 2, 2], 3, 0, HALVES, gives=[[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]], id="example"
    ),
    embedding_segments_sum(TABLE, [0, 2, 3, 4], [0, 0, 2, 2], 5, id="empty segments of zeros"),
    embedding_segments_sum(TABLE, [0, 2, 3], [0, 1, 3], 2, id="ids beyond the segments"),
    embedding_segments_sum(
        random("f32", 3, 2, 2), typed("i32", [0, 2]), typed("i32", [1, 1]), typed("i32", 2), id="rank 3, i32"
    ),
    embedding_segments_sum.facts("f32[5,?]", "i64[4]", "i64[?]", 3, id="dynamic"),
    embedding_segments_sum.facts("f32[5,2]", "i64[4]", "i64[4]", "i64[]", id="segments unknown"),
    embedding_segments_sum.refuses(
        "f32[5,2]", "i64[4]", "i64[3]", 2, says="segment_ids i64[3] do not have the shape", id="ids of another shape"
    ),
    embedding_segments_sum.refuses("f32[5,2]", "i64[4]", "i64[4]", -2, says="num_segments is -2", id="fewer than none"),
]
SEGMENTED = np.array([[1, 2], [3, -4], [5, 6], [-7, 1]], np.float32)
segment_max = Operation("SegmentMax", 16, fill_mode="zero")
for fill in ("zero", "lowest"):
    ROWS += [
        segment_max(SEGMENTED, [0, 0, 2, 3], fill_mode=fill, id=f"f32 {fill}"),
        segment_max(SEGMENTED, [0, 0, 2, 3], 6, fill_mode=fill, id=f"more segments, {fill}"),
        segment_max(SEGMENTED, [0, 0, 2, 3], 2, fill_mode=fill, id=f"fewer segments, {fill}"),
        segment_max(typed("i32", [4, -9, 3]), typed("i32", [1, 1, 3]), fill_mode=fill, id=f"i32 {fill}"),
        segment_max([float("nan"), 1.0, 2.0], [0, 0, 1], fill_mode=fill, id=f"NaN is passed over, {fill}"),
    ]
sparse_fill_empty_rows = Operation("SparseFillEmptyRows", 16)
ROWS += [
    segment_max(typed("f16", [4, -9, 3]), [1, 1, 3], id="f16 zero"),
    # The specification: the lowest number of the type; the plugin fills in that of f32, which is infinite here.
    segment_max(
        typed("f16", [4, -9, 3]),
        [1, 1, 3],
        fill_mode="lowest",
        gives=typed("f16", [-65504, 4, -65504, 3]),
        id="f16 lowest",
    ),
    segment_max.facts("f32[?,3]", "i64[4]", id="dynamic"),
    segment_max.facts("f32[4,3]", "i64[4]", 7, id="segments known"),
    segment_max.facts("f32[...]", "i64[4]", id="rank unknown"),
    segment_max.refuses("f32[3]", [1, 0, 2], says="segment_ids [1, 0, 2] are not ascending from 0", id="not sorted"),
    segment_max.refuses(
        "f32[3]", "i64[4]", says="segment_ids i64[4] do not have one id for each row of data f32[3]", id="other length"
    ),
    # Specification of SparseFillEmptyRows-16: its example, and the positions out of order.
    sparse_fill_empty_rows(
        [1.0, 2.0, 3.0, 4.0],
        [5, 6],
        [[0, 1], [0, 3], [2, 0], [3, 1]],
        9.0,
        gives=(
            [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]],
            [1.0, 2.0, 9.0, 3.0, 4.0, 9.0],
            [False, True, False, False, True],
        ),
        id="example",
    ),
    sparse_fill_empty_rows([1.0, 2.0, 3.0, 4.0], [4, 6], [[3, 3], [0, 1], [3, 1], [2, 0]], 9.0, id="out of order"),
    sparse_fill_empty_rows(
        typed("i32", [1, 2]), typed("i32", [3, 3]), typed("i32", [[0, 0], [2, 2]]), typed("i32", 42), id="i32"
    ),
    sparse_fill_empty_rows(
        np.zeros(0, np.float32),
        [2, 3],
        np.zeros((0, 2), np.int64),
        5.0,
        gives=([[0, 0], [1, 0]], [5.0, 5.0], [True, True]),
        id="nothing given",
    ),
    sparse_fill_empty_rows.facts("f32[4]", [5, 6], "i64[4,2]", "f32[]", id="indices unknown"),
    sparse_fill_empty_rows.facts("f32[?]", "i64[2]", "i64[?,2]", "f32[]", id="dynamic"),
    sparse_fill_empty_rows.refuses(
        "f32[3]",
        [5, 6],
        "i64[4,2]",
        "f32[]",
        says="indices i64[4,2] do not have one row for each of values f32[3]",
        id="other length",
    ),
    sparse_fill_empty_rows.refuses(
        "f32[1]", [5, 6], [[7, 0]], "f32[]", says="out of range for 5 rows", id="row out of range"
    ),
]
ROWS += [
    # No sample at all: the default, or zeros.
    *(
        case(
            type,
            since,
            TABLE,
            np.zeros(0, np.int64),
            [0, 0],
            1,
            gives=[TABLE[1], TABLE[1]],
            id="no indices, the default",
        )
        for type, since in (("EmbeddingBagOffsetsSum", 3), ("EmbeddingBagOffsets", 15))
    ),
    embedding_segments_sum(
        TABLE, np.zeros(0, np.int64), np.zeros(0, np.int64), 2, gives=np.zeros((2, 2), np.float32), id="no indices"
    ),
    segment_max(
        np.zeros((0, 2), np.float32),
        np.zeros(0, np.int64),
        2,
        gives=np.zeros((2, 2), np.float32),
        id="nothing in two segments",
    ),
    segment_max(
        np.zeros((0, 2), np.float32), np.zeros(0, np.int64), gives=np.zeros((0, 2), np.float32), id="nothing in none"
    ),
    # The lowest number of bf16 is -(2 - 2^-7) 2^127; the plugin fills with that of f32.
    segment_max(
        typed("bf16", [4, -9, 3]),
        [1, 1, 3],
        fill_mode="lowest",
        gives=typed("bf16", [-(2 - 2.0**-7) * 2.0**127, 4, -(2 - 2.0**-7) * 2.0**127, 3]),
        id="bf16 lowest",
    ),
    segment_max([4.0, np.nan, np.nan, 1.0], [0, 0, 1, 1], id="NaN is passed over"),
    # By the definition; OpenVINO begins at its lowest number, and stays there.
    segment_max(
        [4.0, np.inf, -np.inf, np.nan], [0, 0, 1, 2], gives=[np.inf, -np.inf, np.nan], id="infinities, and NaN alone"
    ),
    sparse_fill_empty_rows(
        [np.nan, np.inf],
        [3, 2],
        [[0, 0], [2, 1]],
        -np.inf,
        gives=([[0, 0], [1, 0], [2, 1]], [np.nan, -np.inf, np.inf], [False, True, False]),
        id="NaN and infinities",
    ),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "EmbeddingBagPackedSum", "EmbeddingBagPacked", inputs=(1, 2))]
ROWS += [
    # A bag without samples is zeros.
    *(
        case(type, since, TABLE, np.zeros((2, 0), np.int64), gives=np.zeros((2, 2), np.float32), id="empty bags")
        for type, since in (("EmbeddingBagPackedSum", 3), ("EmbeddingBagPacked", 15))
    ),
    embedding_bag_packed(TABLE, np.zeros((2, 0), np.int64), gives=np.zeros((2, 2), np.float32), id="empty bags, mean"),
    embedding_segments_sum(TABLE, [0, 1], [1, 0], 2, id="segments not in order"),
    segment_max(typed("i32", [5, 6]), [0, 0], 0, id="no segments"),
]
