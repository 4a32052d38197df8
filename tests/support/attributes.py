"""Attributes of a row, as its kernel and its shape rule accept them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from irexec.dtypes.elements import Element
from irexec.schema.injected import ElementTypes
from irexec.schema.opdef import OpDef


def read_attributes(
    definition: OpDef, texts: Mapping[str, str], elements: Iterable[Element | None] | None = None
) -> dict[str, Any]:
    """Attribute values by the kernel's parameter, with the element types of the inputs where the operation asks for
    them.

    Raises:
        OpError: an attribute is missing, ill-typed or out of range.
    """
    values = definition.parse(texts).require()
    if elements is not None and definition.elements_parameter is not None:
        values[definition.elements_parameter] = ElementTypes(elements)
    return values
