"""Rows of element-wise layers."""

from __future__ import annotations

import math

import numpy as np

from tests.converters.legacy_ir.rows import Row, random, row

X, Y = random(2, 3, 4), random(2, 3, 4)
POSITIVE, INSIDE = np.abs(X) + 1.5, np.tanh(X)
SCALE, SHIFT = random(3), random(3)
ROUND = np.round(X)
ERF = np.vectorize(math.erf)(X).astype(np.float32)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_FUNCTIONS = {
    "Sigmoid": _sigmoid, "TanH": np.tanh, "Exp": np.exp, "Floor": np.floor, "Ceil": np.ceil, "Sin": np.sin, "Cos": np.cos,
    "Tan": np.tan, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Sign": np.sign,
    "Neg": np.negative, "Abs": np.abs, "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)),
    "ReLU6": lambda x: np.clip(x, 0, 6), "Swish": lambda x: x * _sigmoid(x), "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "Reciprocal": lambda x: 1 / x, "ReLU": lambda x: np.maximum(x, 0),
    "Selu": lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)), "Erf": lambda x: ERF,
}  # fmt: skip
_OPERATIONS = {
    "sum": np.add, "mul": np.multiply, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "sub": np.subtract,
    "div": np.divide, "squared_diff": lambda a, b: (a - b) ** 2, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_ACTIVATIONS = [
    ("Sigmoid", {}, _sigmoid(X)), ("TanH", {}, np.tanh(X)), ("elu", {}, np.where(X > 0, X, np.expm1(X))),
    ("relu", {"negative_slope": 0.5}, np.where(X > 0, X, 0.5 * X)), ("relu6", {}, np.clip(X, 0, 6)),
    ("clamp", {"min": -0.5, "max": "1e-1"}, np.clip(X, -0.5, 0.1)), ("logistic", {}, _sigmoid(X)), ("exp", {}, np.exp(X)),
    ("not", {}, (X == 0).astype(np.float32)),
]  # fmt: skip

ROWS: list[Row] = [
    *(row("function", type, [X], function(X)) for type, function in _FUNCTIONS.items()),
    *(row(op, "Eltwise", [ROUND, np.round(Y)] if op != "div" else [X, Y],
          function(ROUND if op != "div" else X, np.round(Y) if op != "div" else Y).astype(np.float32),
          {"operation": op}) for op, function in _OPERATIONS.items()),
    *(row(type, "Activation", [X], values, {"type": type} | more) for type, more, values in _ACTIVATIONS),
    row("factors of inputs of other sizes", "Eltwise", [X, Y[:, :, :1]], X + Y[:, :, :1], {"operation": "sum", "coeff": "2.0,3.0"}),
    row("other name of Sigmoid", "Logistic", [X], _sigmoid(X)),
    row("alpha", "Swish", [X], X * _sigmoid(0.5 * X), {"alpha": 0.5}),
    row("acosh", "Acosh", [POSITIVE], np.arccosh(POSITIVE)),
    row("atanh", "Atanh", [INSIDE], np.arctanh(INSIDE)),
    row("asin", "Asin", [INSIDE], np.arcsin(INSIDE)),
    row("acos", "Acos", [INSIDE], np.arccos(INSIDE)),
    row("log", "Log", [POSITIVE], np.log(POSITIVE)),
    row("negative slope", "ReLU", [X], np.where(X > 0, X, -0.25 * X), {"negative_slope": "-0.25"}),
    row("one slope", "PReLU", [X], np.where(X > 0, X, 0.5 * X), {"channel_shared": 1}, blobs={"weights": np.float32([0.5])}),
    row("slopes", "PReLU", [X], np.where(X > 0, X, SCALE[:, None] * X), blobs={"weights": SCALE}),
    row("version 2", "ReLU", [X], np.where(X > 0, X, 0.5 * X), {"negative_slope": 0.5}, version=2, tag="relu_data"),
    row("limits", "Clamp", [X], np.clip(X, -1, 0.5), {"min": -1, "max": 0.5}),
    row("no operation", "Eltwise", [X, Y], X + Y),
    row("factors", "Eltwise", [X, Y, X], 0.5 * X - Y + X, {"operation": "sum", "coeff": "0.5,-1,1"}),
    row("broadcast", "Eltwise", [X, SCALE[:, None].copy()], X * SCALE[:, None], {"operation": "mul"}),
    row("version 2 of Eltwise", "Eltwise", [X, Y], np.maximum(X, Y), {"operation": "max"}, version=2, tag="elementwise_data"),
    row("powers", "Eltwise", [POSITIVE, Y], POSITIVE**Y, {"operation": "pow"}),
    row("scale and shift", "ScaleShift", [X], X * SCALE[:, None] + SHIFT[:, None], blobs={"weights": SCALE, "biases": SHIFT}),
    row("no shift", "ScaleShift", [X], X * SCALE[:, None], blobs={"weights": SCALE}, version=5),
    row("two axes", "ScaleShift", [X[0].T.copy()], X[0].T * SCALE + SHIFT, blobs={"weights": SCALE, "biases": SHIFT}),
    row("polynomial", "Power", [X], (0.5 + 2 * X) ** 2, {"power": 2, "scale": 2, "shift": 0.5}),
    row("negative power of 0", "Power", [np.float32([[0, 2]])], np.float32([[np.inf, 0.25]]), {"power": -2, "scale": 1, "shift": 0}),
    row("truth", "Not", [ROUND], (ROUND == 0).astype(np.float32)),
]  # fmt: skip
