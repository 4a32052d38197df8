"""Rules that replace matches of a pattern; passes call ``apply_rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.pattern import Match, Pattern
from irexec.compile.rewriting import Rewriting, create
from irexec.dtypes.elements import F32, F64, I64
from irexec.errors import OpError


@dataclass(frozen=True, eq=False)
class Replacement:
    """Inserts the replacement of a match.

    Attributes:
        match: the matched operations.
        root: the operation whose output is replaced.
        rewriting: the rewriting, with constants and the options of the pass.
    """

    graph: CompileGraph
    match: Match
    root: Operation
    rewriting: Rewriting

    def emit(self, type: str, version: str, *inputs: CompileValue, **attributes: Any) -> CompileValue:
        """The first output of a new operation."""
        origins = [operation for operation in dict.fromkeys(self.match.operations) if operation is not self.root]
        ordered = sorted(origins, key=lambda operation: operation.rank)
        return create(self.graph, type, version, inputs, attributes, [*ordered, self.root]).output

    def scalar(self, number: float, like: CompileValue) -> CompileValue:
        """A constant of rank 0, of the type of another value."""
        if like.fact.element is None:
            raise AssertionError("rules apply to values of known types")
        return self.rewriting.literal(np.array(number, like.fact.element.carrier), like.fact.element)

    def indexes(self, *numbers: int) -> CompileValue:
        """A constant vector of i64."""
        return self.rewriting.literal(np.array(numbers, np.int64), I64)


@dataclass(frozen=True, eq=False)
class Rule:
    """A pattern and its replacement.

    Attributes:
        name: the recognised operation, for reports.
        pattern: of the value that is replaced.
        replace: makes the replacement, or says why it does not; operations that it made and that are not used are
            removed after the pass.
    """

    name: str
    pattern: Pattern
    replace: Callable[[Replacement], CompileValue | str]


def apply_rules(
    graph: CompileGraph, rewriting: Rewriting, rules: Iterable[Rule], *, outermost_first: bool = False
) -> None:
    """Replace matches of the rules, each operation by the first rule that applies.

    Args:
        outermost_first: begin at the results, for a pattern with optional parts at its end.
    """
    by_type: dict[str, list[Rule]] = {}
    for rule in rules:
        for type in rule.pattern.roots or ():
            by_type.setdefault(type, []).append(rule)
    order = graph.order()
    for operation in reversed(order) if outermost_first else order:
        for rule in by_type.get(operation.type, ()):
            if (
                operation in graph
                and operation.output.fact.element in (F32, F64)
                and _apply(graph, rewriting, rule, operation)
            ):
                break


def _apply(graph: CompileGraph, rewriting: Rewriting, rule: Rule, operation: Operation) -> bool:
    match = next(rule.pattern.match(operation.output, Match()), None)
    if match is None or operation not in match.operations:
        return False
    if leaks(graph, match, operation):
        made: CompileValue | str = "a value inside is read elsewhere"
    else:
        made = _replacement(rule, Replacement(graph, match, operation, rewriting))
    if isinstance(made, CompileValue) and made.fact.shape != operation.output.fact.shape:
        made = f"the result would be {made.fact}, not {operation.output.fact}"
    if isinstance(made, str):
        rewriting.refused(operation, f"{rule.name}: {made}")
        return False
    graph.replace_all_uses_with(operation.output, made)
    for inside in sorted(dict.fromkeys(match.operations), key=lambda one: -one.rank):
        if not any(graph.is_used(output) for output in inside.outputs):
            graph.remove(inside)
    rewriting.applied()
    return True


def _replacement(rule: Rule, found: Replacement) -> CompileValue | str:
    try:
        return rule.replace(found)
    except OpError as error:
        return str(error)


def leaks(graph: CompileGraph, match: Match, root: Operation) -> bool:
    """Whether a value between matched operations is read, or asked for, outside."""
    inside = set(match.operations)
    values = [output for operation in inside if operation is not root for output in operation.outputs]
    return any(graph.is_target(value) or not inside.issuperset(value.readers) for value in values)
