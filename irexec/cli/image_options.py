"""The options that say how an image becomes an input, the same for every command."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from irexec.tools.images.images import ImageOptions

IMAGE_OPTIONS = ("layout", "mean", "scale", "bgr", "resize")
"""The names of the parameters."""


class Values(click.ParamType):
    """Finite values with commas between them, 0 among them or not."""

    name = "value[,value...]"

    def __init__(self, zero: bool = True) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """The values as a tuple."""
        if isinstance(value, tuple):
            return value
        try:
            values = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            return self.fail(f"{value!r} is not a list of values", param, ctx)
        if not all(map(math.isfinite, values)) or (0 in values and not self.zero):
            return self.fail(f"{value!r} has a value that is not finite{'' if self.zero else ' or is 0'}", param, ctx)
        return values


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--layout", help="Axes of the input that takes an image, such as NCHW."),
    click.option(
        "--mean",
        type=Values(),
        default="0",
        help="Subtracted from every pixel (0..255): one value, or one per channel.",
    ),
    click.option("--scale", type=Values(zero=False), default="1", help="Every pixel is divided by it, after --mean."),
    click.option("--bgr", is_flag=True, help="The model's channels are in BGR order."),
    click.option(
        "--resize",
        type=click.Choice(["stretch", "fit", "crop", "none"]),
        help="An image of another size: stretch it (default), fit it in and pad with black, crop the middle, or refuse it.",
    ),
)


def image_options(command: Any) -> Any:
    """``--layout``, ``--mean``, ``--scale``, ``--bgr`` and ``--resize``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def image_from(parameters: dict[str, Any]) -> ImageOptions:
    """The parameters of ``IMAGE_OPTIONS``, which are taken out of all parameters."""
    return ImageOptions(**{name: parameters.pop(name) for name in IMAGE_OPTIONS})
