"""Rows of element-wise arithmetic."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import PDPD_AXIS, emptied, odd

A, B = random("f32", 2, 3), random("f32", 2, 3, low=0.5, high=2, seed=1)
BINARY = (
    "Add", "Subtract", "Multiply", "Maximum", "Minimum", "Divide", "Mod", "FloorMod", "Power", "SquaredDifference",
)  # fmt: skip

ROWS = []
for op in BINARY:
    ROWS += [
        case(op, 1, A, B, id="same shapes"),
        case(op, 1, random("f32", 4, 1, 3), random("f32", 2, 1, low=0.5, high=2, seed=1), id="both stretch"),
        case(op, 1, random("f32", 2, 3, 4), random("f32", low=0.5, high=2, seed=1), id="scalar on the right"),
        case(
            op,
            1,
            random("f32", seed=3, low=1, high=2),
            random("f32", 3, low=0.5, high=2, seed=1),
            id="scalar on the left",
        ),
        case(op, 1, A, B, auto_broadcast="none", id="none"),
        case(
            op,
            1,
            random("f32", 2, 3, 4),
            random("f32", 2, 1, low=0.5, high=2, seed=1),
            auto_broadcast="pdpd",
            # No implementation of OpenVINO runs Mod so: NumPy on shapes aligned by hand.
            gives=np.fmod(
                random("f32", 2, 3, 4).array, random("f32", 2, 1, low=0.5, high=2, seed=1).array.reshape(2, 1, 1)
            )
            if op == "Mod"
            else None,
            id="pdpd from axis 0",
        ),
        *(
            case(
                op,
                1,
                random("f32", 2, 3, 4),
                random("f32", *sizes, low=0.5, high=2, seed=1),
                auto_broadcast="pdpd",
                **{PDPD_AXIS: axis},
                gives=np.fmod(
                    random("f32", 2, 3, 4).array, random("f32", *sizes, low=0.5, high=2, seed=1).array.reshape(aligned)
                )
                if op == "Mod"
                else None,
                id=f"pdpd from axis {axis}",
            )
            for sizes, axis, aligned in (((3,), 1, (1, 3, 1)), ((3, 4), -1, (1, 3, 4)))
        ),
        case(op, 1, random("f16", 2, 3, low=0.5, high=2), random("f16", 2, 3, low=0.5, high=2, seed=1), id="f16"),
        case(op, 1, random("bf16", 2, 3, low=0.5, high=2), random("bf16", 2, 3, low=0.5, high=2, seed=1), id="bf16"),
        case(op, 1, typed("i32", [7, 9, 12]), typed("i32", [2, 3, 5]), id="i32"),
        case(op, 1, typed("i64", [7, 9, 12]), typed("i64", [2, 3, 5]), id="i64"),
        facts_case(op, 1, "f32[?,3,1]", "f32[2..4,1,5]", id="bounded"),
        facts_case(op, 1, "f32[...]", "f32[3]", id="rank unknown"),
        facts_case(op, 1, "i64[1..8,?]", "i64[1,6]", id="a size that may be 1"),
        refuses(
            op, 1, "f32[2,3]", "f32[2,4]", says="[2,3] and [2,4] cannot be broadcast together", id="sizes that differ"
        ),
        refuses(op, 1, "f32[2]", "i32[2]", says="element types f32 and i32 differ", id="types that differ"),
        refuses(op, 1, "f32[2,3]", "f32[1,3]", auto_broadcast="none", says="differ", id="none with shapes that differ"),
        refuses(op, 1, "boolean[2]", "boolean[2]", says="expected a numeric type", id="booleans"),
    ]

add = Operation("Add", 1)
divide = Operation("Divide", 1)
floor_mod = Operation("FloorMod", 1)
mod = Operation("Mod", 1)
power = Operation("Power", 1)
ROWS += [
    # What u8 does beyond its range: it wraps (settled against the reference).
    add(typed("u8", [250, 3]), typed("u8", [10, 4]), gives=np.array([4, 7], np.uint8), id="u8 wraps"),
    case("Subtract", 1, typed("u8", [2, 3]), typed("u8", [10, 4]), gives=np.array([248, 255], np.uint8), id="u8 wraps"),
    case(
        "Multiply", 1, typed("u8", [100, 3]), typed("u8", [10, 4]), gives=np.array([232, 12], np.uint8), id="u8 wraps"
    ),
    add(random("f32", 0, 3), random("f32", 1, 3), gives=np.zeros((0, 3), np.float32), id="empty"),
    add(
        [np.inf, np.nan, 1e38],
        [-np.inf, 1.0, 3e38],
        gives=np.array([np.nan, np.nan, np.inf], np.float32),
        id="no number",
    ),
    divide([1.0, -1.0, 0.0], [0.0, 0.0, 0.0], gives=np.array([np.inf, -np.inf, np.nan], np.float32), id="by zero"),
    divide(
        typed("i32", [7, -7, 7, -7]),
        typed("i32", [2, 2, -2, -2]),
        gives=np.array([3, -4, -4, 3], np.int32),
        id="floors",
    ),
    divide(
        typed("i8", [-128, 127, -128, 127, 1, -1]),
        typed("i8", [3, -2, -128, -128, -128, 127]),
        gives=np.array([-43, -64, 1, -1, -1, -1], np.int8),
        id="floors at the limits of i8",
    ),
    divide(
        typed("i32", [7, -7, 7, -7]),
        typed("i32", [2, 2, -2, -2]),
        m_pythondiv="false",
        gives=np.array([3, -3, -3, 3], np.int32),
        id="truncates",
    ),
    divide([-7, 7], [2, 2], m_pythondiv="false", gives=np.array([-3, 3]), id="truncates a negative by a size"),
    # Not defined in the specification; 0 is what is documented here.
    divide([7, -7, 6], [0, 0, 4], gives=np.array([0, 0, 1]), id="i64 by zero"),
    floor_mod([7, -7, 6], [0, 0, 4], gives=np.array([0, 0, 2]), id="i64 by zero"),
    mod(
        typed("i32", [7, -7, 7, -7]), typed("i32", [3, 3, -3, -3]), gives=np.array([1, -1, 1, -1], np.int32), id="signs"
    ),
    mod([5.3, -5.3, 5.3, -5.3], [2.0, 2.0, -2.0, -2.0], id="signs of floats"),
    floor_mod(
        typed("i32", [7, -7, 7, -7]), typed("i32", [3, 3, -3, -3]), gives=np.array([1, 2, -2, -1], np.int32), id="signs"
    ),
    floor_mod([5.3, -5.3, 5.3, -5.3], [2.0, 2.0, -2.0, -2.0], id="signs of floats"),
    power([2.0, -2.0, 0.0, 4.0], [3.0, 3.0, 0.0, 0.5], id="exponents"),
    # Beyond the type: the lowest i32 and i64, the low bits of u32, as constants are folded.
    power(typed("i32", [2, 2, -2, 3]), typed("i32", [31, 100, 33, 25]), id="beyond i32"),
    power(typed("i64", [2, 2, -2, 3]), typed("i64", [63, 100, 65, 41]), id="beyond i64"),
    power(typed("u32", [2, 2, 2, 3]), typed("u32", [31, 32, 8, 21]), id="beyond u32"),
    power(
        typed("i32", [2, -3, 5]), typed("i32", [10, 3, 0]), gives=np.array([1024, -27, 1], np.int32), id="i32 exponents"
    ),
    case("Maximum", 1, typed("f64", [1.5, -2.5]), typed("f64", [1.0, 3.0]), id="f64"),
    add(typed("f64", [1.5, -2.5]), typed("f64", [1.0, 3.0]), id="f64"),
    add(typed("i8", [100, -100]), typed("i8", [100, -100]), gives=np.array([-56, 56], np.int8), id="i8 wraps"),
    add(typed("u16", [65535]), typed("u16", [2]), gives=np.array([1], np.uint16), id="u16 wraps"),
    add(typed("u4", [15, 3]), typed("u4", [2, 3]), gives=np.array([1, 6], np.uint8), id="u4 wraps"),
    add(typed("i4", [7, -8]), typed("i4", [1, -1]), gives=np.array([-8, 7], np.int8), id="i4 wraps"),
]
# NaN goes through whichever side it stands on; OpenVINO's own comparison takes the second operand, NaN or not.
for op in ("Maximum", "Minimum"):
    pick = np.maximum if op == "Maximum" else np.minimum
    left, right = np.float32([np.nan, 1, np.inf, -np.inf, np.nan]), np.float32([1, np.nan, 2, 2, np.nan])
    ROWS.append(case(op, 1, left, right, gives=pick(left, right), id="NaN on either side"))
for op in BINARY:
    ROWS.append(case(op, 1, typed("i32", 3), typed("i32", [[2], [3]]), id="i32 scalar on the left"))
ROWS += [*odd(ROWS), *emptied(ROWS, *BINARY, inputs=(0, 1))]
ROWS += [
    power([0.0, 0.0, -1.0, -8.0, np.inf, np.nan, 1.0], [-1.0, 0.0, 0.5, 1 / 3, 0.0, 0.0, np.nan], id="corners"),
    *(
        power(
            np.array([np.inf, -np.inf, -0.0, 4.0, np.nan, -2.0], kind),
            np.array([0.5], kind),
            gives=np.array([np.inf, np.inf, 0.0, 2.0, np.nan, np.nan], kind),
            id=f"roots of {np.dtype(kind).name}",
        )
        for kind in (np.float16, np.float32, np.float64)
    ),
    case("SquaredDifference", 1, [np.inf, np.nan], [np.inf, 1.0], id="no number"),
    # As C's fmod has it.
    mod([5.0, -5.0, np.inf, 1.0], [0.0, np.inf, 2.0, np.inf], gives=np.float32([np.nan, -5, np.nan, 1]), id="corners"),
]
