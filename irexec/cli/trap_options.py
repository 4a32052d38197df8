"""The option group of traps, which stop a run at NaN, infinities and values out of range; and their reports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, option
from irexec.cli.paths import FilePath
from irexec.cli.usage import is_given, refuse_without
from irexec.messages import counted, listed
from irexec.tools.trapping.trap import KINDS, MARGIN, Kind, Tensor, Trap, TrapReport
from irexec.tools.trapping.trapped_run import TrapOptions

_WHAT = {
    "nan": "NaN", "inf": "infinities", "f16": "values beyond the largest f16, 65504", "range": "values outside of the recorded range",
}  # fmt: skip
_SHOWN = 10


class Kinds(click.ParamType):
    """Kinds with commas between them: ``nan,inf,f16,range=FILE``."""

    name = "kind"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[Kind, str | None], ...]:
        """Each kind, with its file."""
        if isinstance(value, tuple):
            return value
        found: list[tuple[Kind, str | None]] = []
        for part in str(value).split(","):
            name, _, file = part.partition("=")
            kind = next((one for one in KINDS if one == name.strip().lower()), None)
            if kind is None:
                self.fail(f"{part!r} is none of {', '.join(KINDS[:-1])} and range=FILE", param, ctx)
            if (kind == "range") != bool(file):
                self.fail(
                    "range takes the file that --record-range has written: range=FILE"
                    if kind == "range"
                    else f"{kind} takes no file",
                    param,
                    ctx,
                )
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
            multiple=True,
            type=Kinds(),
            metavar="nan,inf,f16,range=FILE",
            help="Stop at the first layer with NaN, new infinities, values too large for f16, or values outside of a "
            "recorded range; exit code 1.",
        ),
        "trap_ignore": option(
            "--trap-ignore",
            multiple=True,
            metavar="NAME",
            help="For --trap: ignore this layer, tensor or input, by name or id; an asterisk matches any text; may be "
            "repeated.",
        ),
        "trap_margin": option(
            "--trap-margin",
            type=click.FloatRange(0),
            default=MARGIN,
            show_default=True,
            help="For --trap range: how far a value may leave the range, relative to the largest recorded magnitude.",
        ),
        "record_range": option(
            "--record-range",
            type=FilePath(),
            metavar="FILE.json",
            help="Write the range of every tensor, or widen the ranges in the file.",
        ),
    },
)


def show_trap(report: TrapReport) -> None:
    """Where the run has stopped, with statistics of what the layer has read and given; or how many layers are fine."""
    found = report.trap
    if found is None:
        if report.kinds:
            render.line(f"trap {','.join(report.kinds)}: nothing found in {counted(report.layers, 'layer')}")
        _show_notes(report)
        return
    render.line(_sentence(found))
    for layer, body, iteration in found.iterations:
        render.line(
            f"in iteration {iteration + 1} of {body} of layer {layer!r}"
            if body == "body"
            else f"in {body} of layer {layer!r}"
        )
    where = f"the first at {render.sizes(found.index)}: {render.number(found.value)}"
    none = "; none in its inputs" if found.origin == "layer" and found.kind != "range" else ""
    render.line(f"{found.count:,} of {found.output.statistics.count:,} elements, {where}{none}")
    if found.limits is not None:
        render.line(
            f"the range is {render.number(found.limits[0])} to {render.number(found.limits[1])}, margin included"
        )
    render.line(
        f"{counted(found.fine, 'layer')} before it had nothing to report"
        if found.fine
        else "no layer has run before it"
    )
    render.line()
    tensors = [(f"input {i}", tensor) for i, tensor in enumerate(found.inputs)] + [("output", found.output)]
    render.table(
        _HEADERS, [_cells(what, tensor) for what, tensor in tensors], right=range(4, 9), whole=(3,), hide_empty=True
    )
    _show_notes(report)


_HEADERS = ("", "tensor", "operation", "type", "min", "max", "mean", "NaN", "inf")


def _cells(what: str, tensor: Tensor) -> tuple[Any, ...]:
    s = tensor.statistics
    return (
        what,
        tensor.name,
        tensor.source,
        tensor.fact,
        s.min,
        s.max,
        s.mean,
        s.nans or None,
        s.infinities + s.negative_infinities or None,
    )


def _sentence(found: Trap) -> str:
    line = "" if found.line is None else f", line {found.line}"
    where = f"layer {found.id} {found.name!r} ({found.type}, {found.version}{line})"
    if found.origin == "input":
        return f"input {found.source!r} of the model has {_WHAT[found.kind]}"
    if found.origin == "constant":
        return f"{where} gives {_WHAT[found.kind]} that come from constant {found.source!r}"
    return f"{where} gives {_WHAT[found.kind]}"


def _show_notes(report: TrapReport) -> None:
    if report.recorded:
        render.remark(
            f"{report.recorded.path}: ranges of {report.recorded.tensors} tensors in {counted(report.recorded.runs, 'run')}"
        )
    if report.infinite:
        render.note_line(
            f"infinities in inputs: {listed(report.infinite, _SHOWN)}; those that come of them are not reported"
        )
    if report.without_range:
        render.note_line(
            f"no range is recorded of {counted(len(report.without_range), 'tensor')}: {listed(report.without_range, _SHOWN)}"
        )


def trap_document(report: TrapReport) -> dict[str, Any]:
    """The report as JSON."""
    document = asdict(report)
    if report.trap is not None:
        document["trap"]["iterations"] = [
            {"layer": layer, "body": body, "iteration": iteration} for layer, body, iteration in report.trap.iterations
        ]
    return document
