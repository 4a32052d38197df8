"""Rows of operations that move numbers about."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 2, 3, 4)
transpose = Operation("Transpose", 1)
variadic_split = Operation("VariadicSplit", 1)
reverse = Operation("Reverse", 1, mode="index")
ROWS = [
    transpose(X, [2, 0, 1], id="order"),
    transpose(X, np.zeros(0, np.int64), id="empty order reverses"),
    transpose(random("u8", 2, 3, low=0, high=9), typed("i32", [1, 0]), id="u8"),
    transpose.facts("f32[?,2..5,3]", [2, 0, 1], id="dynamic"),
    transpose.facts("f32[2,3]", "i64[2]", id="order unknown"),
    transpose.facts("f32[...]", [1, 0], id="rank unknown"),
    transpose.refuses("f32[2,3]", [0, 0], says="order [0, 0] is not a permutation of the axes of f32[2,3]", id="axis twice"),
    transpose.refuses("f32[2,3]", [0, 1, 2], says="order [0, 1, 2] is not a permutation of the axes of f32[2,3]", id="too long"),
    case("Concat", 1, X, random("f32", 2, 1, 4), axis="1", id="axis 1"),
    case("Concat", 1, X, X, X, axis="-1", id="three along the last axis"),
    case("Concat", 1, [1, 2], [3], axis="0", id="i64"),
    case("Concat", 1, random("f32", 0, 2), random("f32", 3, 2), axis="0", id="one empty"),
    facts_case("Concat", 1, "f32[?,3]", "f32[2..5,3]", axis="0", id="bounded"),
    facts_case("Concat", 1, "f32[?,3]", "f32[2,?]", axis="1", id="sizes meet"),
    facts_case("Concat", 1, "f32[...]", "f32[2,?]", axis="1", id="one rank unknown"),
    refuses("Concat", 1, "f32[2,3]", "f32[3,3]", axis="1", says="sizes 2 and 3 differ", id="other sizes"),
    refuses("Concat", 1, "f32[2,3]", "f32[2,3,1]", axis="1", says="different ranks", id="other ranks"),
    refuses("Concat", 1, "f32[2,3]", "i32[2,3]", axis="1", says="differ", id="other types"),
    refuses("Concat", 1, "f32[2,3]", axis="2", says="axis 2 is out of range", id="axis out of range"),
    case("Split", 1, random("f32", 2, 6), 1, num_splits="3", id="three"),
    case("Split", 1, random("f32", 2, 6), -2, num_splits="2", id="negative axis"),
    facts_case("Split", 1, "f32[?,6]", 1, num_splits="3", id="dynamic"),
    facts_case("Split", 1, "f32[4..8,6]", 0, num_splits="2", id="bounded"),
    facts_case("Split", 1, "f32[4,6]", "i64[]", num_splits="2", id="axis unknown"),
    refuses("Split", 1, "f32[2,5]", 1, num_splits="2", says="cannot be split into 2 equal parts", id="uneven"),
    variadic_split(random("f32", 2, 6), 1, [1, 2, 3], id="three"),
    variadic_split(random("f32", 6, 2), 0, [2, -1], id="the rest"),
    variadic_split(random("f32", 6, 2), -2, [-1, 6], id="the rest is nothing"),
    variadic_split.facts("f32[?,6]", 1, [2, -1], id="dynamic"),
    variadic_split.facts("f32[8..9,6]", 0, [2, -1], id="bounded rest"),
    variadic_split.refuses("f32[2,6]", 1, [1, 2], says="cannot be split into parts of 1, 2", id="too few"),
    variadic_split.refuses("f32[2,6]", 1, [-1, -1], says="cannot be split", id="two rests"),
    reverse(X, [1], id="one axis"),
    reverse(X, [0, 2], id="two axes"),
    reverse(X, typed("boolean", [True, False, True]), mode="mask", id="mask"),
    reverse.facts("f32[?,3]", [0], id="dynamic"),
    case("Identity", 16, X, id="f32"),
    facts_case("Identity", 16, "f32[?,3]", id="dynamic"),
    case("Roll", 7, X, 1, [1], id="one axis"),
    case("Roll", 7, X, [1, -2], [0, 2], id="two axes"),
    case("Roll", 7, X, 5, [-1], id="beyond the size"),
    facts_case("Roll", 7, "f32[?,3]", 1, [0], id="dynamic"),
    case("ShuffleChannels", 1, random("f32", 1, 6, 2), axis="1", group="3", id="axis 1"),
    case("ShuffleChannels", 1, random("f32", 2, 2, 6), axis="-1", group="2", id="negative axis"),
    case("ShuffleChannels", 1, random("f32", 2, 4), id="defaults"),
    facts_case("ShuffleChannels", 1, "f32[?,6,?]", axis="1", group="3", id="dynamic"),
    refuses("ShuffleChannels", 1, "f32[1,5]", axis="1", group="2", says="cannot be split into 2 groups", id="uneven"),
]  # fmt: skip
depth_to_space = Operation("DepthToSpace", 1, mode="blocks_first")
space_to_depth = Operation("SpaceToDepth", 1, block_size="2")
for mode in ("blocks_first", "depth_first"):
    ROWS += [
        depth_to_space(random("f32", 1, 8, 2, 3), mode=mode, block_size="2", id=f"2-D {mode}"),
        depth_to_space(random("f32", 2, 16, 2, 1, 2), mode=mode, block_size="2", id=f"3-D {mode}"),
        depth_to_space(random("f32", 1, 6, 3), mode=mode, block_size="3", id=f"1-D {mode}"),
        space_to_depth(random("f32", 1, 2, 4, 6), mode=mode, id=f"2-D {mode}"),
        space_to_depth(random("f32", 2, 2, 4, 2, 2), mode=mode, id=f"3-D {mode}"),
        space_to_depth(random("f32", 1, 2, 6), mode=mode, block_size="3", id=f"1-D {mode}"),
    ]
ROWS += [
    # The specification's default; OpenVINO's reader has none.
    depth_to_space(random("f32", 1, 8, 2, 3), gives=random("f32", 1, 8, 2, 3), id="default block"),
    depth_to_space.facts("f32[?,8,?,3]", block_size="2", id="dynamic"),
    depth_to_space.refuses("f32[1,6,2,2]", block_size="2", says="6 channels cannot be split", id="uneven"),
    space_to_depth.facts("f32[?,2,?,6]", mode="depth_first", id="dynamic"),
    space_to_depth.refuses(
        "f32[1,2,5,4]", mode="blocks_first", says="spatial size 5 is not a multiple of block_size 2", id="uneven"
    ),
]
reverse_sequence = Operation("ReverseSequence", 1)
ROWS += [
    reverse_sequence(X, [1, 3], batch_axis="0", seq_axis="1", id="axes 0 and 1"),
    reverse_sequence(X, typed("i32", [2, 1, 0]), batch_axis="1", seq_axis="-1", id="negative axis, i32"),
    reverse_sequence(random("f32", 4, 3), [1.0, 4.0, 2.0], batch_axis="1", seq_axis="0", id="lengths in f32"),
    reverse_sequence(random("u8", 3, 2, low=0, high=9), [2, 1, 2], id="u8, defaults"),
    reverse_sequence.facts("f32[?,3]", "i64[4]", batch_axis="0", seq_axis="1", id="dynamic"),
    reverse_sequence.facts("f32[...]", "i64[4]", batch_axis="0", seq_axis="1", id="rank unknown"),
    reverse_sequence.refuses(
        "f32[2,3]", "i64[3]", batch_axis="0", seq_axis="1", says="sizes 2 and 3 differ", id="other length"
    ),
    reverse_sequence.refuses(
        "f32[2,3]",
        [1, 4],
        batch_axis="0",
        seq_axis="1",
        says="seq_lengths has 4, expected 0 to 3, the size of the axis",
        id="too long",
    ),
    reverse_sequence.refuses(
        "f32[2,3]", "i64[2]", batch_axis="2", seq_axis="1", says="batch_axis 2 is out of range", id="axis out of range"
    ),
]
ROWS += [
    facts_case("Split", 1, "f32[5..8,6]", 0, num_splits="2", id="bounds rounded inwards"),
    refuses("Split", 1, "f32[5,6]", 0, num_splits="2", says="cannot be split", id="uneven first axis"),
    depth_to_space.facts("f32[1,5..13,2,2]", block_size="2", id="channels bounded"),
]
NAN, INF = float("nan"), float("inf")
ROWS += [
    case("Split", 1, typed("i64", [1, 2, 3, 4]), 0, num_splits="4", id="vector of i64"),
    variadic_split(typed("u8", [1, 2, 3]), 0, typed("i32", [3, 0]), id="vector of u8, i32 lengths, one of them 0"),
    reverse(X, [-1, -3], id="negative axes"),
    reverse(typed("i32", [1, 2, 3]), typed("boolean", [False]), mode="mask", id="mask that keeps"),
    reverse(X, np.zeros(0, np.int64), gives=X, id="no axes"),
    case("Roll", 7, typed("i32", [1, 2, 3, 4, 5]), -7, 0, id="scalar axis, more than once around"),
    case("Roll", 7, X, [1, 1, -3], [0, 0, 2], id="axis twice"),
    reverse_sequence(X, [1, 3], batch_axis="-3", seq_axis="1", id="negative batch_axis"),
    reverse_sequence(random("f32", 3, 2, 2), [1, 1], batch_axis="1", seq_axis="0", id="lengths of 1"),
    case("Identity", 16, typed("boolean", [True, False]), id="boolean"),
    case("Identity", 16, typed("string", ["a", ""]), gives=typed("string", ["a", ""]), id="text"),
    reverse.refuses("f32[2,3]", [2], says="axis 2 is out of range", id="axis out of range"),
    refuses("Roll", 7, "f32[2,3]", "i64[2,3]", [0], says="shift has rank 2, expected 0 or 1", id="rank of shift"),
    refuses(
        "Roll", 7, "f32[2,3]", "i64[1]", "i64[3]", says="shift has the shape [1], axes [3]", id="one shift in a vector"
    ),
    refuses("Roll", 7, "f32[2,3]", 1, [2], says="axis 2 is out of range", id="axis out of range"),
]
ROWS += [
    *halves(ROWS),
    *odd(ROWS),
    *emptied(
        ROWS, "DepthToSpace", "SpaceToDepth", "Identity", "Reverse", "Roll", "ShuffleChannels", "Split", "VariadicSplit"
    ),
    *emptied(ROWS, "ReverseSequence", inputs=(0, 1)),
]
ROWS += [
    case("Concat", 1, random("f32", 0, 2), random("f32", 0, 2), axis="0", id="two empty ones"),
    case("Roll", 7, X, [0], [0], id="by nothing"),
    reverse(X, [1, -2], id="axis twice"),
    variadic_split(random("f32", 6), 0, [0, 6, 0], id="empty parts"),
]
ROWS += [
    case("Identity", 16, np.float32(1.5), id="scalar"),
    transpose(np.float32(1.5), np.zeros(0, np.int64), id="scalar"),
    reverse(np.float32(1.5), np.zeros(0, np.int64), id="scalar"),
]
ROWS += [
    reverse.refuses(
        "boolean[2]",
        "boolean[3]",
        mode="mask",
        says="the mask has 3 elements for data boolean[2]",
        id="mask longer than the rank",
    ),
    reverse.refuses(
        "f32[2,3,1]", [True, False], mode="mask", says="the mask has 2 elements", id="mask shorter than the rank"
    ),
    reverse_sequence.refuses(
        "f32[2,3]", [-1, 3], says="seq_lengths has -1, expected 0 to 3, the size of the axis", id="negative length"
    ),
    reverse_sequence.refuses("f32[2,3]", [np.nan, 3.0], says="seq_lengths has nan, expected 0 to 3", id="length NaN"),
    reverse_sequence.refuses(
        "f32[2,3]", [4095.0, 1.0], says="seq_lengths has 4095.0, expected 0 to 3", id="length in f32"
    ),
    reverse_sequence(random("f32", 3, 4), [2.6, 1.0, 3.2], id="fractions of lengths are cut off"),
]
