"""Plans and profiles: rows for steps, layers and types, and what the passes did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.compile.plan_report import PlanReport, StepRow
from irexec.display import Bar, Column, Content, Section, Table, sections_of
from irexec.messages import amount, counted, metric
from irexec.runtime.profile import Grouping, Profile, ProfileRow, SortKey


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


# A row of a table.
sections_of.register(StepRow, lambda row: [steps_table([row])])
sections_of.register(ProfileRow, lambda row: [rows_table([row], "step")])


def steps_table(steps: Sequence[StepRow]) -> Table:
    """The steps; of several layers the first is named, and how many more there are."""
    columns = [
        Column("step", "number", "number"),
        Column("layers", "title", "path"),
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
        Column("layer", lambda row: row.path + row.layers[0], "path"),
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


@sections_of.register
def profile_sections(profile: Profile) -> Iterable[Content]:
    """The steps, the one with the most time first, and the sums; folded, the types and the layers."""
    return [
        rows_table(profile.rows("step", "time"), "step"),
        profile_totals(profile),
        *(Section(f"by {by}", rows_table(profile.rows(by, "time"), by), is_folded=True) for by in _FOLDED),
    ]


_FOLDED: tuple[Grouping, ...] = ("type", "layer")


def grouped(profile: Profile, by: Grouping, sort: SortKey | None, limit: int | None = None) -> list[Content]:
    """The rows of one grouping and the sums; of more rows than ``limit`` those that take longest."""
    note = "the time of a step is at its main layer; fused layers have none" if by == "layer" else None
    rows = profile.rows(by, sort)
    if limit is not None and len(rows) > limit and sort is None:
        rows = profile.rows(by, "time")
    return [rows_table(rows, by, limit), profile_totals(profile), note]


_PARAMETERS = Column("params", "parameters", "count")
_COLUMNS: dict[Grouping, list[Column]] = {
    "step": [Column("layers", "title", "path"), Column("operation", "type"), Column("algorithm", "algorithm")],
    "layer": [Column("layer", "name", "path"), Column("operation", "type"), _PARAMETERS],
    "type": [Column("operation", "name"), Column("layers", lambda row: len(row.layers), "number"), _PARAMETERS],
}


def rows_table(rows: Sequence[ProfileRow], by: Grouping, limit: int | None = None) -> Table:
    """The rows of a grouping, with a bar for the share of the time."""
    columns = [
        Column("ms", "milliseconds", "ms"),
        Column("share", "share", "share"),
        *_COLUMNS[by],
        Column("MACs", "macs", "count"),
        Column("GFLOP/s", lambda row: "" if row.gflops is None else f"{row.gflops:.1f}", "number"),
        Column("bytes", "bytes", "bytes"),
        Column("", lambda row: None if row.share is None else Bar(row.share, f"{row.share:.1%} of the time"), "chart"),
    ]
    return Table(columns, rows, limit=limit, label=f"time by {by}", what=f"{by}s")


def profile_totals(profile: Profile) -> list[str]:
    """The lines below the table."""
    threads, runs = counted(profile.threads, "thread"), counted(profile.runs, "run")
    macs, cost = "an unknown number of MACs", profile.cost
    if cost.macs is not None:
        macs = f"{metric(cost.macs)}{'' if cost.macs > 999 else ' '}MACs"
    lines = [
        f"a run takes {profile.milliseconds:.3f} ms (median of {runs}, {threads}; minimum {profile.minimum:.3f} ms)",
        f"measured step by step it takes {profile.observed:.3f} ms, {profile.in_steps:.3f} ms of them in "
        f"{counted(len(profile.steps), 'step')}",
        f"{macs}, {metric(cost.parameters)} parameters",
        profile.kernels,
    ]
    if cost.macs and profile.milliseconds:
        lines[2] += f", {2 * cost.macs / (profile.milliseconds * 1e6):.1f} GFLOP/s"
    return lines
