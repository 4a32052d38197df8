"""Sentences about layers that differ."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.cli import render
from irexec.tools.compare.comparison import Suspect


def reasons(suspect: Suspect) -> Iterator[str]:
    """Sentences about a layer."""
    for name, (mine, theirs) in suspect.attributes.items():
        yield f"{name}: {mine or 'absent'} in A, {theirs or 'absent'} in B"
    told = {one.name for one in suspect.inputs if one.agrees is False}
    for name in (name for name in suspect.unknown_constants if name not in told):
        yield f"constant {name!r} has values that no constant of A has"
    for one in suspect.inputs:
        state = "is not compared" if one.agrees is None else "agrees" if one.agrees else "differs"
        yield f"input {one.index} {one.name!r} {state}{f': {one.message}' if one.message else ''}"


def say(text: str, indent: str = "") -> None:
    """A sentence, broken at words where the terminal ends; what follows the first line stands in further."""
    first, *rest = render.fill(text.split(), indent)
    render.line(first)
    if rest:
        render.lines(render.fill(" ".join(rest).split(), f"{indent}  "))
