"""The contents of a reduction: the layers that are left, the failure, and the command that shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted, listed
from irexec.tools.compare.comparison import reasons
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.reduction import Reduction

_NAMES = 5


@sections_of.register
def _(report: Reduction) -> Iterable[Content]:
    return [reduction_sections(report), [Text(note, "note") for note in report.notes]]


def reduction_sections(report: Reduction) -> Iterator[Content]:
    """The contents without the notes."""
    columns = [
        Column("id", "id", "number"),
        Column("layer", "name"),
        Column("type", "type"),
        Column("line", "line", "number"),
        Column("inner layers", lambda layer: layer.inner or None, "number"),
    ]
    if report.layers:
        yield Table(columns, report.layers, what="layers")
    kept = f"{counted(report.parameters, 'input')} and {counted(report.constants, 'constant')}"
    known = f", {report.recalled} were known" if report.recalled else ""
    reduced = f"{counted(report.before, 'layer')} reduced to {report.after}"
    yield f"{reduced}, with {kept}, in {report.checks} checks{known}"
    yield report.failure
    if report.blame is not None:
        yield from _blame(report.blame)
    if report.command:
        inputs = "" if report.inputs is None else f", inputs in {report.inputs}"
        yield from ("", f"{report.output}{inputs}; this shows the failure:")
        yield Text(f"  {shlex.join(report.command)}", "code")


def _blame(blame: Blame) -> Iterator[str]:
    """The layers that may be at fault, and their differences."""
    one_of = "" if len(blame.suspects) == 1 else f"one of {len(blame.suspects)} layers: "
    for suspect in blame.suspects:
        yield f"at fault: {one_of}{suspect.layer}"
        yield from (f"  {text}" for text in reasons(suspect))
    for title, layers in (
        ("inside of it values differ from here on", blame.inner),
        ("only A has, in its place", blame.absent),
    ):
        if layers:
            yield f"{title}: {listed(list(map(str, layers)), _NAMES)}"
