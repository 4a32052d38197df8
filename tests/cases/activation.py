"""Rows of activations that take parameters, and of Softmax."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 2, 3, 5, low=-5, high=5)
XH = random("f16", 2, 3, low=-5, high=5)

elu = Operation("Elu", 1, alpha="1")
p_relu = Operation("PRelu", 1)
gelu_2 = Operation("Gelu", 2)
ROWS = [
    case("Clamp", 1, X, min="-1", max="2.5", id="f32"),
    case("Clamp", 1, XH, min="-1", max="2.5", id="f16"),
    case("Clamp", 1, typed("i32", [-5, -1, 0, 2, 9]), min="-1.5", max="2.5", id="i32 bounds rounded inwards"),
    case("Clamp", 1, typed("u8", [0, 1, 9]), min="1", max="5", id="u8"),
    case("Clamp", 1, typed("i64", [-5, 9]), min="-inf", max="2", gives=typed("i64", [-5, 2]), id="i64 open below"),
    facts_case("Clamp", 1, "f32[?,3]", min="0", max="6", id="dynamic"),
    refuses("Clamp", 1, "f32[3]", min="2", max="1", says="min 2 is above max 1", id="bounds the wrong way round"),
    elu(X, alpha="0.7", id="f32"),
    elu(XH, id="f16"),
    elu([-200.0, 0.0, 3.0], alpha="2", id="far out"),
    *(elu(typed(kind, [-100, -3, -1, 0, 1, 100]), alpha="2.5", id=f"{kind} rounded") for kind in ("i8", "i32", "i64")),
    elu(typed("u8", [0, 1, 200]), alpha="2.5", id="u8 rounded"),
    elu.facts("f32[?,3]", id="dynamic"),
    case("Selu", 1, X, np.float32(1.67), np.float32(1.05), id="f32"),
    case("Selu", 1, X, np.array([1.67], np.float32), np.array([1.05], np.float32), id="vectors of one"),
    facts_case("Selu", 1, "f32[?,3]", "f32[]", "f32[]", id="dynamic"),
    case("HardSigmoid", 1, X, np.float32(0.2), np.float32(0.5), id="f32"),
    case("HardSigmoid", 1, XH, typed("f16", 0.2), typed("f16", 0.5), id="f16"),
    facts_case("HardSigmoid", 1, "f32[?,3]", "f32[]", "f32[]", id="dynamic"),
    p_relu(X, [0.1, 0.2, 0.3], id="one slope a channel"),
    p_relu(X, [0.1], id="one slope"),
    p_relu(
        [[-np.inf, np.inf, np.nan, -0.0, -2.0]],
        [0.5, 2.0, 1.0, 3.0, -1.0],
        gives=np.float32([[-np.inf, np.inf, np.nan, 0, 2]]),
        id="numbers that are none",
    ),
    p_relu(random("f32", 2, 3, 4, 4, low=-2, high=2), random("f32", 1, 3, 1, 1), id="shape of the channels"),
    p_relu(random("f32", 6, low=-2, high=2), random("f32", 6, seed=1), id="vector"),
    p_relu(random("f32", 2, 3, 4, low=-2, high=2), random("f32", 2, 3, 4, seed=1), id="slope as large as the data"),
    p_relu.facts("f32[?,3,4]", "f32[3]", id="dynamic"),
    p_relu(typed("f16", [-2, 4]), [0.5], gives=np.float16([-1, 4]), id="slope of f32 beside f16"),
    p_relu.refuses("f32[3]", "i32[1]", says="element types f32 and i32 differ", id="integer slope"),
    p_relu.refuses("string[3]", "string[1]", says="expected a numeric type", id="strings"),
    case("Swish", 4, X, id="without beta"),
    case("Swish", 4, X, np.float32(0.6), id="beta"),
    case("Swish", 4, XH, id="f16"),
    case("Swish", 4, [-20.0, -15.9, -8.0, -87.0], id="far below zero"),
    case("Swish", 4, [-20.0, -15.9, -8.0], np.float32(0.9), id="far below zero, beta"),
    facts_case("Swish", 4, "f32[?,3]", id="dynamic"),
    refuses("Swish", 4, "f32[3]", "f32[1]", says="beta has rank 1, expected 0", id="vector of one beta"),
    gelu_2(X, id="f32"),
    gelu_2.facts("f32[?,3]", id="dynamic"),
    case("Gelu", 7, X, approximation_mode="ERF", id="erf"),
    case("Gelu", 7, X, approximation_mode="TANH", id="tanh"),
    case("Gelu", 7, XH, approximation_mode="ERF", id="f16"),
    case("Gelu", 7, [-20.0, 20.0, 0.0], approximation_mode="ERF", id="far out"),
    facts_case("Gelu", 7, "f32[?,3]", approximation_mode="TANH", id="dynamic"),
    refuses("Gelu", 7, "i32[3]", says="expected a floating-point type", id="integers"),
    case("Softmax", 1, X, axis="1", id="axis 1"),
    case("Softmax", 1, X, axis="2", id="axis 2"),
    case("Softmax", 1, XH, axis="1", id="f16"),
    facts_case("Softmax", 1, "f32[?,3]", axis="1", id="dynamic"),
    refuses("Softmax", 1, "f32[2,3]", axis="-1", says="axis -1 is negative", id="negative axis"),
    case("Softmax", 8, X, axis="-1", id="last axis"),
    case("Softmax", 8, X, axis="0", id="axis 0"),
    case("Softmax", 8, [[1000.0, 1001.0], [-1000.0, 0.0]], axis="1", id="far out"),
    case("Softmax", 8, random("bf16", 2, 4), axis="1", id="bf16"),
    case("Softmax", 8, random("f32", 2, 0), axis="1", gives=np.zeros((2, 0), np.float32), id="empty"),
    facts_case("Softmax", 8, "f32[?,3]", axis="-2", id="dynamic"),
    refuses("Softmax", 8, "f32[2,3]", axis="2", says="axis 2 is out of range for data of rank 2", id="axis out of range"),
    case("LogSoftmax", 5, X, axis="-1", id="last axis"),
    case("LogSoftmax", 5, X, id="default axis"),
    case("LogSoftmax", 5, [[1000.0, 1001.0], [-1000.0, 0.0]], axis="1", id="far out"),
    facts_case("LogSoftmax", 5, "f32[?,3]", axis="1", id="dynamic"),
    refuses("LogSoftmax", 5, "f32[2,3]", axis="5", says="axis 5 is out of range", id="axis out of range"),
]  # fmt: skip
ROWS += [
    # NaN stays NaN, which the plugin makes 1.
    case(
        "HardSigmoid",
        1,
        [np.nan, np.inf, -np.inf, 0.0],
        np.float32(0.2),
        np.float32(0.5),
        gives=np.float32([np.nan, 1, 0, 0.5]),
        id="NaN and infinities",
    ),
    # By the formula, x/2 (1 + erf): infinity times 0 is NaN. The plugin's error function gives NaN for either infinity.
    gelu_2([np.nan, np.inf, -np.inf, 0.0], gives=np.float32([np.nan, np.inf, np.nan, 0]), id="NaN and infinities"),
    case(
        "Gelu",
        7,
        [np.nan, np.inf, -np.inf, 0.0],
        approximation_mode="ERF",
        gives=np.float32([np.nan, np.inf, np.nan, 0]),
        id="NaN and infinities",
    ),
    # By the formula, a number less the logarithm of the sum: NaN among the numbers is in the sum, infinity less itself is NaN.
    case(
        "LogSoftmax",
        5,
        [[np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [-np.inf, 0.0, 0.0]],
        axis="1",
        gives=np.float32([[np.nan] * 3, [np.nan] * 3, [-np.inf, -np.log(2), -np.log(2)]]),
        id="NaN and infinities",
    ),
    case("LogSoftmax", 5, random("f32", 4, low=-3), axis="0", id="vector"),
    case("Selu", 1, random("f32", 7, low=-3, high=3), np.float32(1.67), np.float32(1.05), id="vector"),
    gelu_2(random("f32", 7, low=-3, high=3), id="vector"),
    elu.refuses("boolean[3]", says="boolean", id="booleans"),
    gelu_2.refuses("i32[3]", says="expected a floating-point type", id="integers"),
    refuses("HardSigmoid", 1, "f32[3]", "f16[]", "f32[]", says="differ", id="types that differ"),
    refuses("Selu", 1, "f32[3]", "f32[]", "f16[]", says="differ", id="types that differ"),
    p_relu.refuses("f32[1,2,3]", "f32[5]", says="cannot be broadcast", id="slope of another length"),
    p_relu(random("f32", 0, 3), [0.1, 0.2, 0.3], gives=np.zeros((0, 3), np.float32), id="empty"),
]
ROWS += [
    *halves(ROWS),
    *odd(ROWS),
    *emptied(ROWS, "Clamp", "Elu", "Selu", "HardSigmoid", "Swish", "Gelu", "Softmax", "LogSoftmax"),
]
ROWS += [
    elu([np.nan, np.inf, -np.inf, -0.0], id="corners"),
    case("Swish", 4, [np.nan, np.inf, -np.inf, -1e30], id="corners"),
    case("Swish", 4, [np.nan, np.inf, -np.inf], np.float32(0), id="corners of beta 0"),
    case("Selu", 1, [np.nan, np.inf, -np.inf], np.float32(1.67), np.float32(1.05), id="corners"),
    p_relu([np.nan, np.inf, -np.inf], [0.0], id="corners of slope 0"),
    case("Softmax", 8, [[np.inf, 1.0], [-np.inf, -np.inf], [-np.inf, 0.0]], axis="1", id="infinities"),
    case("LogSoftmax", 5, [[-np.inf, -np.inf], [-np.inf, 0.0]], axis="1", id="infinities below"),
]
for op, since, more in (
    ("Clamp", 1, {"min": "0", "max": "1"}),
    ("Elu", 1, {"alpha": "1"}),
    ("Gelu", 2, {}),
    ("Gelu", 7, {}),
    ("Swish", 4, {}),
    ("Softmax", 8, {"axis": "-1"}),
    ("LogSoftmax", 5, {"axis": "0"}),
):
    ROWS.append(case(op, since, np.float32(-1.5), **more, id="scalar"))
ROWS += [
    case("HardSigmoid", 1, np.float32(0.5), np.float32(0.2), np.float32(0.5), id="scalar"),
    case("Selu", 1, np.float32(-1.5), np.float32(1.67), np.float32(1.05), id="scalar"),
]
