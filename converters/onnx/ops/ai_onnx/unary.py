"""Element-wise operators on one tensor."""

from __future__ import annotations

from converters.onnx.algorithms.elementwise import add_elementwise
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value

# By the opset in which the operator appeared: ONNX's name and IR's.
_TYPES = {
    1: {
        "Abs": "Abs", "Neg": "Negative", "Ceil": "Ceiling", "Floor": "Floor", "Sqrt": "Sqrt", "Exp": "Exp",
        "Log": "Log", "Tanh": "Tanh", "Sigmoid": "Sigmoid", "Relu": "Relu", "Softplus": "SoftPlus",
        "Softsign": "SoftSign",
    },
    7: {"Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan"},
    9: {"Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf",
    "Sign": "Sign"}, 14: {"HardSwish": "HSwish"},
    18: {"Mish": "Mish"},
}  # fmt: skip

for _since, _names in _TYPES.items():
    for _operator, _type in _names.items():
        add_elementwise(_operator, _since, _type)


@translates("Reciprocal")
def reciprocal(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Divide", ctx.constant(1, x), x)


@translates("Round", since=11)
def round_(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Round", x, mode="half_to_even")
