"""Rows of functions of one tensor."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

WIDE = random("f32", 3, 17, low=-6, high=6)
UNIT = random("f32", 3, 17, low=-0.99, high=0.99)
POSITIVE = random("f32", 3, 17, low=0.01, high=9)
ABOVE = random("f32", 3, 17, low=1, high=9)
DOMAINS = {
    "Abs": (1, WIDE), "Negative": (1, WIDE), "Sign": (1, WIDE), "Ceiling": (1, WIDE), "Floor": (1, WIDE), "Sqrt": (1, POSITIVE),
    "Exp": (1, WIDE), "Log": (1, POSITIVE), "Sin": (1, WIDE), "Cos": (1, WIDE), "Tan": (1, UNIT), "Asin": (1, UNIT), "Acos": (1, UNIT),
    "Atan": (1, WIDE), "Sinh": (1, WIDE), "Cosh": (1, WIDE), "Tanh": (1, WIDE), "Asinh": (4, WIDE), "Acosh": (4, ABOVE),
    "Atanh": (4, UNIT), "Erf": (1, WIDE), "Relu": (1, WIDE), "Sigmoid": (1, WIDE), "SoftPlus": (4, WIDE), "SoftSign": (9, WIDE),
    "Mish": (4, WIDE), "HSigmoid": (5, WIDE), "HSwish": (4, WIDE),
}  # fmt: skip

ROWS = []
for op, (since, data) in DOMAINS.items():
    ROWS += [
        case(op, since, data, id="f32"),
        case(op, since, np.float32(1.0), id="scalar"),
        case(op, since, typed("f16", data.array[0]), id="f16"),
        case(op, since, typed("bf16", data.array[0]), id="bf16"),
        case(op, since, random("f32", 0, 3), gives=np.zeros((0, 3), np.float32), id="empty"),
        facts_case(op, since, "f32[?,2..5]", id="dynamic"),
        facts_case(op, since, "f16[...]", id="rank unknown"),
        refuses(op, since, "boolean[3]", says="data has element type boolean, expected a", id="booleans"),
    ]
for op in ("Abs", "Negative", "Sign", "Relu"):
    ROWS.append(case(op, 1, typed("i32", [-3, 0, 4]), id="i32"))
round_ = Operation("Round", 5)
ROWS += [
    case("Abs", 1, typed("i64", [-3, 0, 4]), id="i64"),
    case("Ceiling", 1, typed("i32", [-3, 0, 4]), gives=np.array([-3, 0, 4], np.int32), id="i32"),
    case("Floor", 1, typed("i32", [-3, 0, 4]), gives=np.array([-3, 0, 4], np.int32), id="i32"),
    case("Negative", 1, typed("f64", [-3, 0.5]), id="f64"),
    case("Sigmoid", 1, [-100.0, 100.0, -np.inf, np.inf], id="far out"),
    case("Exp", 1, [-200.0, 200.0, -np.inf], id="far out"),
    case("Tanh", 1, [-100.0, 100.0], id="far out"),
    case("Erf", 1, [-10.0, 10.0, 0.0, -np.inf], id="far out"),
    case("SoftPlus", 4, [-100.0, 100.0, 30.0], id="far out"),
    case("Mish", 4, [-100.0, 100.0, 30.0], id="far out"),
    case("Sqrt", 1, [0.0, np.inf, 4.0], id="corners"),
    case("Log", 1, [0.0, np.inf, 1.0], id="corners"),
    round_([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4999, -3.7], mode="half_to_even", id="half_to_even"),
    round_([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4999, -3.7], mode="half_away_from_zero", id="half_away_from_zero"),
    round_([0.5, 1.5], id="default"),
    round_(typed("f16", [0.5, 1.5, -2.5]), mode="half_to_even", id="f16"),
    round_(typed("i32", [3, -4]), mode="half_to_even", gives=np.array([3, -4], np.int32), id="i32"),
    round_.facts("f32[?,2..5]", mode="half_to_even", id="dynamic"),
]
# Functions of integers: results are rounded to nearest, halves to even; bytes saturate. OpenVINO says what they give.
AROUND_ZERO = [-8, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8]
OF_INTEGERS = {
    "Acos": [-1, 0, 1], "Asin": [-1, 0, 1], "Atanh": [0, 0, 0], "Acosh": [1, 2, 3, 5, 100], "Log": [1, 2, 3, 4, 5, 100],
    "Sqrt": [0, 1, 2, 3, 7, 8, 100], **dict.fromkeys(("Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Erf"), AROUND_ZERO),
    **dict.fromkeys(("Sigmoid", "HSigmoid", "HSwish"), AROUND_ZERO),
}  # fmt: skip
# Constant folding truncates these, the CPU plugin rounds them as all others: what the plugin gives for i32.
ROUNDED_BY_THE_PLUGIN = {
    "Exp": [0, 0, 0, 0, 0, 0, 1, 3, 7, 20, 55, 148, 2981],
    "Log": [0, 1, 1, 1, 2, 5],
    "Sin": [-1, 1, 1, 0, -1, -1, 0, 1, 1, 0, -1, -1, 1],
    "Asin": [-2, 0, 2],
}
for op, values in OF_INTEGERS.items():
    since = DOMAINS[op][0]
    for kind in ("i8", "u8", "i32", "i64", "u32"):
        signed = kind[0] == "i"
        given = typed(kind, [value for value in values if signed or value >= 0])
        results = ROUNDED_BY_THE_PLUGIN.get(op) if kind in ("i32", "i64", "u32") else None
        # Both of OpenVINO's implementations keep the low bits of a negative result.
        if results is not None and not signed:
            results = [result & 0xFFFFFFFF for value, result in zip(values, results, strict=True) if value >= 0]
        ROWS.append(
            case(op, since, given, gives=None if results is None else typed(kind, results), id=f"{kind} rounded")
        )
erf_inv = Operation("ErfInv", 17)
ROWS += [
    case("Sqrt", 1, typed("i32", [-1, -4]), id="i32 without a real root"),
    case("Exp", 1, typed("i8", [5, 6, 20]), id="i8 saturates"),
    case("Cosh", 1, typed("u8", [6, 7, 20]), id="u8 saturates"),
    *(
        refuses(op, DOMAINS[op][0], "i32[3]", says="data has element type i32", id="integers")
        for op in ("Mish", "SoftPlus", "SoftSign")
    ),
    erf_inv.refuses("i32[3]", says="data has element type i32", id="integers"),
]
# ErfInv: the plugin's approximation is out by 1 in 2,000 near the ends; these are scipy.special.erfinv of float32 numbers.
ROWS += [
    erf_inv(
        [0.0, 0.5, -0.5, 0.9, 0.99, 0.99999, 1e-8, -0.25],
        gives=np.float32([0.0, 0.47693628, -0.47693628, 1.1630871, 1.8213866, 3.1232057, 8.862269e-09, -0.22531205]),
        id="f32",
    ),
    erf_inv(
        [1.0, -1.0, 1.5, -2.0, np.inf, np.nan],
        gives=np.float32([np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan]),
        id="ends",
    ),
    erf_inv(random("f32", 3, 17, low=-0.97, high=0.97), tolerance=1e-4, id="as OpenVINO"),
    erf_inv(typed("f16", [0.5, -0.25, 0.75]), gives=typed("f16", [0.47693628, -0.22531205, 0.8134198]), id="f16"),
    erf_inv(typed("bf16", [0.5, -0.25, 0.75]), gives=typed("bf16", [0.47693628, -0.22531205, 0.8134198]), id="bf16"),
    erf_inv(
        typed("f64", [0.5, -0.25, 1 - 1e-12]),
        gives=typed("f64", [0.47693627620446987, -0.22531205501217813, 5.042031898572696]),
        tolerance=1e-12,
        id="f64",
    ),
    erf_inv(np.float32(0.5), gives=np.float32(0.47693628), id="scalar"),
    erf_inv(np.zeros((0, 3), np.float32), gives=np.zeros((0, 3), np.float32), id="empty"),
    erf_inv.facts("f32[?,2..5]", id="dynamic"),
    erf_inv.refuses("boolean[3]", says="data has element type boolean, expected a floating-point type", id="booleans"),
]
ROWS += [
    round_(np.float32(2.5), mode="half_to_even", id="scalar"),
    round_.refuses("string[3]", says="data has element type string, expected a numeric type", id="text"),
    round_.facts("f16[...]", mode="half_away_from_zero", id="rank unknown"),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "Round")]
CORNERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0]
ROWS += [
    case(op, since, CORNERS, id="corners of the domain")
    for op, (since, _) in DOMAINS.items()
    if op not in ("Sqrt", "Log", "Relu", "HSigmoid")
]
ROWS += [
    case("Sqrt", 1, CORNERS, id="corners of the domain"),
    case("Log", 1, CORNERS, id="corners of the domain"),
    round_([np.nan, np.inf, -np.inf, -0.5, 0.5, -0.0], mode="half_away_from_zero", id="corners, half_away_from_zero"),
]
