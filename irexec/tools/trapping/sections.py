"""The contents of a report of a trap: the place of the first wrong value, and the tensors around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.ir.dims import shape_text
from irexec.messages import counted, listed
from irexec.tools.arrays.statistics import Statistics
from irexec.tools.trapping.trap import Tensor, Trap, TrapReport

_KINDS = {
    "nan": "NaN",
    "inf": "infinities",
    "f16": "values beyond the largest f16, 65504",
    "range": "values outside of the recorded range",
}
_SHOWN = 10


@sections_of.register
def _(report: TrapReport) -> Iterable[Content]:
    return [trap_sections(report), [Text(note, "note") for note in trap_notes(report)]]


def trap_sections(report: TrapReport) -> Iterator[Content]:
    """The layer at which the run stopped, with statistics of its inputs and output; or the number of checked layers."""
    found = report.trap
    if found is None:
        if report.kinds:
            yield f"trap {','.join(report.kinds)}: nothing found in {counted(report.layers, 'layer')}"
        return
    yield _sentence(found)
    for layer, body, iteration in found.iterations:
        where = f"in iteration {iteration + 1} of {body}" if body == "body" else f"in {body}"
        yield f"{where} of layer {layer!r}"
    none = "; none in its inputs" if found.origin == "layer" and found.kind != "range" else ""
    yield (
        f"{found.count:,} of {found.output.statistics.count:,} elements, "
        f"the first at {shape_text(found.index)}: {found.value:.6g}{none}"
    )
    if found.limits is not None:
        yield f"the range is {found.limits[0]:.6g} to {found.limits[1]:.6g}, margin included"
    fine = f"{counted(found.fine, 'layer')} before it had nothing to report"
    yield fine if found.fine else "no layer has run before it"
    yield _tensors_table([*((f"input {i}", tensor) for i, tensor in enumerate(found.inputs)), ("output", found.output)])


def trap_notes(report: TrapReport) -> Iterator[str]:
    """Sentences about infinities and ranges that are not reported."""
    if report.infinite:
        yield f"infinities in inputs: {listed(report.infinite, _SHOWN)}; those that come of them are not reported"
    if report.without_range:
        count = counted(len(report.without_range), "tensor")
        yield f"no range is recorded of {count}: {listed(report.without_range, _SHOWN)}"


def _tensors_table(tensors: list[tuple[str, Tensor]]) -> Table:
    def infinities(s: Statistics) -> int | None:
        return s.infinities + s.negative_infinities or None

    columns = [
        Column("", lambda row: row[0]),
        Column("tensor", lambda row: row[1].name),
        Column("operation", lambda row: row[1].source),
        Column("type", lambda row: row[1].fact, "code"),
        Column("min", lambda row: row[1].statistics.min, "number"),
        Column("max", lambda row: row[1].statistics.max, "number"),
        Column("mean", lambda row: row[1].statistics.mean, "number"),
        Column("NaN", lambda row: row[1].statistics.nans or None, "number"),
        Column("inf", lambda row: infinities(row[1].statistics), "number"),
    ]
    return Table(columns, tensors, what="tensors")


def _sentence(found: Trap) -> str:
    line = "" if found.line is None else f", line {found.line}"
    where = f"layer {found.id} {found.name!r} ({found.type}, {found.version}{line})"
    if found.origin == "input":
        return f"input {found.source!r} of the model has {_KINDS[found.kind]}"
    if found.origin == "constant":
        return f"{where} gives {_KINDS[found.kind]} that come from constant {found.source!r}"
    return f"{where} gives {_KINDS[found.kind]}"
