"""Lines on stderr for people: the command to go on with, and a note about the mapping of weights."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from irexec.cli import render
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import PartialShape, shape_text

Shapes = Mapping[str, PartialShape] | Mapping[str | None, PartialShape]


def go_on(*arguments: str) -> None:
    """Show a command of irexec that says more about what has just been reported."""
    # Not before: most commands show none.
    from irexec.tools.commands import irexec_command

    render.remark(f"next: {shlex.join(irexec_command(*arguments))}")


def reducing(model: str) -> tuple[str, ...]:
    """The beginning of the command that reduces a model, which is itself not overwritten."""
    return "reduce", model, "-o", "min.xml" if Path(model).name != "min.xml" else "smaller.xml"


def as_given(
    inputs: Iterable[str],
    shapes: Shapes | None,
    seed: int = 0,
    steps: int | None = None,
    load_state: str | None = None,
) -> Iterator[str]:
    """The options that give another command the same inputs and state; random inputs where there are none."""
    for text in inputs:
        yield from ("-i", text)
    for name, shape in (shapes or {}).items():
        yield from ("--shape", f"{name or ''}{shape_text(shape)}")
    if seed:
        yield f"--seed={seed}"
    if steps is not None:
        yield f"--steps={steps}"
    if load_state is not None:
        yield from ("--load-state", load_state)


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
        go_on(*reducing(a), "--against", *foreign, *inputs)
    elif b is not None and foreign <= set(OWN):
        go_on(*reducing(b), "--against", a, *inputs)
    elif b is not None:
        go_on("compare", a, b, *inputs)


def note_mapping(model: str, bin: str | None = None) -> None:
    """A note on stderr if the weights of a model will be mapped, and shortening their file would end the process."""
    from irexec.io import sources

    path = Path(bin or model)
    if bin is None and path.name:
        path = path.with_suffix(".bin")
    is_mapped = not is_onnx_file(model) and path.is_file() and os.path.getsize(path) > sources.READ_AT_ONCE
    if is_mapped and hasattr(signal, "SIGBUS"):
        render.note_line(
            f"{path} is mapped: if another program shortens it, the system ends this one; --no-mmap reads it at once"
        )
