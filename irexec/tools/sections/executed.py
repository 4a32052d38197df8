"""Execution graphs: the layers that a device ran, and their times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from irexec.analysis.execution_graph import ExecutedLayer, TypeTime, description, executed_layers
from irexec.analysis.model import Model
from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted
from irexec.records import Report


@dataclass(frozen=True)
class ExecutionSummary(Report):
    """An execution graph at a glance.

    Attributes:
        name: of the ``net`` element.
        execution_graph: True, which tells its JSON from that of a model.
        layer_count: number of layers.
        microseconds: the sum of the times.
        measured: number of layers with a time.
        path: the file.
        text: a sentence about the file.
    """

    name: str
    layer_count: int
    microseconds: float
    measured: int = field(metadata={"json": False})
    path: str | None = field(metadata={"json": False})
    text: str = field(metadata={"json": False})
    execution_graph: bool = True

    def sections(self) -> list[Content]:
        """The file, and the sum of the times."""
        file = "" if self.path is None else f"{self.path}: "
        times = f"{counted(self.measured, 'layer')} with a time, {self.microseconds:,.0f} µs in all"
        return [
            Text(f"{file}{self.name or 'no name'}", "title"),
            self.text,
            times if self.measured else "no layer has a time: it was not measured",
        ]


def execution_summary(model: Model) -> ExecutionSummary:
    """An execution graph at a glance."""
    times = [layer.microseconds for layer in executed_layers(model)]
    measured = [time for time in times if time is not None]
    path = None if model.path is None else str(model.path)
    return ExecutionSummary(model.name, len(times), sum(measured), len(measured), path, description(model))


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
