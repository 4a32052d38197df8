"""Profiles: the time and the cost of steps, layers and types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.analysis.cost import Cost
from irexec.display import Bar, Column, Content, Section, Table, sections_of
from irexec.messages import counted, metric
from irexec.runtime.profile import Grouping, Profile, ProfileRow, SortKey


@sections_of.register
def profile_sections(profile: Profile) -> Iterable[Content]:
    """The steps, the one with the most time first, and the sums; folded, the types and the layers."""
    return [
        rows_table(profile.rows("step", "time"), "step"),
        totals(profile),
        *(Section(f"by {by}", rows_table(profile.rows(by, "time"), by), is_folded=True) for by in _FOLDED),
    ]


_FOLDED: tuple[Grouping, ...] = ("type", "layer")


@sections_of.register
def _(row: ProfileRow) -> Iterable[Content]:
    return [rows_table([row], "step")]


def grouped(profile: Profile, by: Grouping, sort: SortKey | None) -> list[Content]:
    """The rows of one grouping and the sums."""
    note = "the time of a step is at its main layer; fused layers have none" if by == "layer" else None
    return [rows_table(profile.rows(by, sort), by), totals(profile), note]


_PARAMETERS = Column("params", "parameters", "count")
_COLUMNS: dict[Grouping, list[Column]] = {
    "step": [Column("layers", "title"), Column("operation", "type"), Column("algorithm", "algorithm")],
    "layer": [Column("layer", "name"), Column("operation", "type"), _PARAMETERS],
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
        Column("", _share_bar, "chart"),
    ]
    return Table(columns, rows, limit=limit, label=f"time by {by}", what=f"{by}s")


def _share_bar(row: ProfileRow) -> Bar | None:
    return None if row.share is None else Bar(row.share, f"{row.share:.1%} of the time")


def totals(profile: Profile) -> list[str]:
    """The lines below the table."""
    threads, runs = counted(profile.threads, "thread"), counted(profile.runs, "run")
    lines = [
        f"a run takes {profile.milliseconds:.3f} ms (median of {runs}, {threads}; minimum {profile.minimum:.3f} ms)",
        f"measured step by step it takes {profile.observed:.3f} ms, {profile.in_steps:.3f} ms of them in "
        f"{counted(len(profile.steps), 'step')}",
        cost_line(profile.cost),
        profile.kernels,
    ]
    if profile.cost.macs and profile.milliseconds:
        lines[2] += f", {2 * profile.cost.macs / (profile.milliseconds * 1e6):.1f} GFLOP/s"
    return lines


def cost_line(cost: Cost) -> str:
    """The cost of a whole model."""
    if cost.macs is None:
        return f"an unknown number of MACs, {metric(cost.parameters)} parameters"
    return f"{metric(cost.macs)}{'' if cost.macs > 999 else ' '}MACs, {metric(cost.parameters)} parameters"
