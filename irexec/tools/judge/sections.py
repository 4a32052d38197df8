"""The contents of a judgement: the verdict, the layers it names, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted, listed
from irexec.tools.judge.judgement import JudgedLayer, Judgement, State

_NAMES = 5
_FAR = 1e6
"""Number of radii above which the exact number says nothing further."""
_STATES: Mapping[State, str] = {
    "inside": "inside", "outside": "outside", "known": "at known differences",
    "unconfirmed": "unconfirmed", "no bound": "without a bound",
}  # fmt: skip


@sections_of.register
def _(found: Judgement) -> Iterable[Content]:
    return [judgement_sections(found), [Text(note, "note") for note in found.notes]]


def judgement_sections(found: Judgement, shows_all: bool = False) -> Iterator[Content]:
    """The verdict and its layers; ``shows_all``: every tensor."""
    version = f" {found.version}" if found.version else ""
    yield Text(found.sentence, "" if found.verdict == "agrees" else "error")
    if text := _severity(found):
        yield text
    if one := next((one for one in found.at if one.region), None):
        yield f"  judged together with {listed(one.region, _NAMES)}, which cannot be observed"
    if found.verdict == "bug" and not found.at[0].alone:
        yield "  the layer alone was not run, or does not show it"
    if shows_all or len(found.at) > 1:
        yield layers_table(found.layers if shows_all else found.at)
    counts = ", ".join(f"{found.count(state)} {text}" for state, text in _STATES.items() if found.count(state))
    held = f"{counted(len(found.layers), 'tensor')} of {found.runtime}{version} in {found.arithmetic}"
    yield f"{held}: {counts or 'none'}"
    types = sorted({one.layer.type for one in found.layers if one.state == "no bound"})
    if types:
        yield f"without a bound, and never accused: {listed(types, _NAMES)}"
    if found.bundle is not None:
        kept = found.bundle.kept
        weights = "" if kept is None else f"; weights are random{', except of ' + listed(kept, _NAMES) if kept else ''}"
        layers = f"{found.bundle.after} of {counted(found.bundle.before, 'layer')}"
        yield f"{found.bundle.folder}: {layers}, {listed(found.bundle.files, 6)}{weights}"
    if found.differing:
        yield f"results that differ visibly: {listed(found.differing, _NAMES)}"


def _severity(found: Judgement) -> str:
    """How far the first accused layer is outside, and whether it matters; empty without a bug or a number."""
    one = found.at[0] if found.is_bug and found.at else None
    if one is None or one.excess is None or one.relative is None:
        return ""
    away = f"{one.excess:.2g} times its radius" if one.excess < _FAR else "far"
    effect = "; results differ visibly" if found.differing else ""
    if found.severity == "minor":
        effect = "; no value differs visibly"
    return f"  {away} outside of its interval, by {one.relative:.1e} of the tensor's largest value{effect}"


def layers_table(layers: Sequence[JudgedLayer]) -> Table:
    """Tensors and their states."""
    columns = [
        Column("id", lambda one: one.layer.id, "number"),
        Column("layer", lambda one: one.layer.name, "path"),
        Column("type", lambda one: one.layer.type),
        Column("state", lambda one: Text(one.state, "error" if one.state == "outside" else "")),
        Column("outside", lambda one: one.outside or None, "number"),
        Column("of", "elements", "number"),
        Column("reason", "reason", "sentence"),
    ]
    return Table(columns, layers, what="tensors")
