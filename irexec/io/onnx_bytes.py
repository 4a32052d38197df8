"""First bytes of a file and a quick look at its text: the kind of a model, and the names in it.

Telling an ONNX model from an IR by its first bytes, without reading it: no XML document begins as a protobuf message
does, or as one of the two forms of ONNX as text.

Nothing is checked. A file that is not what it should be has fewer names, or none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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


_LARGEST_XML = 256 << 20
_BODY = rb"(?:then_|else_)?body"
_PIECES = re.compile(
    rb"<(?P<end>/?)" + _BODY + rb"\b|<layer\b(?P<layer>[^>]*)>|<data\b(?P<data>[^>]*)>|\bnames=\"(?P<names>[^\"]*)\""
)
_ATTRIBUTE = re.compile(rb"\b(name|type|shape)=\"([^\"]*)\"")
# A comma that is part of a name has a backslash before it.
_COMMA = re.compile(r"(?<!\\),")


@dataclass
class ModelNames:
    """The names in a model, without those inside bodies, functions and subgraphs.

    Attributes:
        inputs: each input with its shape as text, "?" for what is not known; None for an unknown rank.
        layers: the layers of an IR; the nodes of an ONNX model, by the first output where they have no name.
        tensors: the tensor names.
    """

    inputs: dict[str, str | None] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)


def model_names(path: str | Path) -> ModelNames:
    """The names in an .xml or .onnx; raises OSError and ValueError where it cannot be read."""
    import mmap

    with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if has_onnx_name(path) or is_onnx(data[: 1 << 16]):
            return _of_onnx(data)
        return _of_xml(data[:_LARGEST_XML])


def _of_xml(data: bytes) -> ModelNames:
    found, depth, kind, shape = ModelNames(), 0, "", None
    for piece in _PIECES.finditer(data):
        if piece["layer"] is not None and not depth:
            attributes = _attributes(piece["layer"])
            kind, shape = attributes.get("type", ""), None
            found.layers.append(attributes.get("name", ""))
            if kind == "Parameter":
                found.inputs[found.layers[-1]] = None
        elif piece["data"] is not None and not depth and kind == "Parameter":
            shape = _attributes(piece["data"]).get("shape")
            found.inputs[found.layers[-1]] = shape
        elif piece["names"] is not None and not depth:
            names = [name.replace("\\,", ",") for name in _COMMA.split(_text(piece["names"]))]
            found.tensors += names
            if kind == "Parameter" and found.layers[-1] in found.inputs:
                del found.inputs[found.layers[-1]]
                found.inputs[names[0]] = shape
        elif piece["layer"] is piece["data"] is piece["names"] is None:
            depth += -1 if piece["end"] else 1
    return found


def _attributes(text: bytes) -> dict[str, str]:
    return {key.decode(): _text(value) for key, value in _ATTRIBUTE.findall(text)}


def _text(data: bytes) -> str:
    import html

    return html.unescape(data.decode("utf-8", "replace"))


def _of_onnx(data: mmap.mmap) -> ModelNames:
    """The numbers are those of the fields of onnx.ModelProto, GraphProto, NodeProto, TensorProto and ValueInfoProto."""
    found = ModelNames()
    inputs: dict[str, str | None] = {}
    initializers: set[str] = set()
    for start, end in _parts(data, 0, len(data), 7):
        for number, first, last in fields(data, start, end):
            if number == 1:
                outputs = [name for name in _texts(data, first, last, 2) if name]
                found.tensors += outputs
                found.layers += [name for name in _texts(data, first, last, 3) if name][:1] or outputs[:1]
            elif number == 5:
                initializers.update(_texts(data, first, last, 8))
            elif number == 11:
                inputs |= dict.fromkeys(_texts(data, first, last, 1), _shape(data, first, last))
    found.inputs = {name: shape for name, shape in inputs.items() if name not in initializers}
    found.tensors[:0] = [*found.inputs, *sorted(initializers)]
    return found


def _parts(data: mmap.mmap, start: int, end: int, *path: int) -> Iterator[tuple[int, int]]:
    """Where the messages are to which a path of field numbers leads."""
    for number, first, last in fields(data, start, end):
        if number == path[0]:
            if len(path) == 1:
                yield first, last
            else:
                yield from _parts(data, first, last, *path[1:])


def _texts(data: mmap.mmap, start: int, end: int, number: int) -> list[str]:
    return [data[first:last].decode("utf-8", "replace") for first, last in _parts(data, start, end, number)]


def _shape(data: mmap.mmap, start: int, end: int) -> str | None:
    """The shape of a ValueInfoProto, each size that is not a number as "?"; None if it has none."""
    shapes = list(_parts(data, start, end, 2, 1, 2))
    if not shapes:
        return None
    return ",".join(_size(data, first, last) for first, last in _parts(data, *shapes[0], 1))


def _size(data: mmap.mmap, start: int, end: int) -> str:
    # For an integer, the end of its field is its value.
    values = [last for number, first, last in fields(data, start, end) if number == 1 and first < 0]
    return str(values[0]) if values and values[0] < 1 << 63 else "?"
