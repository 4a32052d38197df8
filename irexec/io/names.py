"""Tensor names as the ``names`` attribute of a port has them.

They are joined with commas; a comma inside a name is written ``\\,`` and any other backslash stands for itself.
"""

from __future__ import annotations

import re

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
