"""Recognise activations in primitives: GELU, Swish, HSwish, HSigmoid, SoftPlus, Mish, Sigmoid.

The operation is one step of a chain with a kernel of its own, and rounds once. OpenVINO's plugin replaces the same
patterns, so that SoftPlus and Mish are finite where the exponential function overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irexec.compile.graph import CompileGraph, CompileValue
from irexec.compile.pattern import call, either, number, value
from irexec.compile.rewriting import Replacement, Rewriting, Rule, apply_rules

x = value("x")
_SHIFTED = either(
    call("Clamp", x + 3, min=0.0, max=6.0),
    call("Minimum", call("Relu", x + 3), 6),
    call("Minimum", call("Maximum", x + 3, 0), 6),
)
_TANH = call("Tanh", math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
_TANH_FACTORED = call("Tanh", math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x**2))


def _as(type: str, version: str, **attributes: str) -> Callable[[Replacement], CompileValue | str]:
    """The operation on x."""
    return lambda found: found.emit(type, version, found.match["x"], **attributes)


def _swish_with_beta(found: Replacement) -> CompileValue | str:
    data = found.match["x"]
    return found.emit("Swish", "opset4", data, found.scalar(found.match.number("beta"), like=data))


RULES = (
    Rule("Gelu", 0.5 * x * (1 + call("Erf", x / math.sqrt(2))), _as("Gelu", "opset7", approximation_mode="erf")),
    Rule("Gelu", x * (0.5 + 0.5 * call("Erf", x / math.sqrt(2))), _as("Gelu", "opset7", approximation_mode="erf")),
    Rule("Gelu", 0.5 * x * (1 + either(_TANH, _TANH_FACTORED)), _as("Gelu", "opset7", approximation_mode="tanh")),
    Rule("Sigmoid", 1 / (1 + call("Exp", -x)), _as("Sigmoid", "opset1")),
    Rule("Swish", x * call("Sigmoid", x), _as("Swish", "opset4")),
    Rule("Swish", x * call("Sigmoid", number("beta") * x), _swish_with_beta),
    Rule("Swish", x / (1 + call("Exp", -x)), _as("Swish", "opset4")),
    Rule("HSwish", x * _SHIFTED / 6, _as("HSwish", "opset4")),
    Rule("HSwish", x * either(call("HSigmoid", x), call("HardSigmoid", x, 1 / 6, 0.5)), _as("HSwish", "opset4")),
    Rule("HSigmoid", _SHIFTED / 6, _as("HSigmoid", "opset5")),
    Rule("SoftPlus", call("Log", 1 + call("Exp", x)), _as("SoftPlus", "opset4")),
    Rule("Mish", x * call("Tanh", call("SoftPlus", x)), _as("Mish", "opset4")),
)


def recognise_activations(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by the operation itself."""
    apply_rules(graph, rewriting, RULES)
