"""Merge operations that compute the same (common subexpressions)."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, computation
from irexec.schema.injected import ElementTypes

SMALL = 256
"""Constants of at most this number of bytes are compared by value, larger ones by where they come from."""


def merge_duplicates(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Keep the first of several operations of equal definition, attributes and inputs, and redirect readers."""
    first: dict[Hashable, Operation] = {}
    for operation in graph.order():
        reason = _obstacle(operation)
        if reason is not None:
            rewriting.refused(operation, reason)
            continue
        kept = first.setdefault(_key(operation), operation)
        if kept is not operation:
            for old, new in zip(operation.outputs, kept.outputs, strict=True):
                graph.replace_all_uses_with(old, new)
            graph.remove(operation)
            rewriting.applied()


def _obstacle(operation: Operation) -> str | None:
    """Why the operation must be computed anew each time; None if it need not."""
    definition = operation.definition
    if definition is None or operation.chain is not None:
        return "it is a chain already"
    if not definition.deterministic:
        return "it gives another result each time"
    if (
        definition.stateful
        or operation.bodies
        or any(kind is not ElementTypes for kind in definition.injected.values())
    ):
        return "it has state or bodies"
    return None


def _key(operation: Operation) -> Hashable:
    return computation(operation), tuple(map(_input, operation.inputs)), len(operation.outputs)


def _input(value: CompileValue) -> Hashable:
    if value.constant is None:
        return id(value)
    known = value.known
    if known is None or known.nbytes > SMALL or known.dtype == np.dtype(object):
        return id(value.constant)
    return value.fact.element, known.shape, known.dtype.str, known.tobytes()
