"""The attributes of an operation as a table."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from irexec.dtypes.elements import Element
from irexec.schema.attributes import AtLeast, Attribute, PartialShapeText, write_attribute
from irexec_reference.markdown import code, table

_NAMES = {int: "integer", float: "number", bool: "boolean", str: "text", Element: "element type"}
_LISTS = {int: "list of integers", float: "list of numbers", str: "list of names"}


def attribute_table(attributes: Iterable[Attribute]) -> str:
    """Name, type, default and allowed values of each attribute."""
    rows = [(code(a.name), type_text(a.annotation), _default(a), _allowed(a)) for a in attributes]
    return table(("Name", "Type", "Default", "Allowed values"), rows) if rows else "None.\n"


def type_text(annotation: Any) -> str:
    """The type of an attribute in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return (
            "partial shape"
            if any(isinstance(mark, PartialShapeText) for mark in arguments)
            else type_text(arguments[0])
        )
    if origin in (Union, UnionType):
        return type_text(next(kind for kind in arguments if kind is not NoneType))
    if origin is Literal:
        return "name"
    if origin is tuple:
        return _LISTS[arguments[0]]
    return _NAMES[annotation]


def _default(attribute: Attribute) -> str:
    if attribute.required:
        return "required"
    if attribute.default is None:
        return "none"
    return code(write_attribute(attribute.default)) if attribute.default not in ((), "") else "empty"


def _allowed(attribute: Attribute) -> str:
    if attribute.choices:
        return ", ".join(map(code, attribute.choices))
    ranges = [mark for mark in get_args(attribute.annotation)[1:] if isinstance(mark, AtLeast)]
    return "".join(f"{mark.minimum:g} or more" for mark in ranges)
