"""Values of the options of irexec edit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class Pair(click.ParamType):
    """A text of the form LEFT=RIGHT: the last equals sign separates the two."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Returns the two parts, neither of which is empty."""
        if isinstance(value, tuple):
            return value
        left, _, right = str(value).rpartition("=")
        if not left or not right:
            self.fail(f"{str(value)!r} is not of the form {self.name}", param, ctx)
        return left, right


class AttributeValue(Pair):
    """LAYER.ATTRIBUTE=VALUE, where the layer's name may have dots, and the value may be empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the layer, the attribute and the text of the value."""
        if isinstance(value, tuple):
            return value
        left, equals, text = str(value).rpartition("=")
        layer, _, name = left.rpartition(".")
        if not (equals and layer and name):
            self.fail(f"{str(value)!r} is not of the form {self.name}", param, ctx)
        return layer, name, text


class NamedValue(click.ParamType):
    """A value for an input or output: NAME=VALUE, or VALUE alone for the only one."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | None, Any]:
        """Returns the name, None without one, and the value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).rpartition("=")
        try:
            return name if equals else None, self._parse(text)
        except ValueError as error:
            self.fail(f"{str(value)!r} is not of the form {self.name}: {error}", param, ctx)


def numbers(text: str) -> list[float]:
    """Numbers between commas."""
    return [float(part) for part in text.split(",")]


def resizing(text: str) -> dict[str, Any]:
    """MODE or MODE:HxW."""
    mode, colon, size = text.partition(":")
    if not colon:
        return {"resize": mode}
    sizes = [int(part) for part in size.split("x")]
    if len(sizes) != 2:
        raise ValueError("a size is HEIGHTxWIDTH")
    return {"resize": mode, "size": tuple(sizes)}


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


class KindWithOptions(click.ParamType):
    """[OUTPUT=]KIND[:OPTION=VALUE,...]"""

    name = "[OUTPUT=]KIND[:OPTIONS]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the output, None without one, the kind and its options."""
        if isinstance(value, tuple):
            return value
        start, colon, rest = str(value).partition(":")
        output, equals, kind = start.rpartition("=")
        try:
            return (output if equals else None, *kind_with_options(f"{kind}{colon}{rest}"))
        except ValueError as error:
            self.fail(f"{str(value)!r} is not of the form {self.name}: {error}", param, ctx)


class Compression(click.ParamType):
    """MODE or MODE:group=N"""

    name = "f16|int8|int4[:group=128]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the mode and its options."""
        if isinstance(value, tuple):
            return value
        try:
            return kind_with_options(str(value))
        except ValueError as error:
            self.fail(f"{str(value)!r} is not of the form {self.name}: {error}", param, ctx)
