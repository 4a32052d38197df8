"""Which activations in primitives are recognised, and that the result stays that of the reference kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F16, F32
from tests.support.passes import agrees, planned_types

Build = Callable[[Builder, Any], Any]


def _model(build: Build, shape: tuple[Any, ...] = (3, 64), element: Any = F32) -> irexec.Model:
    builder = Builder("m")
    x = builder.parameter(element, shape, "x")
    results = build(builder, x)
    for result in results if isinstance(results, tuple) else (results,):
        builder.result(result)
    return builder.model()


def _c(b: Builder, number: float, element: Any = F32, rank: int = 0) -> Any:
    return b.constant(np.full((1,) * rank, number), element)


def _erf(b: Builder, x: Any, by: float = math.sqrt(0.5)) -> Any:
    return b.emit("Add", b.emit("Erf", b.emit("Multiply", x, _c(b, by))), _c(b, 1))


def _tanh(b: Builder, x: Any) -> Any:
    cube = b.emit("Multiply", _c(b, 0.044715), b.emit("Power", x, _c(b, 3)))
    return b.emit("Tanh", b.emit("Multiply", b.emit("Add", x, cube), _c(b, 0.7978845834732056)))


def _factored_tanh(b: Builder, x: Any) -> Any:
    inner = b.emit("Add", b.emit("Multiply", b.emit("Multiply", x, x), _c(b, 0.044715)), _c(b, 1))
    return b.emit("Tanh", b.emit("Multiply", b.emit("Multiply", x, _c(b, 0.79788456)), inner))


def _half(b: Builder, x: Any, one_plus: Any) -> Any:
    return b.emit("Multiply", b.emit("Multiply", x, _c(b, 0.5)), one_plus)


def _shifted(b: Builder, x: Any, by: float = 3, max: float = 6) -> Any:
    return b.emit("Clamp", b.emit("Add", x, _c(b, by)), min=0.0, max=max)


def _exp_negative(b: Builder, x: Any) -> Any:
    return b.emit("Add", b.emit("Exp", b.emit("Negative", x)), _c(b, 1))


RECOGNISED: dict[str, tuple[str, Build]] = {
    "(x * 0.5) * (1 + erf)": ("Gelu", lambda b, x: _half(b, x, _erf(b, x))),
    "x * (0.5 * (1 + erf))": ("Gelu", lambda b, x: b.emit("Multiply", x, b.emit("Multiply", _c(b, 0.5, rank=2), _erf(b, x)))),
    "(x * (1 + erf)) * 0.5": ("Gelu", lambda b, x: b.emit("Multiply", b.emit("Multiply", _erf(b, x), x), _c(b, 0.5))),
    "x / 2 * (1 + erf)": ("Gelu", lambda b, x: b.emit("Multiply", b.emit("Divide", x, _c(b, 2)), _erf(b, x))),
    "erf(x / sqrt(2))": ("Gelu", lambda b, x: _half(b, x, b.emit("Add", _c(b, 1), b.emit("Erf", b.emit("Divide", x, _c(b, 1.4142135, rank=1)))))),
    "x * (0.5 + 0.5 * erf)": (
        "Gelu",
        lambda b, x: b.emit(
            "Multiply",
            x,
            b.emit(
                "Add",
                _c(b, 0.5),
                b.emit("Multiply", b.emit("Erf", b.emit("Multiply", x, _c(b, math.sqrt(0.5)))), _c(b, 0.5)),
            ),
        ),
    ),
    "tanh": ("Gelu", lambda b, x: _half(b, x, b.emit("Add", _tanh(b, x), _c(b, 1)))),
    "factored tanh": ("Gelu", lambda b, x: _half(b, x, b.emit("Add", _c(b, 1), _factored_tanh(b, x)))),
    "1 / (1 + exp(-x))": ("Sigmoid", lambda b, x: b.emit("Divide", _c(b, 1), _exp_negative(b, x))),
    "x * sigmoid": ("Swish", lambda b, x: b.emit("Multiply", b.emit("Sigmoid", x), x)),
    "x * sigmoid(1.702 x)": ("Swish", lambda b, x: b.emit("Multiply", x, b.emit("Sigmoid", b.emit("Multiply", x, _c(b, 1.702))))),
    "x / (1 + exp(-x))": ("Swish", lambda b, x: b.emit("Divide", x, _exp_negative(b, x))),
    "x * clip / 6": ("HSwish", lambda b, x: b.emit("Divide", b.emit("Multiply", x, _shifted(b, x)), _c(b, 6))),
    "x * (clip * (1 / 6))": ("HSwish", lambda b, x: b.emit("Multiply", x, b.emit("Multiply", _shifted(b, x), _c(b, 1 / 6)))),
    "x * hsigmoid": ("HSwish", lambda b, x: b.emit("Multiply", x, b.emit("HSigmoid", x))),
    "x * hardsigmoid": ("HSwish", lambda b, x: b.emit("Multiply", x, b.emit("HardSigmoid", x, _c(b, 1 / 6), _c(b, 0.5)))),
    "min(relu(x + 3), 6) / 6": (
        "HSigmoid",
        lambda b, x: b.emit("Divide", b.emit("Minimum", b.emit("Relu", b.emit("Subtract", x, _c(b, -3))), _c(b, 6)), _c(b, 6)),
    ),
    "log(1 + exp)": ("SoftPlus", lambda b, x: b.emit("Log", b.emit("Add", b.emit("Exp", x), _c(b, 1)))),
    "x * tanh(softplus)": ("Mish", lambda b, x: b.emit("Multiply", x, b.emit("Tanh", b.emit("SoftPlus", x)))),
    "x * tanh(log(1 + exp))": ("Mish", lambda b, x: b.emit("Multiply", b.emit("Tanh", b.emit("Log", b.emit("Add", _c(b, 1), b.emit("Exp", x)))), x)),
}  # fmt: skip


@pytest.mark.parametrize("name", RECOGNISED)
@pytest.mark.parametrize("shape", [(3, 64), (irexec.Dim(), 5)], ids=["static", "dynamic"])
def test_recognised(name: str, shape: tuple[Any, ...]) -> None:
    type, build = RECOGNISED[name]
    model = _model(build, shape)
    assert planned_types(model, "recognise activations") == [type]
    agrees(model, 1e-6)


def _read_outside(b: Builder, x: Any) -> Any:
    one_plus = _erf(b, x)
    return _half(b, x, one_plus), one_plus


LEFT: dict[str, tuple[Build, Any]] = {
    "another factor": (lambda b, x: _half(b, x, _erf(b, x, 0.7)), F32),
    "a value that is read elsewhere": (_read_outside, F32),
    "two different values": (lambda b, x: b.emit("Multiply", x, b.emit("Sigmoid", b.emit("Abs", x))), F32),
    "another limit": (lambda b, x: b.emit("Divide", b.emit("Multiply", x, _shifted(b, x, max=5.0)), _c(b, 6)), F32),
    "another shift": (lambda b, x: b.emit("Divide", _shifted(b, x, by=2), _c(b, 6)), F32),
    "a constant of two elements": (lambda b, x: b.emit("Multiply", b.emit("Multiply", x, b.constant([0.5, 0.5], F32)), _erf(b, x)), F32),
    "f16, which is rounded at each operation": (lambda b, x: b.emit("Multiply", b.emit("Sigmoid", x), x), F16),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    build, element = LEFT[name]
    model = _model(build, (3, 2), element)
    assert planned_types(model, "recognise activations") == planned_types(model, "none")


def test_a_constant_of_a_higher_rank_adds_axes() -> None:
    model = _model(lambda b, x: b.emit("Multiply", x, b.emit("Sigmoid", b.emit("Multiply", x, _c(b, 2, rank=3)))))
    assert "Swish" not in planned_types(model, "recognise activations")
    agrees(model, 1e-6)
