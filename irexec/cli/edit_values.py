"""Values of the options of irexec edit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irexec.errors import UnsupportedError


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
