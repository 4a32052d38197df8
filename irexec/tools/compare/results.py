"""The results of two models, from runs in which nothing else is observed."""

from __future__ import annotations

from dataclasses import replace

from irexec.tools.compare.comparison import TensorRow
from irexec.tools.compare.context import Context
from irexec.tools.compare.observe import observe
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.rows import Found, Rows

_FUSED = 80.0
"""Decibels from which on a result that agrees while tensors are observed, and differs while none is, differs by
rounding: layers that are fused round less often."""


def result_rows(context: Context, rows: Rows) -> tuple[TensorRow, ...]:
    """The row of each result that both have."""
    wanted = {value for node in context.b.model.results for value in node.inputs if value is not None}
    compared = {found.value: found for found in rows.found}
    batch = [pair for pair in context.pairs.tensors if pair.b in wanted and pair.b in compared]
    if not batch:
        return ()
    of_a = context.observed_a([pair.a for pair in batch])
    of_b = observe(context.run_b, context.inputs.b, [pair.b for pair in batch])
    found = []
    for pair in batch:
        if pair.a in of_a.arrays and pair.b in of_b.arrays:
            row = rows.row(pair, of_a.arrays[pair.a], of_b.arrays[pair.b])
            found.append(row if row.agreement.agrees else replace(row, follows=_follows(row, compared[pair.b])))
    return tuple(found)


def _follows(row: TensorRow, observed: Found) -> bool | None:
    """Whether a result that differs only follows, by its row among the observed tensors."""
    if not observed.row.agreement.agrees:
        return observed.row.follows
    return True if (row.agreement.snr or 0.0) >= _FUSED else None


def missing_results(context: Context, rows: Rows) -> tuple[str, ...]:
    """The names of the results that both have and that could not be had."""
    compared = {found.value for found in rows.found}
    random = random_layers(context.b.order, seeded=context.seeded)
    paired = {pair.b for pair in context.pairs.tensors}
    wanted = (
        value for node in context.b.model.results for value in node.inputs if value in paired and value not in compared
    )
    return tuple(dict.fromkeys(value.name for value in wanted if value is not None and value.node not in random))
