"""Execution graphs: the layers that a device ran, and their times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.analysis.execution_graph import ExecutedLayer, TypeTime
from irexec.display import Column, Table, sections_of


@sections_of.register
def _(layer: ExecutedLayer) -> Iterable[Table]:
    return [executed_table([layer])]


def times_table(types: Sequence[TypeTime]) -> Table:
    """The time of each operation."""
    columns = [
        Column("operation", "type"),
        Column("layers", "layers", "number"),
        Column("µs", "microseconds", "number"),
    ]
    return Table(columns, types, what="operations")


def executed_table(layers: Sequence[ExecutedLayer]) -> Table:
    """Executed layers, each with the layers of the model that were fused into it."""
    columns = [
        Column("id", "id", "number"),
        Column("layer", "name"),
        Column("operation", "type"),
        Column("µs", "microseconds", "number"),
        Column("type", "precision"),
        Column("kernel", "kernel"),
        Column("fused layers", lambda row: ", ".join(name for name in row.original if name != row.name)),
    ]
    return Table(columns, layers, what="layers")
