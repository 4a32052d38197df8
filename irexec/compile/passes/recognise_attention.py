"""Recognise attention in primitives: softmax(query @ key.T * scale + mask) @ value.

Its kernels compute blocks of rows whose scores never leave the cache.
"""

from __future__ import annotations

import numpy as np

from irexec.backend.registry import offers
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.pattern import call, either, number, value
from irexec.compile.rewriting import Replacement, Rewriting, Rule, apply_rules
from irexec.compile.select import is_static, task_of

# A factor is 1 where there is none.
_QUERY, _KEY = number("query factor") * value("query"), number("key factor") * value("key")
_SCORES = number("factor") * call("MatMul", _QUERY, _KEY)
_MASKED = either(_SCORES + value("mask") + value("second mask"), _SCORES + value("mask"), _SCORES)
_ATTENTION = call("MatMul", call("Softmax", _MASKED), value("value"))


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
