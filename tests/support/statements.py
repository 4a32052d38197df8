"""Statements of a source, without their expressions, of which there are fifteen times as many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irexec.ir.process import collection_paused


def statements(source: str) -> Iterator[tuple[ast.AST, bool]]:
    """Statements, handlers of exceptions and cases of ``match``, each with whether it is in a function.

    Raises:
        SyntaxError: the source is not Python.
    """
    with collection_paused():
        waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, late = waiting.pop()
        yield node, late
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting.extend((below, late) for below in getattr(node, name, ()))
