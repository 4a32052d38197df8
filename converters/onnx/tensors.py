"""ONNX tensors as IR constants, dense or sparse; values of ONNX other than tensors.

IR has tensors only: other values must be resolved when a model is converted. A body is built repeatedly until the
shapes of its states settle, and the loops inside it with it. If inner loops did not start from their settled shapes,
the innermost body would be built exponentially often in the nesting depth.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from converters.onnx.graphs import UnknownTypeError, check_generated
from irexec.analysis.builder import packed, packed_size_of
from irexec.dtypes.elements import ELEMENTS, I64, Element
from irexec.errors import ConversionError, OpError, check
from irexec.io.sources import shared_weights
from irexec.ir.constants import BytesInMemory, Constant
from irexec.ir.dims import join_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.messages import counted

_TYPES: dict[int, Element] = {row.onnx.number: row for row in ELEMENTS if row.onnx is not None}


def element_of(data_type: int) -> Element:
    """The element type of IR for an ONNX one.

    Raises:
        UnknownTypeError: IR lacks the type (complex numbers, the FNUZ floats).
    """
    if data_type not in _TYPES:
        known = TensorProto.DataType.values()
        raise UnknownTypeError(
            f"ONNX type {TensorProto.DataType.Name(data_type) if data_type in known else data_type} is not a type of IR"
        )
    return _TYPES[data_type]


def constant_of(tensor: TensorProto | onnx.SparseTensorProto, folder: Path | None) -> Constant:
    """A tensor as a constant; external data is mapped into memory when it is used.

    Args:
        tensor: dense or sparse.
        folder: the folder of the model and of its external data; None if the model is not a file.

    Raises:
        ConversionError: the tensor is damaged, or its external data is missing or outside the folder.
        OpError: a sparse tensor is larger than MAX_GENERATED_BYTES, or has indices outside its shape.
        UnsupportedError: IR does not have its type.
    """
    if isinstance(tensor, onnx.SparseTensorProto):
        return packed(*_dense(tensor))
    _check_dims(tensor)
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, folder)
    kind = element_of(tensor.data_type)
    if kind.kind == "string" or not tensor.HasField("raw_data"):
        return packed(*array_of(tensor))
    raw, needed = np.frombuffer(tensor.raw_data, np.uint8), packed_size_of(kind, tensor.dims)
    if len(raw) != needed:
        raise ConversionError(
            f"tensor {tensor.name!r} has {counted(len(raw), 'byte')}, {kind}{list(tensor.dims)} takes {needed}"
        )
    return Constant(kind, tuple(tensor.dims), BytesInMemory(raw), needed)


def read_tensor(path: Path) -> np.ndarray:
    """The elements of a tensor that is a file of its own, such as ``input_0.pb``, in the carrier of its element type.

    Raises:
        ConversionError: it cannot be read, or is damaged.
        UnsupportedError: IR does not have its type.
    """
    try:
        tensor = TensorProto.FromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise ConversionError(f"{path}: cannot be read as a tensor of ONNX: {error}") from None
    return array_of(tensor)[0]


def array_of(tensor: TensorProto) -> tuple[np.ndarray, Element]:
    """The elements of a tensor inside the file, in the carrier of its element type.

    Raises:
        ConversionError: the tensor is damaged.
        UnsupportedError: IR does not have its type.
    """
    kind = element_of(tensor.data_type)
    _check_dims(tensor)
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ConversionError(f"tensor {tensor.name!r} has external data, which is not allowed for an attribute")
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise ConversionError(f"tensor {tensor.name!r} is damaged: {error}") from None
    if kind.kind == "string":
        texts = [
            value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            for value in array.ravel().tolist()
        ]
        return np.array(texts, object).reshape(array.shape), kind
    return np.asarray(array).astype(kind.carrier), kind


def _check_dims(tensor: TensorProto) -> None:
    # NumPy refuses a size beyond 63 bits even for an array without elements.
    if any(size < 0 for size in tensor.dims) or math.prod(size or 1 for size in tensor.dims) >> 59:
        raise ConversionError(f"tensor {tensor.name!r} has the shape {list(tensor.dims)}")


def _external(tensor: TensorProto, folder: Path | None) -> Constant:
    kind = element_of(tensor.data_type)
    if kind.kind == "string":
        raise ConversionError(f"tensor {tensor.name!r} has external strings, which ONNX does not allow")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = external_path(tensor, folder)
    needed = packed_size_of(kind, tensor.dims)
    offset = _integer(tensor.name, entries, "offset", 0)
    size = _integer(tensor.name, entries, "length", needed)
    if size != needed:
        raise ConversionError(
            f"tensor {tensor.name!r} has {size} bytes of external data, {kind}{list(tensor.dims)} takes {needed}"
        )
    if path.stat().st_size < offset + size:
        has = f"{path.name}, which has {path.stat().st_size} bytes"
        raise ConversionError(f"the data of tensor {tensor.name!r} is at {offset}..{offset + size} of {has}")
    return Constant(kind, tuple(tensor.dims), shared_weights(path).slice(offset, size), size)


def external_path(tensor: TensorProto, folder: Path | None) -> Path:
    """The file of external data, which must be in the model's own folder.

    Raises:
        ConversionError: the model is not a file, or the file of data is not in its folder.
    """
    name = tensor.name
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if folder is None:
        raise ConversionError(f"tensor {name!r} has external data, but the model is not a file")
    if isinstance(location, bytes):
        # protobuf returns bytes in place of text that is not UTF-8.
        raise ConversionError(f"tensor {name!r} has its data in {location!r}, which is not UTF-8 text")
    try:
        # Path.resolve raises RuntimeError for links in a cycle.
        path = Path(os.path.realpath(folder / location))
        inside = bool(location) and not Path(location).is_absolute() and path.is_relative_to(os.path.realpath(folder))
        if inside and not path.is_file():
            raise ConversionError(f"tensor {name!r} has its data in {location!r}, which does not exist")
        if inside and path.stat().st_nlink > 1:
            # Another name of the same file may be outside the folder.
            raise ConversionError(
                f"tensor {name!r} has its data in {location!r}, a file with several hard links, which is not allowed"
            )
    except (OSError, ValueError) as error:
        # A name with NUL raises ValueError.
        reason = getattr(error, "strerror", None) or error
        raise ConversionError(f"tensor {name!r} has its data in {location!r}, which cannot be read: {reason}") from None
    if not inside:
        raise ConversionError(f"tensor {name!r} has its data at {location!r}, outside the model's folder")
    return path


def _integer(name: str, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ConversionError(f"tensor {name!r} has {key} {text[:40]!r} of its external data")
    return int(text)


def _dense(sparse: onnx.SparseTensorProto) -> tuple[np.ndarray, Element]:
    """A sparse tensor as a dense array; its indices are linear, or one row of coordinates per value."""
    values, kind = array_of(sparse.values)
    indices, index_kind = array_of(sparse.indices)
    shape, what = tuple(sparse.dims), f"sparse tensor {sparse.values.name!r}"
    check_generated(shape, kind, what)
    check(values.ndim == 1, f"{what} has values of shape {list(values.shape)}, expected a vector")
    check(index_kind is I64, f"{what} has indices of type {index_kind}, expected i64")
    limits = shape if indices.ndim == 2 else (math.prod(shape),)
    is_complete = indices.size == len(values) * len(limits)
    rows = indices.reshape(len(values), len(limits)) if is_complete else indices
    if not is_complete or ((rows < 0) | (rows >= np.array(limits, np.int64))).any():
        raise OpError(f"{what} has indices out of range for its shape {list(shape)}")
    dense = np.zeros(shape, kind.carrier)
    dense[tuple(rows.T) if indices.ndim == 2 else np.unravel_index(rows[:, 0].astype(np.intp), shape)] = values
    return dense, kind


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors, each a value of its own."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without an element. An optional with an element is represented by that element."""


@dataclass(frozen=True)
class LoopSequence:
    """A sequence that a loop appends to, as seen in the loop's body: the tensors that this iteration has appended."""

    added: tuple[Value, ...] = ()


@dataclass(frozen=True)
class StackedSequence:
    """A sequence after the loop that appended to it: the tensors ``first``, then the rows of ``rest``."""

    first: tuple[Value, ...]
    rest: Value


@dataclass(frozen=True)
class ScoresByLabel:
    """A sequence of maps, one for each row of ``scores``: the score of each label, in the order of the last axis."""

    labels: tuple[str, ...]
    scores: Value


OnnxValue = Value | TensorSequence | EmptyOptional | LoopSequence | StackedSequence | ScoresByLabel


# The output names of the loop's node, and the number of loops that this node has built in the same body.
_Key = tuple[tuple[str, ...], int]


class SettledStates:
    """The settled states of a loop and of the loops inside its body.

    Attributes:
        facts: facts of the states when the loop was last built; empty before.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._inner: dict[_Key, SettledStates] = {}
        self._built: Counter[tuple[str, ...]] = Counter()

    def begin(self) -> None:
        """Begin to build the body, perhaps again."""
        self._built.clear()

    def inner(self, outputs: Sequence[str]) -> SettledStates:
        """The settled states of the next loop of the node with these outputs."""
        name = tuple(outputs)
        self._built[name] += 1
        return self._inner.setdefault((name, self._built[name]), SettledStates())

    def joined_with(self, initial: Sequence[Fact]) -> list[Fact]:
        """Facts that hold for the initial and for the settled states."""
        before = self.facts
        if [(fact.element, fact.rank) for fact in before] != [(fact.element, fact.rank) for fact in initial]:
            return list(initial)
        return [Fact(now.element, join_shapes(now.shape, old.shape)) for now, old in zip(initial, before, strict=True)]
