"""Telling an ONNX model from an IR by its first bytes, without reading it: no XML document begins as a protobuf message
does, or as one of the two forms of ONNX as text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from irexec.io.reading import open_regular

# The fields of onnx.ModelProto by number, each with its wire type: 0 is an integer, 2 is bytes with their length before
# them.
_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
_GRAPH = 7
_LOOKED_AT = 1 << 16

# The size of values of the wire types that have a fixed one.
_FIXED = {1: 8, 5: 4}
if TYPE_CHECKING:
    import mmap

    Bytes = bytes | mmap.mmap

_NAMES = (
    rb"(?:ir_version|opset_import|producer_name|producer_version|domain|model_version|doc_string|graph|metadata_props|"
    rb"training_info|functions)"
)
_BEFORE = rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*"
_PROTOBUF_TEXT = re.compile(_BEFORE + _NAMES + rb"\s*[:{]")
_SYNTAX = re.compile(_BEFORE + rb"<\s*" + _NAMES + rb"\s*:")


def text_form(data: bytes | bytearray | memoryview) -> Literal["protobuf", "syntax"] | None:
    """The form of an ONNX model as text, by its first bytes: the text format of protobuf, or ONNX's own syntax, which
    onnx.parser reads; None for anything else.
    """
    head = bytes(data[:_LOOKED_AT])
    return "protobuf" if _PROTOBUF_TEXT.match(head) else "syntax" if _SYNTAX.match(head) else None


def has_onnx_name(path: str | os.PathLike[str]) -> bool:
    """True if the name of a file ends in .onnx."""
    return os.fspath(path).lower().endswith(".onnx")


def is_onnx_file(path: str | Path) -> bool:
    """Whether a file is an ONNX model: by its name, or by its first bytes."""
    if has_onnx_name(path):
        return True
    try:
        with open_regular(path) as file:
            return is_onnx(file.read(_LOOKED_AT))
    except (OSError, ValueError):
        return False


def is_onnx(data: bytes | bytearray | memoryview) -> bool:
    """Whether bytes begin as an ONNX model: as text, or with the fields of a ModelProto up to the graph.

    What is after the beginning of the graph, or after the first 64 KiB, is not looked at: a damaged model is still one.
    """
    if text_form(data) is not None:
        return True
    head = bytes(data[:_LOOKED_AT])
    position = 0
    while position < len(head):
        tag, position = _integer(head, position)
        number, wire = tag >> 3, tag & 7
        if _FIELDS.get(number) != wire:
            return False
        if number == _GRAPH:
            return True
        value, position = _integer(head, position)
        position += value if wire == 2 else 0
    return position > len(head)


def fields(data: Bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a protobuf message: the number of each, and where its bytes begin and end.

    An integer has -1 for the beginning, and its value for the end. What comes after something else, or is damaged, is
    left out.
    """
    position = start
    while position < end:
        tag, position = _integer(data, position)
        if tag & 7 not in (0, 2):
            position += _FIXED.get(tag & 7, end)
            continue
        value, position = _integer(data, position)
        if tag & 7 == 0:
            yield tag >> 3, -1, value
        elif position + value <= end:
            yield tag >> 3, position, position + value
            position += value
        else:
            return


def _integer(data: Bytes, position: int) -> tuple[int, int]:
    """An integer as protobuf writes it, 7 bits in each byte, and the position after it, which is after the end if it
    has no end.
    """
    value = 0
    for i, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, position + i + 1
    return value, len(data) + 1
