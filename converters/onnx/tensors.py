"""ONNX tensors as IR constants: dense or sparse, inside the file or in external files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from irexec.analysis.builder import packed, packed_size_of
from irexec.dtypes.elements import ELEMENTS, Element
from irexec.errors import ConversionError, UnsupportedError
from irexec.io.weights import Weights
from irexec.ir.constants import Bytes, Constant

_TYPES: dict[int, Element] = {row.onnx.number: row for row in ELEMENTS if row.onnx is not None}


def element_of(data_type: int) -> Element:
    """The element type of IR for an ONNX one.

    Raises:
        UnsupportedError: IR has none (complex numbers, the FNUZ floats).
    """
    if data_type not in _TYPES:
        known = TensorProto.DataType.values()
        raise UnsupportedError(f"ONNX type {TensorProto.DataType.Name(data_type) if data_type in known else data_type} is not a type of IR")
    return _TYPES[data_type]


def constant_of(tensor: TensorProto | onnx.SparseTensorProto, folder: Path | None) -> Constant:
    """A tensor as a constant; external data is mapped when it is used.

    Args:
        tensor: dense or sparse.
        folder: that of the model, which must hold its external data; None if the model is not a file.

    Raises:
        ConversionError: the tensor is damaged, or its external data does not exist or is not in the folder.
        UnsupportedError: IR does not have its type.
    """
    if isinstance(tensor, onnx.SparseTensorProto):
        array, kind = _dense(tensor)
        return packed(array, kind)
    if any(size < 0 for size in tensor.dims):
        raise ConversionError(f"tensor {tensor.name!r} has the shape {list(tensor.dims)}")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, folder)
    kind = element_of(tensor.data_type)
    if kind.kind == "string" or not tensor.HasField("raw_data"):
        return packed(*array_of(tensor))
    raw, needed = np.frombuffer(tensor.raw_data, np.uint8), packed_size_of(kind, tensor.dims)
    if len(raw) != needed:
        raise ConversionError(f"tensor {tensor.name!r} has {len(raw)} bytes, {kind}{list(tensor.dims)} takes {needed}")
    return Constant(kind, tuple(tensor.dims), Bytes(raw), needed)


def array_of(tensor: TensorProto) -> tuple[np.ndarray, Element]:
    """The contents of a tensor inside the file, in the carrier of its element type.

    Raises:
        ConversionError: the tensor is damaged.
        UnsupportedError: IR does not have its type.
    """
    kind = element_of(tensor.data_type)
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ConversionError(f"tensor {tensor.name!r} has external data, which is not allowed for an attribute")
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ConversionError(f"tensor {tensor.name!r} is damaged: {error}") from None
    if kind.kind == "string":
        texts = [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in array.ravel().tolist()]
        return np.array(texts, object).reshape(array.shape), kind
    return np.asarray(array).astype(kind.carrier), kind


def _external(tensor: TensorProto, folder: Path | None) -> Constant:
    kind = element_of(tensor.data_type)
    if kind.kind == "string":
        raise ConversionError(f"tensor {tensor.name!r} has external strings, which ONNX does not allow")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(tensor.name, entries.get("location", ""), folder)
    needed = packed_size_of(kind, tensor.dims)
    offset = _integer(tensor.name, entries, "offset", 0)
    size = _integer(tensor.name, entries, "length", needed)
    if size != needed:
        raise ConversionError(f"tensor {tensor.name!r} has {size} bytes of external data, {kind}{list(tensor.dims)} takes {needed}")
    if path.stat().st_size < offset + size:
        has = f"{path.name}, which has {path.stat().st_size} bytes"
        raise ConversionError(f"the data of tensor {tensor.name!r} is at {offset}..{offset + size} of {has}")
    return Constant(kind, tuple(tensor.dims), Weights(path).slice(offset, size), size)


def _inside(name: str, location: str, folder: Path | None) -> Path:
    """The path of external data, which must lie in the model's own folder."""
    if folder is None:
        raise ConversionError(f"tensor {name!r} has external data, but the model is not a file")
    path = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(folder.resolve()):
        raise ConversionError(f"tensor {name!r} has its data at {location!r}, outside the model's folder")
    if not path.is_file():
        raise ConversionError(f"tensor {name!r} has its data in {location!r}, which does not exist")
    return path


def _integer(name: str, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ConversionError(f"tensor {name!r} has {key} {text[:40]!r} of its external data")
    return int(text)


def _dense(sparse: onnx.SparseTensorProto) -> tuple[np.ndarray, Element]:
    """A sparse tensor as a dense array; indices are linear, or one row of coordinates for each value."""
    values, kind = array_of(sparse.values)
    indices, _ = array_of(sparse.indices)
    shape = tuple(sparse.dims)
    limits = np.array(shape if indices.ndim == 2 else (math.prod(shape),), np.int64)
    rows = indices.reshape(len(values), -1)
    if rows.shape[1] != len(limits) or ((rows < 0) | (rows >= limits)).any():
        raise ConversionError(f"sparse tensor {sparse.values.name!r} has indices out of range for its shape {list(shape)}")
    dense = np.zeros(shape, kind.carrier)
    dense.reshape(-1)[np.ravel_multi_index(tuple(rows.T), tuple(limits.tolist()))] = values
    return dense, kind
