"""Declared element types and shapes of ports."""

from __future__ import annotations

from irexec.analysis.matching import Pair
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.tools.diff.result import Change

_Declared = tuple[str, tuple[int, ...]]


def fact_text(fact: Fact | None) -> str:
    """Type and shape for people."""
    return "?" if fact is None else str(fact)


def _declared(fact: Fact) -> _Declared:
    """A file has neither symbols nor bounds on its ports, and writes an unknown rank as it writes a scalar."""
    return str(fact.element), tuple(size if isinstance(size, int) else -1 for size in fact.shape or ())


def facts_differ(a: Fact | None, b: Fact | None) -> bool:
    """True if both facts are declared and differ; a scalar and an unknown rank do, although files write them alike."""
    if a is None or b is None:
        return False
    return _declared(a) != _declared(b) or (a.shape is None) != (b.shape is None)


def output_changes(pair: Pair, *, is_declared: bool) -> list[Change]:
    """Types and shapes of outputs that differ.

    Args:
        pair: the layers.
        is_declared: True for Constants and Parameters, whose attributes declare their outputs: nothing is returned.
    """
    found: list[Change] = []
    if is_declared:
        return found
    for mine, theirs in zip(pair.a.outputs, pair.b.outputs, strict=False):
        if mine.fact is None or theirs.fact is None:
            continue
        one, other = _declared(mine.fact), _declared(theirs.fact)
        if one[0] != other[0]:
            found.append(Change("types", f"output {mine.index}", one[0], other[0]))
        if one[1] != other[1]:
            found.append(
                Change("shapes", f"output {mine.index}", shape_text(mine.fact.shape), shape_text(theirs.fact.shape))
            )
    if len(pair.a.outputs) != len(pair.b.outputs):
        found.append(Change("shapes", "number of outputs", str(len(pair.a.outputs)), str(len(pair.b.outputs))))
    return found
