"""The contents of a comparison: tensors, the first divergence, and counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irexec.display import Column, Content, Section, Table, Text, sections_of
from irexec.ir.order import grouped
from irexec.messages import counted, listed
from irexec.tools.compare.comparison import Comparison, Divergence, Suspect, TensorRow

_AROUND = 3
"""Number of rows that are shown before and after the first divergence."""
_NAMES = 8


@sections_of.register
def _(found: Comparison) -> Iterable[Content]:
    """The contents for a notebook: also what is compared, the notes, and folded every tensor and its difference."""
    columns = [Column(name, name) for name in ("side", "name", "type", "reason")]
    folded = [
        (counted(len(found.rows), "tensor"), rows_table(found.rows, is_full=True)),
        (counted(len(found.results), "result"), rows_table(found.results, is_full=True)),
        (f"{len(found.uncompared):,} not compared", Table(columns, found.uncompared, what="tensors")),
    ]
    return [
        Text(f"comparison of {found.a} and {found.b}", "title"),
        comparison_sections(found),
        [Section(title, table, is_folded=True) for title, table in folded if table.rows],
        [Text(note, "note") for note in found.notes],
    ]


def comparison_sections(found: Comparison, shows_all: bool = False) -> Iterator[Content]:
    """The tensors around the first divergence, the divergence, and counts.

    Args:
        found: the comparison.
        shows_all: every tensor is shown.
    """
    yield found.verdict or None
    yield rows_table(found.rows if shows_all else _shown(found))
    if found.first is not None:
        yield from _divergence(found.first, found)
    for one in found.known:
        is_first = found.first is not None and one.layer.name == found.first.row.b.name
        yield f"  known: {one}" if is_first else f"  known of {one.layer}: {one}"
    yield from _ending(found)


def rows_table(rows: Sequence[TensorRow], is_full: bool = False) -> Table:
    """Tensors and their differences; a full table also has their types and sentences about the differences."""
    columns = [
        Column("tensor", _name, "path"),
        Column("layer type", lambda row: row.b.type),
        Column("", lambda row: Text(row.state, "error" if row.is_fault else "")),
        Column("largest", lambda row: row.agreement.largest, "number"),
        Column("relative", lambda row: row.agreement.relative, "number"),
        Column("SNR", _decibels, "number"),
    ]
    if is_full:
        columns.insert(2, Column("type", lambda row: f"{row.type}[{','.join(map(str, row.shape))}]", "code"))
        columns.append(Column("difference", lambda row: row.agreement.message, "sentence"))
    return Table(columns, rows, hide_empty=False, what="tensors")


def _shown(found: Comparison) -> Sequence[TensorRow]:
    """The rows around the first divergence and the results; without a divergence, the rows with the largest errors."""
    if len(found.rows) <= 2 * _AROUND + 2:
        return found.rows
    if found.first is not None:
        at = found.rows.index(found.first.row)
        chosen = set(range(max(0, at - _AROUND), at + _AROUND + 1))
    else:
        chosen = set(sorted(range(len(found.rows)), key=lambda i: -(found.rows[i].agreement.relative or 0.0))[:_AROUND])
    results = {row.b for row in found.results}
    return [row for i, row in enumerate(found.rows) if i in chosen or row.b in results]


def _name(row: TensorRow) -> str:
    path, _, own = row.b.tensor.rpartition("/") if _is_inside(row) else ("", "", row.b.tensor)
    inside = f" in {path}" if path else ""
    where = [] if row.agreement.agrees else _where(row)
    return f"{own} ({', '.join(where)}){inside}" if where else f"{own}{inside}"


def _where(row: TensorRow) -> list[str]:
    """The run and the iterations of a tensor."""
    return [*([f"run {row.run}"] if row.run > 1 else []), *(f"iteration {i}" for i in row.iteration)]


def _is_inside(row: TensorRow) -> bool:
    """True for a tensor of a body."""
    return bool(row.iteration) or any(f"/{body}/" in row.b.name for body in ("body", "then_body", "else_body"))


def _decibels(row: TensorRow) -> str | None:
    snr = row.agreement.snr
    return None if snr is None else "equal" if math.isinf(snr) and snr > 0 else f"{snr:.1f} dB"


def _divergence(first: Divergence, found: Comparison) -> Iterator[str]:
    row = first.row
    beside = f", beside {row.recorded!r}" if row.recorded not in ("", row.b.name, row.b.tensor) else ""
    yield f"first divergence: {', '.join([str(row.b), *_where(row)])}{beside}"
    yield f"  {row.agreement.message}"
    yield from (f"  {text}" for text in reasons(first.suspect))
    if row.a is not None and row.a.name != row.b.name:
        yield f"  in A it is {row.a}, matched by {row.how}"
    yield from _between(first)
    others = [f"{layer.name} ({layer.type})" for layer in found.independent if layer.name != row.b.name]
    if others:
        cause = "by themselves" if found.isolated else "although what they are computed from agrees"
        yield f"also differing {cause}: {listed(others, _NAMES)}"


def _between(first: Divergence) -> Iterator[str]:
    """The layers with a correction, else the preceding layers that may be at fault, with their differences."""
    if corrected := [suspect for suspect in (first.suspect, *first.between) if suspect.correction]:
        for suspect in corrected:
            where = "" if suspect is first.suspect else f"; the layer at fault is {suspect.layer}"
            yield f"  its values are those of A with {suspect.correction}{where}"
            yield from (f"    {text}" for text in ([] if suspect is first.suspect else _differences(suspect)))
        return
    likely = [layer.name for layer in first.likely]
    if len(likely) > 1 and likely[0] != first.suspect.layer.name:
        yield f"  at fault is probably {first.likely[0]}"
    described = [suspect for suspect in first.between if _differences(suspect)][:_NAMES]
    for suspect in described:
        yield f"  in front of it, and not ruled out: {suspect.layer}"
        yield from (f"    {text}" for text in _differences(suspect))
    others = [f"{each.layer.name} ({each.layer.type})" for each in first.between if each not in described]
    if others:
        yield f"  in front of it, and not ruled out: {listed(others, _NAMES)}"


def _differences(suspect: Suspect) -> list[str]:
    """The differences of a layer itself."""
    return list(reasons(replace(suspect, inputs=tuple(one for one in suspect.inputs if one.agrees is False))))


def reasons(suspect: Suspect) -> Iterator[str]:
    """Sentences about a layer that may be at fault."""
    for name, (mine, theirs) in suspect.attributes.items():
        yield f"{name}: {mine or 'absent'} in A, {theirs or 'absent'} in B"
    told = {one.name for one in suspect.inputs if one.agrees is False}
    for name in (name for name in suspect.unknown_constants if name not in told):
        yield f"constant {name!r} has values that no constant of A has"
    for one in suspect.inputs:
        state = "is not compared" if one.agrees is None else "agrees" if one.agrees else "differs"
        yield f"input {one.index} {one.name!r} {state}{f': {one.message}' if one.message else ''}"


def _ending(found: Comparison) -> Iterator[str]:
    """Counts."""
    count = len(found.differing)
    agree = len(found.rows) - count
    alone = ", each layer alone with the tensors of A" if found.isolated else ""
    follow = sum(bool(row.follows) for row in found.differing)
    only = f", {follow} of them only because their inputs do" if follow else ""
    compared = f"{counted(len(found.rows), 'tensor')} compared{alone}"
    yield f"{compared}: {agree} agree, {count} differ{only}; {found.tolerance}"
    bad = [row.b.tensor for row in found.results if not row.agreement.agrees]
    if bad:
        yield f"results that differ: {listed(bad, _NAMES)}"
    if found.missing_results:
        yield f"results that could not be compared: {listed(found.missing_results, _NAMES)}"
    if found.blind:
        blind = listed([row.b.tensor for row in found.blind], _NAMES)
        text = "blind, since all their values are the same with these inputs"
        yield f"{text}: {blind}; --tries 5 compares with others too"
    for reason, names in grouped((one.reason, one.name) for one in found.uncompared).items():
        yield f"not compared, {reason}: {listed(names, _NAMES)}"
