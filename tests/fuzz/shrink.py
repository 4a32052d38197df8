"""Smaller cases: delta debugging, and smaller lists, bytes, archives, messages and XML."""

from __future__ import annotations

import copy
import io
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice
from lzma import LZMAError
from typing import Any, TypeVar

import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError
from lxml import etree

from irexec.tools.arrays.files import damaged_errors
from tests.fuzz.case import Case, write_case
from tests.fuzz.mutate_onnx import is_repeated

T = TypeVar("T", str, bytes, list[Any])


def parts(items: T, minimum: int = 0) -> Iterator[T]:
    """The sequence without some of its items that follow each other: half of them first, single ones last."""
    count, size = len(items), max(1, len(items) // 2)
    while count > minimum:
        for start in range(0, count, size):
            rest = items[:start] + items[start + size :]
            if len(rest) >= minimum:
                yield rest
        if size == 1:
            return
        size = (size + 1) // 2


def smaller_bytes(data: bytes) -> Iterator[bytes]:
    """Bytes without some of them; then with some of them 0."""
    yield from parts(data)
    size = max(1, len(data) // 2)
    while data and size:
        for start in range(0, len(data), size):
            zeroed = data[:start] + bytes(len(data[start : start + size])) + data[start + size :]
            if zeroed != data:
                yield zeroed
        size //= 2


def smaller_value(value: Any) -> Iterator[Any]:
    """JSON values that are simpler: shorter, or closer to 0."""
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int | float):
        yield from _smaller_number(value)
    elif isinstance(value, str):
        yield from parts(value)
    elif isinstance(value, list):
        yield from parts(value)
        for i, item in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in smaller_value(item))
    elif isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            yield from ({**value, key: other} for other in smaller_value(item))


def _smaller_number(value: float) -> Iterator[float]:
    for other in (0, 1, 2, -1):
        if abs(other) < abs(value) or value != value:
            yield type(value)(other)
    if isinstance(value, int) and abs(value) > 4:
        yield value // 2


def smaller_files(
    case: Case, by_name: Callable[[str, bytes], Iterator[bytes]] = lambda name, data: smaller_bytes(data)
) -> Iterator[Case]:
    """The case without one of its files, then with one that is smaller."""
    for name in case.files:
        yield replace(case, files={other: data for other, data in case.files.items() if other != name})
    for name, data in case.files.items():
        for less in by_name(name, data):
            yield replace(case, files={**case.files, name: less})


def smaller_arguments(case: Case) -> Iterator[Case]:
    """The case with simpler arguments; each of them stays."""
    for name, value in case.arguments.items():
        for other in smaller_value(value):
            yield case.replaced(**{name: other})


# Smaller archives: without members, with members stored and smaller; bytes where it cannot be read.


# irexec refuses members that are encrypted (RuntimeError), or compressed by bzip2 (OSError) or LZMA, before it reads them.
_UNREADABLE = (*damaged_errors(), RuntimeError, OSError, LZMAError)


def smaller_npz(data: bytes) -> Iterator[bytes]:
    """Archives that zipfile writes again, if it reads this one; then fewer bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except _UNREADABLE:
        members = []
    for fewer in parts(members):
        yield _archive(fewer)
    if members:
        yield _archive(members)
    for i, (name, content) in enumerate(members):
        for less in smaller_bytes(content):
            yield _archive([*members[:i], (name, less), *members[i + 1 :]])
    yield from smaller_bytes(data)


def _archive(members: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
    return file.getvalue()


# Smaller ONNX models: without items of repeated fields, without fields, with simpler values; bytes where they are none.


def smaller_onnx(data: bytes) -> Iterator[bytes]:
    """Serialised models with less in them."""
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        yield from smaller_bytes(data)
        return
    for less in _smaller(model):
        yield less.SerializeToString(deterministic=True)


def _smaller(message: Any) -> Iterator[Any]:
    fields = [field for field, _ in message.ListFields()]
    for field in fields:
        value = getattr(message, field.name)
        if is_repeated(field):
            yield from (_with(message, field.name, kept) for kept in parts(list(value)))
        else:
            yield _with(message, field.name, None)
    for field in fields:
        value = getattr(message, field.name)
        is_message = field.type == Field.TYPE_MESSAGE
        if is_repeated(field):
            items = list(value)
            for i, item in enumerate(items[:50]):
                others = _smaller(item) if is_message else _values(item)
                yield from (_with(message, field.name, [*items[:i], other, *items[i + 1 :]]) for other in others)
        else:
            others = _smaller(value) if is_message else _values(value)
            # A closed enumeration, such as Version of proto2, takes none but its own numbers.
            numbers = None if field.enum_type is None else field.enum_type.values_by_number
            yield from (_with(message, field.name, other) for other in others if numbers is None or other in numbers)


def _values(value: Any) -> Iterator[Any]:
    yield from smaller_bytes(value) if isinstance(value, bytes) else smaller_value(value)


def _with(message: Any, name: str, value: Any) -> Any:
    """A copy with another value of a field; None clears it."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.ClearField(name)
    if isinstance(value, list):
        getattr(copy, name).extend(value)
    elif hasattr(value, "ListFields"):
        getattr(copy, name).CopyFrom(value)
    elif value is not None:
        setattr(copy, name, value)
    return copy


# Smaller XML: without elements, attributes or parts of texts; bytes where it is not XML.


def smaller_xml(text: bytes) -> Iterator[bytes]:
    """The largest steps first: layers with their edges, other elements, attributes, texts."""
    try:
        root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except etree.XMLSyntaxError:
        yield from smaller_bytes(text)
        return
    if root.getroottree().docinfo.doctype or not text.lstrip().startswith(b"<" + str(root.tag).encode()):
        yield from smaller_bytes(text)
        return
    yield from _without_layers(root)
    yield from _without_elements(root)
    yield from _without_attributes(root)


def _without_layers(root: etree._Element) -> Iterator[bytes]:
    """Without one layer, and without its edges."""
    for parent_index, layers in enumerate(root.iter("layers")):
        for i in range(len(layers)):
            smaller = copy.deepcopy(root)
            these = list(smaller.iter("layers"))[parent_index]
            layer = these[i]
            these.remove(layer)
            for edge in list(smaller.iter("edge")):
                if layer.get("id") in (edge.get("from-layer"), edge.get("to-layer")):
                    edge.getparent().remove(edge)
            yield etree.tostring(smaller)


def _without_elements(root: etree._Element) -> Iterator[bytes]:
    count = sum(1 for _ in root.iter(etree.Element))
    for kept in parts(list(range(1, count))):
        gone = set(range(1, count)) - set(kept)
        smaller = copy.deepcopy(root)
        for i, element in enumerate(list(smaller.iter(etree.Element))):
            if i in gone and element.getparent() is not None:
                element.getparent().remove(element)
        yield etree.tostring(smaller)


def _without_attributes(root: etree._Element) -> Iterator[bytes]:
    for i, element in enumerate(root.iter(etree.Element)):
        for name, text in element.attrib.items():
            for other in (None, *(found for found in _simpler(str(text)) if found != text)):
                smaller = copy.deepcopy(root)
                same = list(smaller.iter(etree.Element))[i]
                if other is None:
                    del same.attrib[name]
                else:
                    same.set(name, other)
                yield etree.tostring(smaller)


def _simpler(text: str) -> Iterator[str]:
    if "," in text:
        yield from (",".join(items) for items in parts(text.split(",")))
    elif len(text) > 1 and not text.isdigit():
        yield from (text[: len(text) // 2], text[:1])


# Delta debugging: the smallest case that a budget of runs finds, which still has the same finding.


def minimise(
    case: Case,
    still: Callable[[Case], bool],
    smaller: Callable[[Case], Iterator[Case]],
    runs: int = 400,
    seconds: float = 60,
) -> tuple[Case, int]:
    """A smaller case for which ``still`` holds, and how many were tried.

    After a success the search continues where it was, since what did not help before it seldom helps now; it ends when a whole round
    has found nothing.
    """
    tried = {write_case(case)}
    used, position, end = 0, 0, time.monotonic() + seconds
    while True:
        for step, candidate in _from(smaller, case, position):
            text = write_case(candidate)
            if text in tried:
                continue
            if used >= runs or time.monotonic() > end:
                return case, used
            tried.add(text)
            used += 1
            if still(candidate):
                case, position = candidate, step
                break
        else:
            return case, used


def _from(smaller: Callable[[Case], Iterator[Case]], case: Case, position: int) -> Iterator[tuple[int, Case]]:
    """The smaller cases with their positions, from one position on and then those before it."""
    later = enumerate(islice(smaller(case), position, None), position)
    return chain(later, enumerate(islice(smaller(case), position)))
