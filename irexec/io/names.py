"""How IR spells names: of tensors, operation types and element types.

Tensor names are joined with commas; a comma inside a name is written ``\\,`` and any other backslash stands for itself.
"""

from __future__ import annotations

import re

from irexec.dtypes.elements import Element, element
from irexec.errors import UnsupportedError

_SEPARATOR = re.compile(r"(?<!\\),")


def decode_names(text: str) -> list[str]:
    """The names in a ``names`` attribute."""
    return [part.replace("\\,", ",") for part in _SEPARATOR.split(text)] if text else []


def encode_names(names: list[str]) -> str:
    """The ``names`` attribute for names."""
    return ",".join(name.replace(",", "\\,") for name in names)


# How OpenVINO writes a type whose specification has another name, and what it means when read.
WRITTEN_TYPES = {"Constant": "Const", "Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
READ_TYPES = {written: type for type, written in WRITTEN_TYPES.items()}

# The precision of a port whose element type is not known, as OpenVINO writes it.
NO_PRECISION = "UNSPECIFIED"


def named_element(text: str) -> Element | None:
    """The element type that an element_type or precision means; None if it means none."""
    try:
        return element(text)
    except UnsupportedError:
        return None
