"""Recognise normalizations in primitives: MVN, root mean square, L2, Softmax, LogSoftmax.

The scale and shift that follow a normalization stay as they are, and join its chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irexec.compile.graph import CompileGraph, CompileValue
from irexec.compile.pattern import Pattern, array, call, either, number, root, value
from irexec.compile.rewriting import Replacement, Rewriting, Rule, apply_rules

x, axes, eps = value("x"), array("axes"), number("eps")


def _reduced(type: str, data: Pattern) -> Pattern:
    return call(type, data, axes, keep_dims=True)


def _over_root(data: Pattern, radicand: Pattern) -> Pattern:
    """data / sqrt(radicand) in its spellings."""
    return either(data / root(radicand), data * (1 / root(radicand)), data * call("Power", radicand, -0.5))


_MEAN = _reduced("ReduceMean", x)
_CENTERED = x - _MEAN
_VARIANCE = _reduced("ReduceMean", either(_CENTERED**2, call("SquaredDifference", x, _MEAN)))
_SQUARES = _reduced("ReduceSum", x**2)
_NORM = either(root(_SQUARES), _reduced("ReduceL2", x))
_SHIFTED = x - _reduced("ReduceMax", x)
_EXPONENTIALS = call("Exp", _SHIFTED)


def _mvn(found: Replacement, eps_mode: str) -> CompileValue | str:
    match = found.match
    return found.emit(
        "MVN", "opset6", match["x"], _axes(found), normalize_variance=True, eps=match.number("eps"), eps_mode=eps_mode
    )


def _root_mean_square(found: Replacement) -> CompileValue | str:
    """x / sqrt(mean of squares + eps) is x * sqrt(n) / sqrt(sum of squares + n * eps)."""
    data = found.match["x"]
    shape = data.fact.shape or ()
    sizes = [shape[int(axis)] for axis in found.match.constants["axes"].reshape(-1)]
    known = [size for size in sizes if isinstance(size, int)]
    if not sizes or len(known) != len(sizes):
        return "the number of elements of a mean is not known"
    count = math.prod(known)
    normalized = found.emit(
        "NormalizeL2", "opset1", data, _axes(found), eps=count * found.match.number("eps"), eps_mode="add"
    )
    return found.emit("Multiply", "opset1", normalized, found.scalar(math.sqrt(count), like=data))


def _l2(found: Replacement, eps_mode: str, power: int) -> CompileValue | str:
    limit = found.match.number("eps") ** power
    if limit < 1e-37:
        return f"eps {found.match.number('eps'):g} is too small for the square of float32"
    return found.emit("NormalizeL2", "opset1", found.match["x"], _axes(found), eps=limit, eps_mode=eps_mode)


def _softmax(found: Replacement, type: str, version: str) -> CompileValue | str:
    axis = found.match.constants["axes"]
    if axis.size != 1:
        return f"it is over {axis.size} axes"
    return found.emit(type, version, found.match["x"], axis=int(axis.reshape(-1)[0]))


def _axes(found: Replacement) -> CompileValue:
    return found.indexes(*map(int, found.match.constants["axes"].reshape(-1)))


def _rule(name: str, pattern: Pattern, replace: Callable[[Replacement], CompileValue | str]) -> Rule:
    """A rule for data that has axes.

    Reductions accept a scalar and axis 0 or -1; the recognised operations may not.
    """

    def checked(found: Replacement) -> CompileValue | str:
        return replace(found) if found.match["x"].fact.shape else "its data is a scalar, or of unknown rank"

    return Rule(name, pattern, checked)


RULES = (
    _rule("MVN", _over_root(_CENTERED, _VARIANCE + eps), lambda found: _mvn(found, "inside_sqrt")),
    _rule("MVN", _CENTERED / (root(_VARIANCE) + eps), lambda found: _mvn(found, "outside_sqrt")),
    _rule("root mean square", _over_root(x, _reduced("ReduceMean", x**2) + eps), _root_mean_square),
    _rule("NormalizeL2", _over_root(x, _SQUARES + eps), lambda found: _l2(found, "add", 1)),
    _rule("NormalizeL2", x / root(call("Maximum", _SQUARES, eps)), lambda found: _l2(found, "max", 1)),
    _rule("NormalizeL2", x / call("Maximum", _NORM, eps), lambda found: _l2(found, "max", 2)),
    _rule(
        "Softmax",
        _EXPONENTIALS / _reduced("ReduceSum", _EXPONENTIALS),
        lambda found: _softmax(found, "Softmax", "opset8"),
    ),
    _rule(
        "LogSoftmax",
        _SHIFTED - call("Log", _reduced("ReduceSum", _EXPONENTIALS)),
        lambda found: _softmax(found, "LogSoftmax", "opset5"),
    ),
)


def recognise_normalizations(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by the operation itself."""
    apply_rules(graph, rewriting, RULES)
