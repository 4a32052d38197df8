"""Rows of logical and bitwise operations, and of Select."""

import numpy as np

from tests.support.cases import case, facts_case, random, refuses, typed

T, F = typed("boolean", [True, True, False, False]), typed("boolean", [True, False, True, False])
ROWS = []
for op in ("LogicalAnd", "LogicalOr", "LogicalXor", "Xor"):
    ROWS += [
        case(op, 1, T, F, id="all four"),
        case(op, 1, random("boolean", 2, 1, 3), random("boolean", 4, 1, seed=1), id="both stretch"),
        case(op, 1, T, F, auto_broadcast="none", id="none"),
        case(op, 1, random("boolean", 2, 3), random("boolean", 2, seed=1), auto_broadcast="pdpd", id="pdpd"),
        facts_case(op, 1, "boolean[?,3]", "boolean[2,1]", id="dynamic"),
        refuses(op, 1, "f32[2]", "f32[2]", says="is not boolean", id="floats"),
    ]
ROWS += [
    case("LogicalNot", 1, T, id="both"),
    facts_case("LogicalNot", 1, "boolean[...]", id="dynamic"),
    refuses("LogicalNot", 1, "i32[2]", says="is not boolean", id="integers"),
    case("BitwiseNot", 13, typed("i32", [0, 5, -1]), id="i32"),
    case("BitwiseNot", 13, typed("u8", [0, 5, 255]), id="u8"),
    case("BitwiseNot", 13, T, id="booleans"),
    facts_case("BitwiseNot", 13, "u8[?]", id="dynamic"),
    refuses("BitwiseNot", 13, "f32[2]", says="neither integer nor boolean", id="floats"),
]
for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    ROWS += [
        case(op, 13, typed("i32", [12, -1, 7]), typed("i32", [10, 6, -8]), id="i32"),
        case(op, 13, typed("u8", [[12], [255]]), typed("u8", [10, 6]), id="u8 both stretch"),
        case(op, 13, T, F, id="booleans"),
        case(op, 13, typed("i64", [12, -1]), typed("i64", [10, 6]), auto_broadcast="none", id="i64 none"),
        facts_case(op, 13, "i32[?,3]", "i32[2,1]", id="dynamic"),
        refuses(op, 13, "f32[2]", "f32[2]", says="neither integer nor boolean", id="floats"),
    ]
for op in ("BitwiseLeftShift", "BitwiseRightShift"):
    ROWS += [
        case(op, 15, typed("i32", [12, 1, 7, -8]), typed("i32", [1, 4, 0, 2]), id="i32"),
        case(op, 15, typed("u8", [[12], [200]]), typed("u8", [1, 3]), id="u8 both stretch"),
        case(op, 15, typed("i64", [12]), typed("i64", [2]), auto_broadcast="none", id="none"),
        facts_case(op, 15, "i32[?,3]", "i32[2,1]", id="dynamic"),
        refuses(op, 15, "boolean[2]", "boolean[2]", says="booleans cannot be shifted", id="booleans"),
    ]
ROWS += [
    case("Select", 1, typed("boolean", [True, False, True]), [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], id="same shapes"),
    case("Select", 1, random("boolean", 2, 1, 3), random("f32", 4, 1), random("f32", 1, 3, seed=1), id="all stretch"),
    case("Select", 1, typed("boolean", True), random("f32", 2, 3), random("f32", 3, seed=1), id="scalar condition"),
    case("Select", 1, typed("boolean", [True, False]), typed("i64", [1, 2]), typed("i64", [3, 4]), auto_broadcast="none", id="none"),
    case("Select", 1, random("boolean", 2), random("f32", 2, 3), random("f32", 2, 1, seed=1), auto_broadcast="pdpd", id="pdpd"),
    case("Select", 1, random("boolean", 2, 3), random("f16", 2, 3), random("f16", 2, 3, seed=1), id="f16"),
    case("Select", 1, random("boolean", 3), random("boolean", 3, seed=1), random("boolean", 3, seed=2), id="booleans"),
    case("Select", 1, random("boolean", 0), random("f32", 0), random("f32", 1), gives=np.zeros(0, np.float32), id="empty"),
    facts_case("Select", 1, "boolean[?,1]", "f32[2..4,3]", "f32[1]", id="bounded"),
    facts_case("Select", 1, "boolean[...]", "f32[2,3]", "f32[2,3]", id="rank unknown"),
    refuses("Select", 1, "f32[2]", "f32[2]", "f32[2]", says="cond has element type f32", id="condition of floats"),
    refuses("Select", 1, "boolean[2]", "f32[2]", "i32[2]", says="element types f32 and i32 differ", id="branches that differ"),
]
