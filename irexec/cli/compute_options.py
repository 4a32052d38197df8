"""The option groups of commands that run a model: how it is computed, and how an image becomes an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.cli.option_groups import OptionGroup, flag, option
from irexec.cli.values import finite_values
from irexec.tools.images.images import ImageOptions


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How a model is computed.

    Attributes:
        precision: how f16 and bf16 are computed; None is the default of the command.
        optimize: False runs the reference kernels only.
        native: False leaves out the C kernels.
    """

    precision: Precision | None = DEFAULT_PRECISION
    optimize: bool = True
    native: bool = True


COMPUTE = OptionGroup(
    "Computation",
    ComputeOptions,
    {
        "precision": option(
            "--precision",
            "Compute f16 and bf16 in f32, or as-written: every result is rounded to its type.",
            choices=get_args(Precision),
            default=DEFAULT_PRECISION,
        ),
        "optimize": flag("--no-optimize", "Run only the reference kernels.", value=False),
        "native": flag("--no-native", "Compute with NumPy alone, without the C kernels.", value=False),
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
        "layout": option("--layout", "Axes of the input that takes an image, such as NCHW."),
        "mean": option(
            "--mean",
            "Subtracted from every pixel (0..255): one value, or one per channel.",
            type=finite_values(),
            default="0",
        ),
        "scale": option(
            "--scale",
            "Divisor of every pixel, after --mean.",
            type=finite_values(zero=False),
            default="1",
        ),
        "bgr": flag("--bgr", "The model's channels are in BGR order."),
        "resize": option(
            "--resize",
            "An image of another size: stretch it (default), fit it in and pad with black, crop the middle, or "
            "refuse it.",
            choices=["stretch", "fit", "crop", "none"],
        ),
    },
)
