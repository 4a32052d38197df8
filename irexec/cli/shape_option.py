"""The shapes that a command line gives: ``x[1,3,?,2..8]`` or ``x=1,3,?,2..8``, the same for every option of every command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import click

from irexec.errors import OpError
from irexec.ir.dims import PartialShape
from irexec.ir.shape_text import parse_named_shape, parse_shape

METAVAR = "NAME[1,3,?,2..8]"


class ShapeOption(NamedTuple):
    """A shape for an input; ``name`` is None if the text has none."""

    name: str | None
    shape: PartialShape


class ShapeType(click.ParamType):
    """Parses a shape with a name, or one without: ``[1,3,?,2..8]`` or ``1,3,?,2..8``; see irexec.ir.shape_text."""

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ShapeOption:
        text = str(value).strip()
        if not text:
            self.fail(f"'' has no sizes, expected {METAVAR} or NAME=1,3,?,2..8", param, ctx)
        try:
            if "=" not in text and (text.startswith("[") or not text.endswith("]")):
                return ShapeOption(None, parse_shape(text))
            name, shape = parse_named_shape(text)
        except OpError as error:
            self.fail(str(error), param, ctx)
        return ShapeOption(name.strip(), shape)


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
