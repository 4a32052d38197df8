"""Attributes of IR: text to values and back, by the annotation of a kernel's keyword-only parameter or of a dataclass
field. Values that have their type already are checked, not parsed.

Annotations understood: int, float, bool, str, Element, PartialShape, Literal[...] of str (an enum, read
in any letter case), tuple[int, ...], tuple[float, ...], tuple[str, ...], any of these ``| None``, and
Annotated[..., AtLeast(n)] for a range. The aliases below are the usual ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, TypeVar, Union, get_args, get_origin

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import OpError, RangeError, UnsupportedError
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node
from irexec.ir.shape_text import parse_shape

T = TypeVar("T")


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

Parser = Callable[[Any], Any]
"""Text or value to value: a value that is not of the very type of its attribute is read as its text would be."""

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operation's schema.

    Attributes:
        name: as IR writes it ("exclude-pad" for the parameter exclude_pad of pooling).
        parameter: the kernel's parameter, or the field of the dataclass ``group``.
        parse: text or value to value; raises OpError with a sentence about the text alone, RangeError for a value out
            of range.
        annotation: the annotation of the kernel's parameter.
        default: REQUIRED if there is none.
        choices: the spellings of an enum, else ().
        group: the kernel's parameter that takes the dataclass of which this is a field; None for a parameter of its
            own.
    """

    name: str
    parameter: str
    parse: Parser
    default: Any
    choices: tuple[str, ...] = ()
    annotation: Any = None
    group: str | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @functools.cached_property
    def is_element(self) -> bool:
        """Whether the value is an element type, which may be unknown."""
        return Element in (self.annotation, *get_args(self.annotation))


def parser_of(annotation: Any) -> tuple[Parser, tuple[str, ...]]:
    """The parser of an annotation, and the choices if it is an enum."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _annotated(annotation)
    if origin in (Union, UnionType):
        kinds = [a for a in get_args(annotation) if a is not NoneType]
        assert len(kinds) == 1, f"annotation {annotation} is not understood"
        return (_element_or_none, ()) if kinds[0] is Element else parser_of(kinds[0])
    if origin is Literal:
        choices = get_args(annotation)
        return lambda given: _choice(given, choices), choices
    if origin is tuple:
        item = get_args(annotation)[0]
        one, _ = parser_of(item)
        # A text in a list may be several items when it is written.
        return lambda given: _list(write_attribute(given) if item is str else given, one), ()
    return _SCALARS[annotation], ()


def _annotated(annotation: Any) -> tuple[Parser, tuple[str, ...]]:
    inner, *marks = get_args(annotation)
    if any(isinstance(mark, PartialShapeText) for mark in marks):
        return lambda given: parse_shape(write_attribute(given)), ()
    parse, choices = parser_of(inner)
    minimum = next(mark.minimum for mark in marks if isinstance(mark, AtLeast))

    def ranged(given: Any) -> Any:
        value = parse(given)
        for item in value if isinstance(value, tuple) else (value,):
            if item < minimum:
                raise RangeError(f"{item} is below the minimum, {minimum:g}")
        return value

    return ranged, choices


def _integer(given: Any) -> int:
    """An integer of 64 bits, signed or not: some attributes are unsigned."""
    value = given if type(given) is int else _integer_of_any_size(write_attribute(given))
    if not -(1 << 63) <= value < 1 << 64:
        raise RangeError(f"{write_attribute(given)[:40]!r} is not an integer of 64 bits")
    return value


def _integer_of_any_size(text: str) -> int:
    number = _float(text, "an integer")
    with suppress(ValueError):
        return int(text)
    if not number.is_integer():
        raise OpError(f"{text!r} is not an integer")
    return int(number)


def _number(given: Any) -> float:
    if type(given) is float:
        # Without the sign of 0, as it is written.
        return given + 0.0
    return _float(write_attribute(given), "a number")


def _float(text: str, expected: str) -> float:
    # Python reads "1_0" and digits of other scripts too.
    if text.isascii() and "_" not in text:
        with suppress(ValueError):
            return float(text)
    raise OpError(f"{text!r} is not {expected}")


def _boolean(given: Any) -> bool:
    if type(given) is bool:
        return given
    text = write_attribute(given)
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise OpError(f"{text!r} is not a boolean (true or false)")
    return value


def _element(given: Any) -> Element:
    try:
        return given if isinstance(given, Element) else element(write_attribute(given))
    except UnsupportedError as error:
        raise OpError(str(error)) from None


def _element_or_none(given: Any) -> Element | None:
    """None for "dynamic", a type that is known only when the model runs."""
    return None if write_attribute(given).strip().lower() in UNKNOWN_ELEMENT else _element(given)


def _choice(given: Any, choices: tuple[str, ...]) -> str:
    text = write_attribute(given)
    if text in choices:
        return text
    folded = text.strip().lower()
    for choice in choices:
        if choice.lower() == folded:
            return choice
    raise RangeError(f"{text!r} is not one of {', '.join(choices)}")


def _list(given: Any, one: Parser) -> tuple[Any, ...]:
    if type(given) in (tuple, list):
        return tuple(map(one, given))
    text = write_attribute(given)
    return tuple(one(part.strip()) for part in text.split(",")) if text.strip() else ()


def write_attribute(value: Any) -> str:
    """The text of a value as OpenVINO writes it: lists with ``", "``, booleans as true and false."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e16:
            return str(int(value))
        return repr(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(write_attribute, value))
    return str(value)


_SCALARS: dict[Any, Parser] = {
    int: _integer,
    float: _number,
    bool: _boolean,
    str: write_attribute,
    Element: _element,
}


class Runner(Protocol):
    """A body as kernels and shape rules see it: called with one argument per Parameter, in order of the
    Parameters in ``body.graph.parameters``, it returns one result per Result, in order.

    A kernel's Runner takes and gives arrays, a shape rule's Runner takes and gives Facts.
    """

    body: Body
    node: Node
    outputs: Sequence[Fact]
    """Facts of the outputs of the node; empty for a shape rule."""

    def __call__(self, *inputs: Any) -> list[Any]: ...

    def connected(self, read: Callable[[Node, Body], T]) -> T:
        """``read`` of node and body, such as ``Branch.of``; a run reads it once."""
        return read(self.node, self.body)


class Variables(MutableMapping[str, np.ndarray]):
    """The state of a session by variable_id: an annotation for stateful kernels."""


class Caches:
    """Inputs that a kernel writes, such as tables of keys: an annotation for kernels whose inputs OpenVINO changes.

    A session keeps what was written for its next run. Outside of one, nothing is kept.
    """

    def read(self, name: str, given: np.ndarray) -> np.ndarray:
        """A copy of an input as the run before left it: of ``given`` in the first run."""
        return given.copy()

    def keep(self, name: str, array: np.ndarray) -> None:
        """Keep what an input has become."""


NOT_KEPT = Caches()
"""The default of a kernel."""


class Written(Caches):
    """Holds what a kernel, or the rule of its bounds, has written, by the names of the inputs."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}

    def keep(self, name: str, array: Any) -> None:
        """See Caches."""
        self.inputs[name] = array


class ElementTypes(tuple[Element | None, ...]):
    """The element types of the inputs: an annotation where carriers are ambiguous (bf16 and f32 share one)."""


INJECTED = (Runner, Variables, Caches, Constant, ElementTypes)
