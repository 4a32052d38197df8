"""Types of option values: paths, memory sizes, times, shapes, lists of values, values of tensors.

One option may give several, as ``x[1,3],y[2]``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click

from irexec.errors import InputError, OpError, UnsupportedError
from irexec.ir.dims import PartialShape
from irexec.ir.shape_text import parse_named_shape, parse_shape
from irexec.messages import is_address

_UNITS = {"": 1} | {unit: 1000**power for power, unit in enumerate("kmgt", 1)}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE | re.ASCII)


class Text(click.types.StringParamType):
    """Text that is not empty: an empty value is mostly a shell variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the text."""
        if value == "":
            self.fail("the value is empty", param, ctx)
        return super().convert(value, param, ctx)


class Parsed(click.ParamType):
    """Values that a function makes from text.

    Args:
        name: the form of the text, in --help and in messages.
        parse: the function; the text of its ValueError, OpError or InputError is the message about wrong usage.
        of_form: True for a message that begins with the text and the expected form.
    """

    def __init__(self, name: str, parse: Callable[[str], Any], *, of_form: bool = False) -> None:
        self.name, self._parse, self._of_form = name, parse, of_form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; any other value, such as a default, is as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, OpError, InputError) as error:
            reason = f": {error}" if str(error) else ""
            self.fail(f"{value!r} is not of the form {self.name}{reason}" if self._of_form else str(error), param, ctx)


def _memory_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = 0 if found is None else int(float(found[1]) * _UNITS[(found[2] or "").lower()])
    if size < 1:
        raise ValueError(f"{text!r} is not a size such as 500M, 2G or 1.5GiB")
    return size


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} is not a positive number of seconds")
    return seconds


MEMORY_SIZE = Parsed("size", _memory_size)
"""A number of bytes: 500000000, 500M (10**6), 1.5GiB (2**30)."""
SECONDS = Parsed("seconds", _seconds)
"""A positive number of seconds."""


class ThreadCount(click.IntRange):
    """A number of threads, at most as many as a thread pool may have."""

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the number."""
        self.max = self._maximum()
        count: int = super().convert(value, param, ctx)
        return count

    def _describe_range(self) -> str:
        """The range, as --help shows it."""
        self.max = self._maximum()
        return super()._describe_range()

    @staticmethod
    def _maximum() -> int:
        # Imported here: commands that run nothing have this option, too.
        from irexec.backend.threads import MAX_THREADS

        return MAX_THREADS


def finite_values(*, zero: bool = True) -> Parsed:
    """Finite values, separated by commas; ``zero``: whether 0 is allowed."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            values = tuple(float(part) for part in text.split(","))
        except ValueError:
            raise ValueError(f"{text!r} is not a list of values") from None
        if not all(map(math.isfinite, values)) or (0 in values and not zero):
            raise ValueError(f"{text!r} has a value that is not finite{'' if zero else ' or is 0'}")
        return values

    return Parsed("value[,value...]", parse)


class FilePath(click.Path):
    """A path as text. The empty path, mostly a shell variable that is not set, is refused; ``-`` unless ``allow_dash``,
    since no file of this name is meant; and addresses such as ``s3://bucket/x``, which Python would take for local
    folders.

    Whether the file can be read is not checked: a file that cannot be read has an exit code of its own.
    """

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(readable=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path."""
        if value == "":
            self.fail("'' is not a path", param, ctx)
        if isinstance(value, str) and is_address(value):
            self.fail(f"{value!r} is an address, expected the path of a local file or folder", param, ctx)
        if value == "-" and not self.allow_dash:
            self.fail("'-' stands for neither standard input nor output here, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def beside_model(model: str, suffix: str) -> Path:
    """The file beside MODEL with another suffix, which a command writes unless another one is named.

    Raises:
        click.BadParameter: MODEL is a folder.
    """
    if Path(model).is_dir():
        raise click.BadParameter(f"{model!r} is not a file", param_hint="'MODEL'")
    return Path(model).with_suffix(suffix)


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


def pair(text: str) -> tuple[str, str]:
    """The parts of LEFT=RIGHT, both of which are not empty: the last equals sign separates the two."""
    left, _, right = text.rpartition("=")
    if not left or not right:
        raise ValueError
    return left, right


def attribute_value(text: str) -> tuple[str, str, str]:
    """The parts of LAYER.ATTRIBUTE=VALUE, where the layer's name may have dots, and the value may be empty."""
    left, equals, value = text.rpartition("=")
    layer, _, name = left.rpartition(".")
    if not (equals and layer and name):
        raise ValueError
    return layer, name, value


def named(parse: Callable[[str], Any] = str) -> Callable[[str], tuple[str | None, Any]]:
    """A parser of NAME=VALUE for an input or output, or of VALUE alone for the only one, which has the name None."""

    def parse_named(text: str) -> tuple[str | None, Any]:
        name, equals, value = text.rpartition("=")
        if not value or (equals and not name):
            raise ValueError("the value is empty" if name or not equals else "the name is empty")
        return name if equals else None, parse(value)

    return parse_named


def element_type(text: str) -> str:
    """The name of an element type."""
    # Imported here: the command's help does not need NumPy.
    from irexec.dtypes.elements import element

    try:
        return element(text).name
    except UnsupportedError as error:
        raise ValueError(str(error)) from None


def numbers(text: str) -> list[float]:
    """Numbers between commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError("a number is expected between commas") from None


def resizing(text: str) -> dict[str, Any]:
    """MODE or MODE:HxW."""
    mode, colon, size = text.partition(":")
    if not colon:
        return {"resize": mode}
    height, _, width = size.partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise ValueError("a size is HEIGHTxWIDTH")
    return {"resize": mode, "size": (int(height), int(width))}


def kind_with_options(text: str) -> tuple[str, dict[str, Any]]:
    """KIND or KIND:OPTION=VALUE,...: whole numbers, other numbers, yes or no, and names."""
    kind, _, rest = text.partition(":")
    pairs = [part.partition("=") for part in rest.split(",")] if rest else []
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(f"{rest!r} has an option without a value")
    return kind, {name: _value(value) for name, _, value in pairs}


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def kind_for_output(text: str) -> tuple[str | None, str, dict[str, Any]]:
    """[OUTPUT=]KIND[:OPTION=VALUE,...]: the output, None without one, the kind and its options."""
    start, colon, rest = text.partition(":")
    output, equals, kind = start.rpartition("=")
    return (output if equals else None, *kind_with_options(f"{kind}{colon}{rest}"))
