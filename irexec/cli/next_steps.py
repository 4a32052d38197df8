"""The command to go on with, as the last line of a report: on stderr, for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irexec.cli import render
from irexec.ir.dims import PartialShape, shape_text

Shapes = Mapping[str, PartialShape] | Mapping[str | None, PartialShape]


def go_on(*arguments: str) -> None:
    """Show a command of irexec that says more about what has just been reported."""
    render.remark(f"next: {shlex.join(['irexec', *arguments])}")


def as_given(inputs: Iterable[str], shapes: Shapes | None, seed: int = 0) -> Iterator[str]:
    """The options that give another command the same inputs; random ones where there are none."""
    for text in inputs:
        yield from ("-i", text)
    for name, shape in (shapes or {}).items():
        yield from ("--shape", f"{name or ''}{shape_text(shape)}")
    if seed:
        yield f"--seed={seed}"


def reads_stdin(inputs: Iterable[str]) -> bool:
    """Whether inputs come from standard input, which another command cannot read once more."""
    from irexec.tools.arrays.files import STDIN
    from irexec.tools.run.input_sources import parse_input_source

    return any(parse_input_source(text).source == STDIN for text in inputs)


def after_compare(a: str, b: str | None, a_runtime: str, b_runtime: str, inputs: Sequence[str]) -> None:
    """Show the command after models that differ: reduce to the part that differs, or compare without other runtimes."""
    from irexec.tools.engines.runtimes import OWN

    foreign = {name for name in (a_runtime, b_runtime) if name != "irexec"}
    if b is None and len(foreign) == 1:
        go_on("reduce", a, "-o", "min.xml", "--against", *foreign, *inputs)
    elif b is not None and foreign <= set(OWN):
        go_on("reduce", b, "-o", "min.xml", "--against", a, *inputs)
    elif b is not None:
        go_on("compare", a, b, *inputs)
