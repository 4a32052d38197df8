"""Recognise operations that are written in primitives: activations, normalizations and attention.

- An activation (GELU, Swish, HSwish, HSigmoid, SoftPlus, Mish, Sigmoid) is one step of a chain with its own kernel, and
  rounds once. OpenVINO's plugin replaces the same patterns, so that SoftPlus and Mish are finite where the exponential
  function overflows.
- The scale and shift that follow a normalization (MVN, root mean square, L2, Softmax, LogSoftmax) stay as they are, and
  join its chain.
- Kernels of attention, softmax(query @ key.T * scale + mask) @ value, compute blocks of rows whose scores never leave
  the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.backend.registry import offers
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.pattern import Pattern, array, call, either, number, root, value
from irexec.compile.rewriting import Replacement, Rewriting, Rule, apply_rules
from irexec.compile.select import is_static, task_of

x, axes, eps = value("x"), array("axes"), number("eps")
_SHIFTED = either(
    call("Clamp", x + 3, min=0.0, max=6.0),
    call("Minimum", call("Relu", x + 3), 6),
    call("Minimum", call("Maximum", x + 3, 0), 6),
)
_TANH = call("Tanh", math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
_TANH_FACTORED = call("Tanh", math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x**2))
# A factor is 1 where there is none.
_QUERY, _KEY = number("query factor") * value("query"), number("key factor") * value("key")
_SCORES = number("factor") * call("MatMul", _QUERY, _KEY)
_MASKED = either(_SCORES + value("mask") + value("second mask"), _SCORES + value("mask"), _SCORES)
_ATTENTION = call("MatMul", call("Softmax", _MASKED), value("value"))


def _as(type: str, version: str, **attributes: str) -> Callable[[Replacement], CompileValue | str]:
    """The operation on x."""
    return lambda found: found.emit(type, version, found.match["x"], **attributes)


def _swish_with_beta(found: Replacement) -> CompileValue | str:
    data = found.match["x"]
    return found.emit("Swish", "opset4", data, found.scalar(found.match.number("beta"), like=data))


_ACTIVATIONS = (
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
    apply_rules(graph, rewriting, _ACTIVATIONS)


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
_BELOW_MAXIMUM = x - _reduced("ReduceMax", x)
_EXPONENTIALS = call("Exp", _BELOW_MAXIMUM)


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


_NORMALIZATIONS = (
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
        _BELOW_MAXIMUM - call("Log", _reduced("ReduceSum", _EXPONENTIALS)),
        lambda found: _softmax(found, "LogSoftmax", "opset5"),
    ),
)


def recognise_normalizations(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by the operation itself."""
    apply_rules(graph, rewriting, _NORMALIZATIONS)


def recognise_attention(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by the operation itself, where shapes are known and a fast kernel computes it."""
    apply_rules(graph, rewriting, [Rule("attention", _ATTENTION, _attention)])


def _attention(found: Replacement) -> CompileValue | str:
    match, last = found.match, found.root
    product = next(one for one in match.operations if one.type == "MatMul" and one is not last)
    softmax = next(one for one in match.operations if one.type == "Softmax")
    reason = _obstacle(product, softmax, last)
    if reason is not None:
        return reason
    if any((match[name].fact.rank or 0) < 2 for name in ("query", "key", "value")):
        return "a product has a vector"
    query = _oriented(found, match["query"], product.attributes["transpose_a"])
    key = _oriented(found, match["key"], not product.attributes["transpose_b"])
    values = _oriented(found, match["value"], last.attributes["transpose_b"])
    factor = float(np.prod([match.number(name) for name in ("factor", "query factor", "key factor")]))
    scale = found.scalar(factor, like=query)
    made = found.emit(
        "ScaledDotProductAttention", "opset13", query, key, values, _mask(found, query), scale, causal=False
    )
    if made.producer is None or not offers(task_of(made.producer)):
        return "no fast kernel computes it for these shapes"
    return made


def _obstacle(product: Operation, softmax: Operation, last: Operation) -> str | None:
    """Why the operations are not attention; None if they are."""
    if not all(map(is_static, (product, softmax, last))):
        return "its shapes are not known"
    rank = softmax.output.fact.rank or 0
    if softmax.attributes["axis"] not in (-1, rank - 1):
        return f"its softmax is along axis {softmax.attributes['axis']}"
    if last.attributes["transpose_a"]:
        return "its weights are transposed"
    return None


def _mask(found: Replacement, query: CompileValue) -> CompileValue:
    """The mask that is added to the scores; a zero if there is none."""
    masks = [found.match.values[name] for name in ("mask", "second mask") if name in found.match.values]
    if not masks:
        return found.scalar(0, like=query)
    return masks[0] if len(masks) == 1 else found.emit("Add", "opset1", *masks)


def _oriented(found: Replacement, data: CompileValue, swapped: bool) -> CompileValue:
    """The value with its last two axes swapped, in a Transpose that it comes from where there is one."""
    if not swapped:
        return data
    source, order = data, np.arange(data.fact.rank or 0)
    transpose = data.producer
    if transpose is not None and transpose.type == "Transpose" and transpose.inputs[1].known is not None:
        # A Transpose without an order reverses the axes.
        source, known = transpose.inputs[0], transpose.inputs[1].known
        order = known if known.size else order[::-1]
    return found.emit("Transpose", "opset1", source, found.indexes(*map(int, [*order[:-2], order[-1], order[-2]])))
