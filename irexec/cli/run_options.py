"""The option groups of commands that run a model: how it is computed, on which images, with which traps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import click

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, flag, is_given, option, refuse_without
from irexec.cli.options import DYNAMIC_QUANTIZATION
from irexec.cli.values import FilePath, Parsed, finite_values
from irexec.messages import counted
from irexec.tools.images import ImageOptions
from irexec.tools.trapping import KINDS, MARGIN, Kind, TrapOptions

if TYPE_CHECKING:
    from irexec.tools.trapping.report import TrapReport


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How a model is computed.

    Attributes:
        precision: how f16 and bf16 are computed; None is the default of the command.
        optimize: False runs the reference kernels only.
        native: False leaves out the C kernels.
        dynamic_quantization: size of the groups in which rows of products with compressed weights are quantised.
    """

    precision: Precision | None = DEFAULT_PRECISION
    optimize: bool = True
    native: bool = True
    dynamic_quantization: int | None = None


COMPUTE = OptionGroup(
    "Computation",
    ComputeOptions,
    {
        "precision": option(
            "Compute f16 and bf16 in f32, or as-written: every result is rounded to its type. bf16: as f32, with the "
            "operands of products by constants rounded to bf16, on processors that multiply these faster.",
            choices=get_args(Precision),
        ),
        "optimize": flag("--no-optimize", "Run only the reference kernels.", value=False),
        "native": flag("--no-native", "Compute with NumPy alone, without the C kernels.", value=False),
        "dynamic_quantization": DYNAMIC_QUANTIZATION,
    },
)


def precision_as(default: str) -> dict[str, object]:
    """Settings of --precision in a command that finds the default out by itself; ``default`` describes it."""
    help = "Of irexec: f16 and bf16 in f32, or as-written (every result is rounded), or bf16 (as f32, with operands of "
    help += f"products by constants rounded to bf16). Default: {default}."
    return {"default": None, "show_default": False, "help": help}


IMAGE = OptionGroup(
    "Images",
    ImageOptions,
    {
        "layout": option("Axes of the input that takes an image, such as NCHW."),
        "mean": option(
            "Subtracted from every pixel (0..255): one value, or one per channel.", type=finite_values(), default="0"
        ),
        "scale": option("Divisor of every pixel, after --mean.", type=finite_values(zero=False), default="1"),
        "bgr": flag("The model's channels are in BGR order."),
        "resize": option(
            "An image of another size: stretch it (default), fit it in and pad with black, crop the middle, or "
            "refuse it.",
            choices=["stretch", "fit", "crop", "none"],
        ),
    },
)


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
            "Stop at the first layer with NaN, new infinities, values too large for f16, or values outside of a "
            "recorded range; exit code 1.",
            multiple=True,
            type=Parsed("kind", _kinds),
            metavar="nan,inf,f16,range=FILE",
        ),
        "trap_ignore": option(
            "For --trap: ignore this layer, tensor or input, by name or id; an asterisk matches any text; may be "
            "repeated.",
            multiple=True,
            metavar="NAME",
        ),
        "trap_margin": option(
            "For --trap range: how far a value may leave the range, relative to the largest recorded magnitude.",
            type=click.FloatRange(0),
            default=MARGIN,
        ),
        "record_range": option(
            "Write the range of every tensor, or widen the ranges in the file.", type=FilePath(), metavar="FILE.json"
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
