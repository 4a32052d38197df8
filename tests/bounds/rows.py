"""Bounds of rows."""

from __future__ import annotations

from irexec.bounds import Arithmetic, Bound, Interval, Layer, operation_bounds
from irexec.ir.facts import Fact
from irexec.testing import Case
from irexec.testing.laws import attributes_of, infer
from irexec.testing.partial_facts import exact_facts


def row_bounds(row: Case, arithmetic: Arithmetic) -> tuple[Bound, ...]:
    """The bounds of the outputs of a row."""
    inputs = [Fact.of(x.array, x.element) for x in row.inputs]
    layer = Layer(row.definition, attributes_of(row), inputs, infer(row, exact_facts(row)), arithmetic)
    return operation_bounds(layer, [Interval.certain(x.array) for x in row.inputs])
