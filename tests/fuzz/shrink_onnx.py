"""Smaller ONNX models: without items of repeated fields, without fields, with simpler values; bytes where they are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError

from tests.fuzz.mutate_onnx import is_repeated
from tests.fuzz.shrink import parts, smaller_bytes, smaller_value


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
