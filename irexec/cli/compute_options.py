"""The option groups of commands that run a model: how it is computed, and how an image becomes an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import click

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.cli.option_groups import OptionGroup, option
from irexec.cli.quantities import Values
from irexec.tools.images.images import ImageOptions


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How a model is computed.

    Attributes:
        precision: how f16 and bf16 are computed; None is the default of the command.
        optimize: False runs the reference kernels only.
    """

    precision: Precision | None = DEFAULT_PRECISION
    optimize: bool = True


COMPUTE = OptionGroup(
    "Computation",
    ComputeOptions,
    {
        "precision": option(
            "--precision",
            type=click.Choice(get_args(Precision)),
            default=DEFAULT_PRECISION,
            show_default=True,
            help="Compute f16 and bf16 in f32, or as-written: every result is rounded to its type.",
        ),
        "optimize": option(
            "--no-optimize", is_flag=True, flag_value=False, default=True, help="Run only the reference kernels."
        ),
    },
)


def precision_as(default: str) -> dict[str, object]:
    """Settings of --precision in a command that finds the default out by itself; ``default`` describes it."""
    help = f"Of irexec: f16 and bf16 in f32, or as-written (every result is rounded). Default: {default}."
    return {"default": None, "show_default": False, "help": help}


IMAGE = OptionGroup(
    "Images",
    ImageOptions,
    {
        "layout": option("--layout", help="Axes of the input that takes an image, such as NCHW."),
        "mean": option(
            "--mean",
            type=Values(),
            default="0",
            help="Subtracted from every pixel (0..255): one value, or one per channel.",
        ),
        "scale": option("--scale", type=Values(zero=False), default="1", help="Divisor of every pixel, after --mean."),
        "bgr": option("--bgr", is_flag=True, help="The model's channels are in BGR order."),
        "resize": option(
            "--resize",
            type=click.Choice(["stretch", "fit", "crop", "none"]),
            help="An image of another size: stretch it (default), fit it in and pad with black, crop the middle, or "
            "refuse it.",
        ),
    },
)
