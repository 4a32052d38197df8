"""Activations that ONNX Runtime fuses into convolutions, by name. It translates no operator of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from converters.onnx.context import Context
from irexec.errors import OpError
from irexec.ir.graph import Value

_PARAMETERS = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "Silu": 0, "LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2}


def activated(b: Context, x: Value, name: str, parameters: Sequence[float] | None) -> Value:
    """The activation of that name; none for "".

    Raises:
        OpError: the name is not known, or it takes another number of parameters.
    """
    numbers = list(parameters or ())
    if not name:
        return x
    if name not in _PARAMETERS:
        raise OpError(f"activation {name!r} is none of {', '.join(_PARAMETERS)}")
    if len(numbers) != _PARAMETERS[name]:
        raise OpError(f"activation {name} has {len(numbers)} parameters, expected {_PARAMETERS[name]}")
    return _emit(b, x, name, numbers)


def _emit(b: Context, x: Value, name: str, numbers: list[float]) -> Any:
    if name == "LeakyRelu":
        return b.emit("PRelu", x, b.constant(numbers, x))
    if name == "Clip":
        return b.emit("Minimum", b.emit("Maximum", x, b.constant(numbers[0], x)), b.constant(numbers[1], x))
    if name == "HardSigmoid":
        return b.emit("HardSigmoid", x, b.constant(numbers[0], x), b.constant(numbers[1], x))
    return b.emit({"Silu": "Swish"}.get(name, name), x)
