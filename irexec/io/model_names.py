"""The names in a model, read in milliseconds without NumPy, lxml or onnx: for the completion of what a user types.

Nothing is checked. A file that is not what it should be has fewer names, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from irexec.io.onnx_bytes import fields, has_onnx_name, is_onnx
from irexec.io.reading import open_regular

if TYPE_CHECKING:
    import mmap

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
