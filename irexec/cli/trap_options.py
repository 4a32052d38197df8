"""The option group of traps, which stop a run at NaN, infinities and values out of range; and their reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, is_given, option, refuse_without
from irexec.cli.values import FilePath, Parsed
from irexec.messages import counted
from irexec.tools.trapping.options import KINDS, MARGIN, Kind, TrapOptions

if TYPE_CHECKING:
    from irexec.tools.trapping.report import TrapReport


def _kinds(text: str) -> tuple[tuple[Kind, str | None], ...]:
    """Kinds with commas between them, each with its file: ``nan,inf,f16,range=FILE``."""
    found: list[tuple[Kind, str | None]] = []
    for part in text.split(","):
        name, _, file = part.partition("=")
        kind = next((one for one in KINDS if one == name.strip().lower()), None)
        if kind is None:
            raise ValueError(f"{part!r} is none of {', '.join(KINDS[:-1])} and range=FILE")
        if kind == "range" and not file:
            raise ValueError("range takes the file that --record-range has written: range=FILE")
        if kind != "range" and file:
            raise ValueError(f"{kind} takes no file")
        found.append((kind, file or None))
    return tuple(found)


def _trap(
    trap: tuple[tuple[tuple[Kind, str | None], ...], ...],
    trap_ignore: tuple[str, ...],
    trap_margin: float,
    record_range: str | None,
) -> TrapOptions | None:
    """The trap of a run; None for a run without."""
    pairs = [pair for several in trap for pair in several]
    files = [file for _, file in pairs if file is not None]
    if not pairs:
        refuse_without("trap", "trap_ignore", "trap_margin")
    if not files and is_given("trap_margin"):
        raise click.UsageError("--trap-margin is for --trap range=FILE, which is not given")
    if len(files) > 1:
        raise click.UsageError("--trap takes one file of ranges")
    if not pairs and record_range is None:
        return None
    if is_given("compressed"):
        raise click.UsageError(
            "--weights says how weights are stored in a run; with --trap and --record-range every layer runs alone"
        )
    kinds = tuple(dict.fromkeys(kind for kind, _ in pairs))
    ranges = files[0] if files else None
    return TrapOptions(kinds=kinds, ranges=ranges, margin=trap_margin, ignore=trap_ignore, record=record_range)


TRAP = OptionGroup(
    "Trap",
    _trap,
    {
        "trap": option(
            "--trap",
            "Stop at the first layer with NaN, new infinities, values too large for f16, or values outside of a "
            "recorded range; exit code 1.",
            multiple=True,
            type=Parsed("kind", _kinds),
            metavar="nan,inf,f16,range=FILE",
        ),
        "trap_ignore": option(
            "--trap-ignore",
            "For --trap: ignore this layer, tensor or input, by name or id; an asterisk matches any text; may be "
            "repeated.",
            multiple=True,
            metavar="NAME",
        ),
        "trap_margin": option(
            "--trap-margin",
            "For --trap range: how far a value may leave the range, relative to the largest recorded magnitude.",
            type=click.FloatRange(0),
            default=MARGIN,
        ),
        "record_range": option(
            "--record-range",
            "Write the range of every tensor, or widen the ranges in the file.",
            type=FilePath(),
            metavar="FILE.json",
        ),
    },
)


def show_trap_notes(report: TrapReport) -> None:
    """The file of recorded ranges, and what is not reported."""
    if report.recorded:
        found = report.recorded
        render.remark(f"{found.path}: ranges of {found.tensors} tensors in {counted(found.runs, 'run')}")
    for note in report.notes():
        render.note_line(note)
