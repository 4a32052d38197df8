"""Plans: one row for each step, and what the passes did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.compile.plan_report import PlanReport, StepRow
from irexec.display import Column, Content, Section, Table, sections_of
from irexec.messages import amount, counted


@sections_of.register
def plan_sections(report: PlanReport) -> Iterable[Content]:
    """The steps and the sums; folded, what is computed with each step and why passes left layers as they are."""
    reasons = report.reasons()
    fused = [row for row in report.steps if len(row.layers) > 1]
    return [
        steps_table(report.steps),
        totals(report),
        Section("layers that are computed together", _fused_table(fused), is_folded=True) if fused else None,
        Section("why passes left layers as they are", _reasons_table(report), is_folded=True) if reasons else None,
    ]


@sections_of.register
def _(row: StepRow) -> Iterable[Content]:
    return [steps_table([row])]


def steps_table(steps: Sequence[StepRow]) -> Table:
    """The steps; of several layers the first is named, and how many more there are."""
    columns = [
        Column("step", "number", "number"),
        Column("layers", "title"),
        Column("operation", "operation"),
        Column("algorithm", "algorithm"),
        Column("layout", "layout", "code"),
        Column("output", "output", "code"),
        Column("size", "bytes", "bytes"),
    ]
    return Table(columns, steps, what="steps")


def _fused_table(steps: Sequence[StepRow]) -> Table:
    columns = [
        Column("step", "number", "number"),
        Column("layer", lambda row: row.path + row.layers[0]),
        Column("layers computed with it", lambda row: ", ".join(row.layers[1:]), "sentence"),
    ]
    return Table(columns, steps, what="steps")


def _reasons_table(report: PlanReport) -> Table:
    columns = [
        Column("pass", "pass_name"),
        Column("left alone because", "reason", "sentence"),
        Column("count", lambda reason: len(reason.layers), "number"),
        Column("layers", lambda reason: ", ".join(reason.layers), "sentence"),
    ]
    return Table(columns, report.reasons(), what="reasons")


def totals(report: PlanReport) -> list[str]:
    """The lines below the table: what became of the layers, what the passes did, and memory."""
    steps = counted(len(report.steps), "step")
    lines = [f"{steps} for {report.layers} layers, {counted(report.threads, 'thread')}"]
    lines.append(report.kernels + ("" if report.kernels.startswith("NumPy") else f": {counted(report.native, 'step')}"))
    if report.viewed or report.removed:
        views = counted(report.viewed, "view")
        lines.append(f"layers without a step: {views}, {report.removed} computed when compiling or not needed")
    lines += [f"pass {name!r}: {counted(count, 'change')}" for name, count in report.passes.items()]
    lines.append(f"arena {amount(report.arena)} with workspace; all intermediate tensors {amount(report.intermediate)}")
    lines.append(f"constants: {amount(report.packed)} packed, {amount(report.kept)} as they are")
    return lines
