"""Compute operations of constants alone: small values now, large ones when a kernel packs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple, rounded
from irexec.backend.constants import ConstantSource
from irexec.compile.errors import located
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, computation
from irexec.ir.facts import Fact
from irexec.schema.opdef import OpDef


def fold_constants(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace the outputs of such operations by constants, unless these are far larger than the inputs."""
    for operation in graph.order():
        fold(graph, operation, rewriting)


def fold(graph: CompileGraph, operation: Operation, rewriting: Rewriting) -> None:
    """Replace the outputs of an operation of constants, unless it has other inputs or these are far smaller."""
    folded = _from_facts(operation, rewriting) or _from_inputs(operation, rewriting)
    if folded is not None:
        rewriting.replace(graph, operation, *folded)


def _from_facts(operation: Operation, rewriting: Rewriting) -> list[CompileValue] | None:
    """Constants where shape inference found the values, such as those of a ShapeOf."""
    definition = operation.definition
    if definition is None or not definition.deterministic or definition.stateful or not operation.outputs:
        return None
    known = [(value.known, value.fact.element) for value in operation.outputs]
    if any(array is None or element is None for array, element in known):
        return None
    return [rewriting.literal(array, element) for array, element in known if array is not None and element is not None]


def _from_inputs(operation: Operation, rewriting: Rewriting) -> list[CompileValue] | None:
    """Constants where every input is one."""
    definition = operation.definition
    if definition is None or not definition.deterministic or not operation.is_pure:
        return None
    sources = [value.constant for value in operation.inputs if value.constant is not None]
    if len(sources) != len(operation.inputs):
        return None
    if not all(output.fact.is_static and output.fact.element is not None for output in operation.outputs):
        return _computed_now(operation, definition, sources, rewriting)
    empty = operation.empty_outputs
    if empty is not None:
        facts = [output.fact for output in operation.outputs]
        return [
            rewriting.literal(array, fact.element) for array, fact in zip(empty, facts, strict=True) if fact.element
        ]
    # Values without elements, but with axes too long for any array, are refused later.
    grown = sum(output.fact.addressed_bytes for output in operation.outputs) - sum(source.size for source in sources)
    if grown > rewriting.budget:
        rewriting.refused(operation, f"its result takes {grown >> 20} MiB more than its inputs")
        return None
    return [_computed_later(operation, definition, index, rewriting) for index in range(len(operation.outputs))]


def _computed_now(
    operation: Operation, definition: OpDef, sources: list[ConstantSource], rewriting: Rewriting
) -> list[CompileValue] | None:
    arrays = _kernel(operation, definition)(*(source.array() for source in sources))
    facts = [Fact.of(array, output.fact.element) for array, output in zip(arrays, operation.outputs, strict=False)]
    return [rewriting.literal(array, fact.element) for array, fact in zip(arrays, facts, strict=True) if fact.element]


def _computed_later(operation: Operation, definition: OpDef, index: int, rewriting: Rewriting) -> CompileValue:
    output = operation.outputs[index]
    fact = output.fact
    if fact.element is None:
        raise AssertionError("the caller checks that the element type is known")
    outputs = _kernel(operation, definition)
    # Several operations may be made of one layer, so that the layer does not name what is computed.
    key = (operation.node, computation(operation), index)
    value = rewriting.derived(
        key, operation.inputs, fact.element, fact.static_shape, lambda *arrays: outputs(*arrays)[index]
    )
    value.name = output.name
    return value


def _kernel(operation: Operation, definition: OpDef) -> Callable[..., list[np.ndarray]]:
    """A function from inputs to outputs. Plans store it, so it must not refer to an operation or a graph."""
    node, attributes, elements = (
        operation.node,
        operation.attributes,
        [output.fact.element for output in operation.outputs],
    )

    def outputs(*arrays: np.ndarray) -> list[np.ndarray]:
        results: tuple[Any, ...] = as_tuple(located(node, definition, arrays, attributes))
        return [rounded(array, element) for array, element in zip(results, elements, strict=False)]

    return outputs
