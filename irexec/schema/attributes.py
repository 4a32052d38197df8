"""Attributes of IR: text to values and back, by the annotation of a kernel's keyword-only parameter or of a dataclass
field.

Annotations understood: int, float, bool, str, Element, PartialShape, Literal[...] of str (an enum, read
in any letter case), tuple[int, ...], tuple[float, ...], tuple[str, ...], any of these ``| None``, and
Annotated[..., AtLeast(n)] for a range. The aliases below are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from irexec.dtypes.elements import Element, element
from irexec.errors import OpError, RangeError, UnsupportedError
from irexec.ir.shape_text import parse_shape


@dataclass(frozen=True)
class AtLeast:
    """A range: the value, or every value of the list, is not below ``minimum``."""

    minimum: float


Positive = Annotated[int, AtLeast(1)]
NonNegative = Annotated[int, AtLeast(0)]
Positives = Annotated[tuple[int, ...], AtLeast(1)]
NonNegatives = Annotated[tuple[int, ...], AtLeast(0)]
Ints = tuple[int, ...]
Floats = tuple[float, ...]


@dataclass(frozen=True)
class PartialShapeText:
    """Marks a parameter whose text is a partial shape: ``AttributeShape`` is the annotation to use."""


AttributeShape = Annotated[Any, PartialShapeText()]

REQUIRED: Any = object()

UNKNOWN_ELEMENT = ("dynamic", "undefined")
"""Spelling of an unknown element type in IR."""

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operation's schema.

    Attributes:
        name: as IR writes it ("exclude-pad" for the parameter exclude_pad of pooling).
        parameter: the kernel's parameter, or the field of the dataclass ``group``.
        parse: text to value; raises OpError with a sentence about the text alone, RangeError for a value outside of
            what is allowed.
        annotation: the annotation of the kernel's parameter.
        default: REQUIRED if there is none.
        choices: the spellings of an enum, else ().
        group: the kernel's parameter that takes the dataclass of which this is a field; None for a parameter of its
            own.
    """

    name: str
    parameter: str
    parse: Callable[[str], Any]
    default: Any
    choices: tuple[str, ...] = ()
    annotation: Any = None
    group: str | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


def parser_of(annotation: Any) -> tuple[Callable[[str], Any], tuple[str, ...]]:
    """The function that reads text for an annotation, and the choices if it is an enum."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _annotated(annotation)
    if origin in (Union, UnionType):
        kinds = [a for a in get_args(annotation) if a is not NoneType]
        assert len(kinds) == 1, f"annotation {annotation} is not understood"
        return (_element_or_none, ()) if kinds[0] is Element else parser_of(kinds[0])
    if origin is Literal:
        choices = get_args(annotation)
        return lambda text: _choice(text, choices), choices
    if origin is tuple:
        one, _ = parser_of(get_args(annotation)[0])
        return lambda text: _list(text, one), ()
    return _SCALARS[annotation], ()


def _annotated(annotation: Any) -> tuple[Callable[[str], Any], tuple[str, ...]]:
    inner, *marks = get_args(annotation)
    if any(isinstance(mark, PartialShapeText) for mark in marks):
        return parse_shape, ()
    parse, choices = parser_of(inner)
    minimum = next(mark.minimum for mark in marks if isinstance(mark, AtLeast))

    def ranged(text: str) -> Any:
        value = parse(text)
        for item in value if isinstance(value, tuple) else (value,):
            if item < minimum:
                raise RangeError(f"{item} is below the minimum, {minimum:g}")
        return value

    return ranged, choices


def _integer(text: str) -> int:
    """An integer of 64 bits, signed or not: some attributes are unsigned."""
    value = _integer_of_any_size(text)
    if not -(1 << 63) <= value < 1 << 64:
        raise RangeError(f"{text[:40]!r} is not an integer of 64 bits")
    return value


def _integer_of_any_size(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        raise OpError(f"{text!r} is not an integer") from None
    if not number.is_integer():
        raise OpError(f"{text!r} is not an integer")
    return int(number)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OpError(f"{text!r} is not a number") from None


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise OpError(f"{text!r} is not a boolean (true or false)")
    return value


def _element(text: str) -> Element:
    try:
        return element(text)
    except UnsupportedError as error:
        raise OpError(str(error)) from None


def _element_or_none(text: str) -> Element | None:
    """None for "dynamic", a type that is known only when the model runs."""
    return None if text.strip().lower() in UNKNOWN_ELEMENT else _element(text)


def _choice(text: str, choices: tuple[str, ...]) -> str:
    folded = text.strip().lower()
    for choice in choices:
        if choice.lower() == folded:
            return choice
    raise RangeError(f"{text!r} is not one of {', '.join(choices)}")


def _list(text: str, one: Callable[[str], Any]) -> tuple[Any, ...]:
    return tuple(one(part.strip()) for part in text.split(",")) if text.strip() else ()


_SCALARS: dict[Any, Callable[[str], Any]] = {
    int: _integer,
    float: _number,
    bool: _boolean,
    str: str,
    Element: _element,
}


def write_attribute(value: Any) -> str:
    """The text of a value as OpenVINO writes it: lists with ``", "``, booleans as true and false."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(write_attribute, value))
    return str(value)


def _float_text(value: float) -> str:
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)
