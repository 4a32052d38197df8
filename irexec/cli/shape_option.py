"""Shapes on the command line, the same for all options and commands: ``x[1,3,?,2..8]`` or ``x=1,3,?,2..8``.

One option may give several, as ``x[1,3],y[2]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import click

from irexec.cli.values import Parsed
from irexec.ir.dims import PartialShape
from irexec.ir.shape_text import parse_named_shape, parse_shape

METAVAR = "NAME[1,3,?,2..8]"
ALTERNATIVE = "NAME=1,3,?,2..8 means the same: ? is any size, 2..8 a range."
_BETWEEN = re.compile(r"(?<=\])\s*,")


class ShapeOption(NamedTuple):
    """A shape for an input; ``name`` is None if the text has none."""

    name: str | None
    shape: PartialShape


ShapeOptions = tuple[ShapeOption, ...]


def _shapes(text: str) -> ShapeOptions:
    """The shapes of one option; see irexec.ir.shape_text."""
    text = text.strip()
    if not text:
        raise ValueError(f"'' has no sizes, expected {METAVAR} or NAME=1,3,?,2..8")
    return tuple(_parsed(part.strip()) for part in (_BETWEEN.split(text) if text.endswith("]") else [text]))


SHAPE = Parsed("shape", _shapes)
"""Shapes with names, or one without: ``[1,3,?,2..8]`` or ``1,3,?,2..8``."""
SHAPES_GIVEN: dict[str, Any] = {"multiple": True, "type": SHAPE, "metavar": METAVAR}
"""Settings of an option that gives shapes of inputs, and may be repeated."""


def _parsed(text: str) -> ShapeOption:
    if text.count("[") == text.count("]") and "=" not in text and (text.startswith("[") or not text.endswith("]")):
        return ShapeOption(None, parse_shape(text))
    name, shape = parse_named_shape(text)
    return ShapeOption(name.strip(), shape)


def shapes_by_input(shapes: Iterable[ShapeOptions], option: str) -> dict[str | None, PartialShape]:
    """The shapes by the names of their inputs; None for the only input of a model.

    Raises:
        click.BadParameter: two are for the same input; ``option`` is where the message says it was given.
    """
    found: dict[str | None, PartialShape] = {}
    for name, shape in (one for several in shapes for one in several):
        if name in found:
            which = "the only input" if name is None else repr(name)
            raise click.BadParameter(f"the shape of {which} is given twice", param_hint=f"'{option}'")
        found[name] = shape
    return found


def shapes_by_name(shapes: Iterable[ShapeOptions], option: str) -> dict[str, PartialShape]:
    """The shapes by the names of their inputs.

    Raises:
        click.BadParameter: a shape has no name, or two have the same; ``option`` is named in the message.
    """
    found: dict[str, PartialShape] = {}
    for name, shape in shapes_by_input(shapes, option).items():
        if name is None:
            raise click.BadParameter(
                f"a shape has no name, expected {METAVAR} or NAME=1,3,?,2..8", param_hint=f"'{option}'"
            )
        found[name] = shape
    return found
