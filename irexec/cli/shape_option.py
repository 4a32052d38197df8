"""The shapes that a command line gives: ``x[1,3,?,2..8]`` or ``x=1,3,?,2..8``, the same for every option of every command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import click

from irexec.analysis.model import parse_partial_shape
from irexec.errors import OpError
from irexec.ir.dims import PartialShape

METAVAR = "NAME[1,3,?,2..8]"


class ShapeOption(NamedTuple):
    """A shape for an input; ``name`` is None if the text has none."""

    name: str | None
    shape: PartialShape


class ShapeType(click.ParamType):
    """Parses ``NAME[SIZES]``, ``NAME=SIZES``, ``NAME=[SIZES]``, ``[SIZES]`` or ``SIZES``.

    SIZES are separated by commas: ``?`` and ``-1`` are any size, ``2..8`` is a range; ``...`` alone is any rank, and ``NAME[]``
    a scalar. The last bracket or equals sign ends the name, so that a name may contain either.
    """

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ShapeOption:
        text = str(value).strip()
        if text.endswith("]") and "[" in text:
            name, _, sizes = text[:-1].rpartition("[")
            name = name.removesuffix("=")
        else:
            name, _, sizes = text.rpartition("=")
            if not sizes.strip():
                self.fail(f"{text!r} has no sizes, expected {METAVAR} or NAME=1,3,?,2..8", param, ctx)
        try:
            return ShapeOption(name.strip() or None, parse_partial_shape(sizes))
        except OpError as error:
            self.fail(f"{text!r}: {error}", param, ctx)


def shapes_by_name(shapes: Iterable[ShapeOption], option: str) -> dict[str, PartialShape]:
    """The shapes by the names of their inputs.

    Raises:
        click.BadParameter: a shape has no name, or two have the same; ``option`` is where the message says it was given.
    """
    found: dict[str, PartialShape] = {}
    for name, shape in shapes:
        if name is None:
            raise click.BadParameter(f"a shape has no name, expected {METAVAR} or NAME=1,3,?,2..8", param_hint=f"'{option}'")
        if name in found:
            raise click.BadParameter(f"the shape of {name!r} is given twice", param_hint=f"'{option}'")
        found[name] = shape
    return found
