"""How IR spells names: of tensors, operation types, element types and the elements of bodies.

Tensor names are joined with commas; a comma inside a name is written ``\\,`` and any other backslash is an ordinary
character.
"""

from __future__ import annotations

import re

from irexec.dtypes.elements import Element, element
from irexec.errors import UnsupportedError

_SEPARATOR = re.compile(r"(?<!\\),")


def decode_names(text: str) -> list[str]:
    """The names in a ``names`` attribute."""
    if "," not in text:
        return [text] if text else []
    return [part.replace("\\,", ",") for part in _SEPARATOR.split(text)]


def encode_names(names: list[str]) -> str:
    """The ``names`` attribute for names."""
    return ",".join(name.replace(",", "\\,") for name in names)


# The types that OpenVINO writes under another name than its specification has.
WRITTEN_TYPES = {"Constant": "Const", "Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
READ_TYPES = {written: type for type, written in WRITTEN_TYPES.items()}

# The precision of a port whose element type is not known, as OpenVINO writes it.
NO_PRECISION = "UNSPECIFIED"


def named_element(text: str) -> Element | None:
    """The element type of a spelling as element_type or precision; None if there is no such type."""
    try:
        return element(text)
    except UnsupportedError:
        return None


def body_tags(name: str) -> tuple[str, str, str]:
    """The elements of a body: itself, its port map, its back edges ("then_body" has "then_port_map")."""
    prefix = name.removesuffix("body")
    return name, f"{prefix}port_map", f"{prefix}back_edges"
