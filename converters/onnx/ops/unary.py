"""Element-wise operators on one tensor: a table."""

from __future__ import annotations

from typing import Any

from converters.onnx.context import Context
from converters.onnx.registry import add, translates
from irexec.ir.graph import Value

# By the opset in which the operator appeared: ONNX's name and IR's.
_PLAIN = {
    1: {
        "Abs": "Abs", "Neg": "Negative", "Ceil": "Ceiling", "Floor": "Floor", "Sqrt": "Sqrt", "Exp": "Exp", "Log": "Log", "Tanh": "Tanh",
        "Sigmoid": "Sigmoid", "Relu": "Relu", "Softplus": "SoftPlus", "Softsign": "SoftSign", "Not": "LogicalNot",
    },
    7: {"Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan"},
    9: {
        "Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf", "Sign": "Sign",
        "IsNaN": "IsNaN",
    },
    14: {"HardSwish": "HSwish"},
    18: {"Mish": "Mish", "BitwiseNot": "BitwiseNot"},
}  # fmt: skip


def _row(operator: str, since: int, type: str) -> None:
    def translate(b: Context, x: Value) -> Any:
        return b.emit(type, x)

    add(operator, since, "", translate)


for _since, _names in _PLAIN.items():
    for _operator, _type in _names.items():
        _row(_operator, _since, _type)


@translates("Reciprocal")
def reciprocal(b: Context, x: Value) -> Value:
    return b.emit("Divide", b.constant(1, x), x)


@translates("Round", since=11)
def round_(b: Context, x: Value) -> Value:
    return b.emit("Round", x, mode="half_to_even")


@translates("IsInf", since=10)
def is_inf(b: Context, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return b.emit("IsInf", x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))
