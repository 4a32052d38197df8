"""The results of two models, from runs in which nothing else is observed."""

from __future__ import annotations

from dataclasses import replace

from irexec.tools.compare.comparison import TensorRow
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.rows import Found, Rows

_FUSED = 80.0
"""Minimum SNR in decibels of a difference by rounding, for a result that agrees if all tensors are observed: fused
layers round less often."""


def result_rows(context: OpenSides, rows: Rows) -> tuple[TensorRow, ...]:
    """A row for each result of both models."""
    wanted = {value for node in context.b.model.results for value in node.inputs if value is not None}
    compared = {found.value: found for found in rows.found}
    batch = [pair for pair in context.pairs.tensors if pair.b in wanted and pair.b in compared]
    if not batch:
        return ()
    of_a, of_b = context.unobserved([pair.a for pair in batch], [pair.b for pair in batch])
    found = []
    for pair in batch:
        if pair.a in of_a.arrays and pair.b in of_b.arrays:
            row = rows.row(pair, of_a.arrays[pair.a], of_b.arrays[pair.b])
            found.append(row if row.agreement.agrees else replace(row, follows=_follows(row, compared[pair.b])))
    return tuple(found)


def _follows(row: TensorRow, observed: Found) -> bool | None:
    """Whether a differing result only follows, judged by its row among the observed tensors."""
    if not observed.row.agreement.agrees:
        return observed.row.follows
    return True if (row.agreement.snr or 0.0) >= _FUSED else None


def missing_results(context: OpenSides, rows: Rows) -> tuple[str, ...]:
    """Names of the results of both models that no run returned."""
    compared = {found.value for found in rows.found}
    random = random_layers(context.b.order, seeded=context.seeded)
    paired = {pair.b for pair in context.pairs.tensors}
    wanted = (
        value for node in context.b.model.results for value in node.inputs if value in paired and value not in compared
    )
    return tuple(dict.fromkeys(value.name for value in wanted if value is not None and value.node not in random))
