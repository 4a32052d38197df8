"""Rows of operations on shapes."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 2, 3, 4)
reshape = Operation("Reshape", 1, special_zero="false")
ROWS = [
    case("ShapeOf", 1, X, id="f32"),
    case("ShapeOf", 1, np.float32(1), id="scalar"),
    facts_case("ShapeOf", 1, "f32[?,2..5]", id="dynamic"),
    facts_case("ShapeOf", 1, "f32[...]", id="rank unknown"),
    case("ShapeOf", 3, X, output_type="i32", id="i32"),
    case("ShapeOf", 3, X, output_type="i64", id="i64"),
    case("ShapeOf", 3, random("boolean", 0, 3), output_type="i64", id="empty"),
    facts_case("ShapeOf", 3, "f32[?,2..5]", output_type="i32", id="dynamic"),
    reshape(X, [4, 6], id="two axes"),
    reshape(X, [-1, 6], id="-1"),
    reshape(X, [0, -1], special_zero="true", id="0 and -1"),
    reshape(X, [0, 0, 2, 2], special_zero="true", id="two zeros"),
    reshape(X, typed("i32", [24]), special_zero="true", id="i32 pattern"),
    reshape(random("f32", 1), np.zeros(0, np.int64), id="to a scalar"),
    reshape(random("f32", 0, 3), [3, 0], gives=np.zeros((3, 0), np.float32), id="empty"),
    reshape(random("f32", 2, 0), [0, -1], special_zero="true", gives=np.zeros((2, 0), np.float32), id="empty and -1"),
    reshape(random("u8", 2, 3, low=0, high=9), [3, 2], id="u8"),
    reshape(random("f16", 2, 3), [3, 2], id="f16"),
    reshape.facts("f32[?,3,4]", [0, 12], special_zero="true", id="dynamic kept"),
    reshape.facts("f32[?,3,4]", [0, -1], special_zero="true", id="dynamic kept and the rest"),
    reshape.facts("f32[?,3,4]", [-1, 12], id="dynamic left"),
    reshape.facts("f32[2..5,3,4]", [-1, 6], id="bounded left"),
    reshape.facts("f32[2,3,4]", "i64[2]", id="pattern unknown"),
    reshape.facts("f32[...]", [0, 4, -1], special_zero="true", id="rank unknown"),
    reshape.facts("f32[2,3]", "i64[?]", special_zero="true", id="length of the pattern unknown"),
    reshape.refuses("f32[1]", [1] * 66, says="rank 66, and at most 64 are possible", id="more axes than an array has"),
    reshape.refuses("f32[2,3]", [4, 2], says="[2,3] cannot be reshaped to [4, 2]", id="other count"),
    reshape.refuses("f32[2,3]", [-1, -1], says="more than one -1", id="two -1"),
    reshape.refuses("f32[2,3]", [-1, 4], says="cannot be reshaped", id="not divisible"),
    reshape.refuses("f32[2,3]", [2, 3, 0], special_zero="true", says="pattern [2, 3, 0] copies size 2, which data [2,3] does not have", id="0 beyond the rank"),
    case("Squeeze", 1, random("f32", 1, 3, 1, 2), [0, 2], id="two axes"),
    case("Squeeze", 1, random("f32", 1, 3, 1, 2), [-2], id="negative axis"),
    case("Squeeze", 1, random("f32", 1, 3, 1, 2), id="all"),
    case("Squeeze", 1, random("f32", 1, 3), 0, id="scalar axis"),
    facts_case("Squeeze", 1, "f32[?,1,3]", [1], id="dynamic"),
    facts_case("Squeeze", 1, "f32[?,1,3]", [0], id="dynamic axis"),
    facts_case("Squeeze", 1, "f32[...]", [0], id="rank unknown"),
    facts_case("Squeeze", 1, "f32[1,?,3]", id="all, dynamic"),
    facts_case("Squeeze", 1, "f32[1,3,2..5]", [0, 1, 2], id="other sizes stay"),
    facts_case("Squeeze", 1, "f32[2..4,3]", "i64[]", id="no size 1, axis unknown"),
    facts_case("Squeeze", 1, "f32[?,1,3]", "i64[1]", id="axis unknown"),
    facts_case("Squeeze", 15, "f32[2..4,3]", "i64[1]", id="no size 1, axis unknown"),
    facts_case("Squeeze", 15, "f32[?,1,3]", "i64[1]", id="axis unknown"),
    refuses("Squeeze", 1, "f32[1,3]", [4], says="axis 4 is out of range", id="axis out of range"),
    case("Squeeze", 15, random("f32", 1, 3, 1, 2), [0, 2], allow_axis_skip="false", id="two axes"),
    case("Squeeze", 15, random("f32", 1, 3, 1, 2), [0, 1], allow_axis_skip="true", id="skips"),
    case("Squeeze", 15, random("f32", 1, 3, 1, 2), id="all"),
    facts_case("Squeeze", 15, "f32[?,1,3]", [1], id="dynamic"),
    facts_case("Squeeze", 15, "f32[?,1,3]", [0, 1], allow_axis_skip="true", id="dynamic, may skip"),
    facts_case("Squeeze", 15, "f32[1,3,2..5]", [0, 1, 2], id="other sizes stay"),
    facts_case("Squeeze", 15, "f32[1,3,2..5]", [0, 1, 2], allow_axis_skip="true", id="other sizes stay, may skip"),
    case("Unsqueeze", 1, random("f32", 2, 3), [0, 3], id="both ends"),
    case("Unsqueeze", 1, random("f32", 2, 3), [-1], id="negative axis"),
    case("Unsqueeze", 1, np.float32(2), [0], id="scalar"),
    case("Unsqueeze", 1, random("f32", 2, 3), 1, id="scalar axis"),
    facts_case("Unsqueeze", 1, "f32[?,2..5]", [1], id="dynamic"),
    facts_case("Unsqueeze", 1, "f32[...]", [1], id="rank unknown"),
    refuses("Unsqueeze", 1, "f32[2,3]", [5], says="axis 5 is out of range", id="axis out of range"),
    refuses("Unsqueeze", 1, "f32[2,3]", [0, 0], says="axes [0, 0] has an axis twice", id="axis twice"),
]  # fmt: skip
ROWS += [
    reshape.facts("f32[4,1..4,4]", [-1, 8, 0], special_zero="true", id="bounds rounded inwards"),
    reshape.facts("f32[2..5,1]", [-1, 0, 2, 2], special_zero="true", id="one size is left"),
    reshape.refuses("f32[2..3]", [-1, 5], special_zero="true", says="cannot be reshaped", id="too few for any size"),
    facts_case("Squeeze", 15, "f32[2,3]", "i64[]", allow_axis_skip="true", id="nothing to squeeze"),
    case("Unsqueeze", 1, typed("bf16", 2.5), [0], id="bf16 scalar"),
    # As OpenVINO's shape inference has it: 1 where any size would do.
    reshape.facts("f32[3,4,0]", [-1, 0], gives="f32[1,0]", id="-1 beside an empty axis"),
    # OpenVINO refuses it, although a run may have a size of 0.
    reshape.refuses(
        "f32[?,4]", [-1, 0], says="no size of [?,4] is known to be 0", id="-1 beside 0 and data that may be empty"
    ),
    reshape.refuses("f32[2]", "i64[]", says="shape has rank 0, expected 1", id="scalar pattern"),
    reshape(
        random("f32", 3, 4, 0),
        [-1, 0],
        special_zero="true",
        gives=np.zeros((0, 4), np.float32),
        id="-1 beside a copied axis",
    ),
    reshape.facts("f32[2,3,0]", [0, -1, 0], id="-1 between empty axes"),
]
ROWS += [
    case("ShapeOf", 1, random("f32", 2, 0), id="empty"),
    reshape([np.nan, np.inf, -np.inf, 1.0], [2, 2], id="NaN and infinities"),
    case("Squeeze", 15, random("f32", 1, 3, 1, 2), [-2, -4], allow_axis_skip="false", id="negative axes"),
    case("Squeeze", 15, random("f32", 1, 1), [0, 1], id="to a scalar"),
    case("Squeeze", 15, random("i64", 3, 1, low=0, high=9), 1, id="scalar axis, i64"),
    case("Squeeze", 1, random("f32", 1, 3, 1, 2), [0, 0, 2], id="axis twice"),
    case("Squeeze", 1, np.float32(3), id="scalar"),
    refuses("Squeeze", 15, "f32[1,3]", [4], says="axis 4 is out of range", id="axis out of range"),
    refuses("Squeeze", 15, "f32[1,3]", [0.0], says="expected an integer type", id="axes of floats"),
]
ROWS += [*halves(ROWS), *odd(ROWS, but=("ShapeOf",)), *emptied(ROWS, "Squeeze", axis=1), *emptied(ROWS, "Unsqueeze")]
ROWS += [
    reshape(np.float32(1.5), [1, 1], id="scalar"),
    case("ShapeOf", 3, np.float32(1.5), output_type="i64", id="scalar"),
    case("Squeeze", 15, np.float32(1.5), id="scalar"),
    # Data without axes have an axis 0 for OpenVINO, of which nothing comes.
    *(
        case("Squeeze", since, np.float32(1.5), axes, id=f"scalar, axes {axes}")
        for since in (1, 15)
        for axes in ([0], [-1])
    ),
    refuses("Squeeze", 1, "f32[]", [1], says="axis 1 is out of range", id="scalar, axis out of range"),
]
