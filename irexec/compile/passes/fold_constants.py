"""Compute what depends on constants alone: small values now, large ones when a kernel packs them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple, rounded
from irexec.backend.constants import ConstantSource
from irexec.compile.errors import located
from irexec.compile.graph import Graph, Operation, Value
from irexec.compile.rewriting import Rewriting
from irexec.ir.facts import Fact
from irexec.schema.opdef import OpDef


def fold_constants(graph: Graph, rewriting: Rewriting) -> None:
    """Replace the outputs of such operations by constants, unless that would hold far more memory than their inputs take."""
    for operation in graph.order():
        folded = _from_facts(operation, rewriting) or _from_inputs(operation, rewriting)
        if folded is None:
            continue
        for old, new in zip(operation.outputs, folded, strict=True):
            graph.replace_all_uses_with(old, new)
        graph.remove(operation)
        rewriting.applied()


def _from_facts(operation: Operation, rewriting: Rewriting) -> list[Value] | None:
    """Constants where shape inference found the values, such as those of a ShapeOf."""
    if operation.definition is None or not operation.definition.deterministic or operation.definition.stateful or not operation.outputs:
        return None
    values = []
    for output in operation.outputs:
        known, element = output.known, output.fact.element
        if known is None or element is None:
            return None
        values.append(rewriting.literal(known, element))
    return values


def _from_inputs(operation: Operation, rewriting: Rewriting) -> list[Value] | None:
    """Constants where every input is one."""
    definition = operation.definition
    if definition is None or not definition.deterministic or definition.stateful or operation.bodies:
        return None
    sources = [value.constant for value in operation.inputs if value.constant is not None]
    if len(sources) != len(operation.inputs):
        return None
    if not all(output.fact.is_static and output.fact.element is not None for output in operation.outputs):
        return _computed_now(operation, definition, sources, rewriting)
    grown = _bytes(operation.outputs) - sum(source.size for source in sources)
    if grown > rewriting.budget:
        rewriting.refused(operation, f"its result takes {grown >> 20} MiB more than its inputs")
        return None
    return [_computed_later(operation, definition, index, rewriting) for index in range(len(operation.outputs))]


def _bytes(values: list[Value]) -> int:
    return sum(math.prod(v.fact.static_shape) * v.fact.element.carrier.itemsize for v in values if v.fact.element is not None)


def _computed_now(operation: Operation, definition: OpDef, sources: list[ConstantSource], rewriting: Rewriting) -> list[Value] | None:
    arrays = _outputs(operation, definition, [source.array() for source in sources])
    facts = [Fact.of(array, output.fact.element) for array, output in zip(arrays, operation.outputs, strict=False)]
    return [rewriting.literal(array, fact.element) for array, fact in zip(arrays, facts, strict=True) if fact.element]


def _computed_later(operation: Operation, definition: OpDef, index: int, rewriting: Rewriting) -> Value:
    output = operation.outputs[index]
    fact = output.fact
    if fact.element is None:
        raise AssertionError("the caller checks that the element type is known")

    def compute(*arrays: np.ndarray) -> np.ndarray:
        return _outputs(operation, definition, list(arrays))[index]

    value = rewriting.derived((operation.node, index), operation.inputs, fact.element, fact.static_shape, compute)
    value.name = output.name
    return value


def _outputs(operation: Operation, definition: OpDef, arrays: list[np.ndarray]) -> list[np.ndarray]:
    results: tuple[Any, ...] = as_tuple(located(operation.node, definition, arrays, operation.attributes))
    return [rounded(array, output.fact.element) for array, output in zip(results, operation.outputs, strict=False)]
