"""Requests of the Open Inference Protocol as arrays: elements must have the type and shape of the request.

Binary tensors after the JSON are read without a copy. The kserve SDK would first convert each tensor to a list of
Python numbers, which takes a hundred times as long. Source: "Binary tensor data extension" of the protocol.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.dtypes.elements import Element
from irexec.errors import InputError, UnsupportedError
from irexec.ir.dims import has_room
from irexec.messages import counted, cut, listed

TOO_NEW = {"kserve": (3, 14), "ray": (3, 15)}
"""The first Python for which a library has no package. The extras in pyproject.toml have the same versions as
markers."""
DATATYPES = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8,
    "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip
"""The types of elements by the protocol's names, in its order."""
_NAMES = {np.dtype(dtype): name for name, dtype in DATATYPES.items()}
_BYTES = "BYTES"
_LENGTH = 4
_AXES = 64
"""The maximum rank of an array of NumPy."""


def not_importable(library: str, extra: str, error: ImportError) -> UnsupportedError:
    """The reason why a library is missing, and the cure.

    Args:
        library: its name on PyPI.
        extra: the extra of irexec that installs the library.
        error: the error of its import.
    """
    here, too_new = sys.version_info[:2], TOO_NEW[library]
    if isinstance(error, ModuleNotFoundError) and here >= too_new:
        return UnsupportedError(
            f"this needs {library}, which has no package for Python {here[0]}.{here[1]}: use Python 3.11 to "
            f"{too_new[0]}.{too_new[1] - 1}"
        )
    if isinstance(error, ModuleNotFoundError):
        what = "" if find_spec(library) is None else f" with {error.name}"
        return UnsupportedError(f"this needs {library}{what}, which is not installed: pip install 'irexec[{extra}]'")
    return UnsupportedError(f"{library} is installed, and cannot be imported: {error}")


def datatype_of(like: Element | np.dtype | None) -> str:
    """The protocol's name of a type: BYTES for strings, the name of the carrier for a type that NumPy lacks."""
    if isinstance(like, Element):
        like = None if like.kind == "string" else like.carrier
    return _BYTES if like is None else _NAMES.get(np.dtype(like), _BYTES)


def sizes_of(port: Port) -> list[int]:
    """The sizes of a port as the protocol has them: -1 for one that is not known, and for an unknown rank."""
    return [-1] if port.shape is None else [size if isinstance(size, int) else -1 for size in port.shape]


def array_of(tensor: Any, port: Port | None) -> np.ndarray:
    """A tensor of a request as an array; its elements are bytes or a list, which may be nested.

    Args:
        tensor: an InferInput of the kserve SDK.
        port: the input of the model; None if no input has the tensor's name, which is refused later.

    Raises:
        InputError: the elements do not fit the tensor's type and shape, or the type is not the input's.
    """
    what, kind, shape = f"input {tensor.name!r}", tensor.datatype, list(tensor.shape)
    if kind != _BYTES and kind not in DATATYPES:
        raise InputError(f"{what} has datatype {kind!r}, expected {', '.join(DATATYPES)} or {_BYTES}")
    if port is not None and port.element is not None and kind != datatype_of(port.element):
        raise InputError(f"{what} has datatype {kind}, the model expects {datatype_of(port.element)} ({port})")
    if len(shape) > _AXES or not all(type(size) is int and 0 <= size < 1 << 31 for size in shape):
        raise InputError(
            f"{what} has shape [{listed([repr(size) for size in shape], 8)}], expected at most {_AXES} sizes of 0 and "
            "more"
        )
    if not has_room(shape):
        raise InputError(f"{what} has shape {shape}, which is too large for an array")
    raw = tensor._raw_data
    values = _from_bytes(what, kind, raw) if raw is not None else _from_list(what, kind, tensor.data)
    if values.size != math.prod(shape):
        raise InputError(f"{what} has {counted(values.size, 'element')}, and shape {shape} has {math.prod(shape)}")
    return values.reshape(shape)


def _from_bytes(what: str, kind: str, raw: bytes) -> np.ndarray:
    if kind == _BYTES:
        return _texts(what, _pieces(what, raw))
    dtype = np.dtype(DATATYPES[kind]).newbyteorder("<")
    if len(raw) % dtype.itemsize:
        raise InputError(
            f"{what} has {counted(len(raw), 'byte')}, expected a multiple of the {dtype.itemsize} of {kind}"
        )
    if kind == "BOOL":
        return np.frombuffer(raw, np.uint8) != 0
    return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="), copy=False)


def _pieces(what: str, raw: bytes) -> list[bytes]:
    """Strings, each after its length in four bytes."""
    found: list[bytes] = []
    start = 0
    while start < len(raw):
        size = int.from_bytes(raw[start : start + _LENGTH], "little")
        end = start + _LENGTH + size
        if start + _LENGTH > len(raw) or end > len(raw):
            raise InputError(f"{what} ends within element {len(found)}")
        found.append(raw[start + _LENGTH : end])
        start = end
    return found


def _from_list(what: str, kind: str, data: Any) -> np.ndarray:
    if data is None:
        raise InputError(f"{what} has no data")
    if kind == _BYTES:
        return _texts(what, _flat(what, data))
    flat = _flat(what, data)
    # NumPy would reserve the memory of the longest text for every element.
    if not set(map(type, flat)) <= {bool, int, float}:
        raise InputError(f"{what} has data that is not numbers")
    if not flat:
        return np.zeros(0, DATATYPES[kind])
    values = np.array(flat)
    if values.dtype == object:
        raise InputError(f"{what} has an integer of more than 64 bits")
    with np.errstate(all="ignore"):
        typed: np.ndarray = values.astype(DATATYPES[kind])
        same = typed.astype(values.dtype) == values
    if typed.dtype.kind != "f" and not same.all():
        raise InputError(f"{what} has the value {values[~same].ravel()[0]}, which {kind} cannot hold")
    return typed.ravel()


def _flat(what: str, data: Any) -> list[Any]:
    """The innermost elements of nested lists, level by level: nesting may exceed the depth of Python calls."""
    values = list(data)
    while any(isinstance(each, list) for each in values):
        if not all(isinstance(each, list) and len(each) == len(values[0]) for each in values):
            raise InputError(f"{what} has data whose lists are not all of one length and depth")
        values = list(chain.from_iterable(values))
    return values


def _texts(what: str, values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), object)
    for i, value in enumerate(values):
        try:
            found[i] = value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError as error:
            raise InputError(f"{what} has text that is not UTF-8: {error.reason}") from None
        if not isinstance(found[i], str) or not is_text(found[i]):
            raise InputError(f"{what} has the value {cut(repr(value), 80)}, expected text")
    return found


def is_text(value: str) -> bool:
    """False for half of a pair of surrogates: it is not a character, and no answer can have it."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


_HEADER = "inference-header-content-length"
_SIZE = "binary_data_size"


def infer_request(body: bytes, headers: Mapping[str, str], model: str) -> Any:
    """The InferRequest of the SDK for the body of a request; without the header for binary tensors all of it is JSON.

    Raises:
        InputError: the body is not a request of the protocol.
    """
    from kserve import InferRequest
    from kserve.protocol.infer_type import RequestedOutput

    length = headers.get(_HEADER, str(len(body)))
    if not (length.isascii() and length.isdigit() and int(length) <= len(body)):
        raise InputError(
            f"the header {_HEADER} is {length[:40]!r}, expected at most the {counted(len(body), 'byte')} of the request"
        )
    request = _parsed(body[: int(length)])
    inputs, start = [], int(length)
    for tensor in _objects(request, "inputs"):
        made, start = _input(tensor, body, start)
        inputs.append(made)
    if start != len(body):
        raise InputError(f"the request has {len(body) - start} bytes after those of its tensors")
    outputs = [
        RequestedOutput(_text(output, "name"), output.get("parameters"))
        for output in _objects(request, "outputs", optional=True)
    ]
    return InferRequest(
        model, inputs, request.get("id"), parameters=request.get("parameters"), request_outputs=outputs or None
    )


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        request = json.loads(text.decode())
        if rb"\ud" in text.lower():
            # Half of a pair of surrogates is not a character, and no answer can have it.
            json.dumps(request, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise InputError("the request is not an object of JSON")
    if not isinstance(request.get("id", ""), str) or not isinstance(request.get("parameters") or {}, dict):
        raise InputError("the id of the request is not text, or its parameters are not an object")
    return request


def _objects(request: dict[str, Any], key: str, optional: bool = False) -> list[dict[str, Any]]:
    found = request.get(key, [] if optional else None)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"the request has no {key}, or they are not a list of objects")
    if not all(isinstance(each.get("parameters") or {}, dict) for each in found):
        raise InputError(f"the parameters of one of the {key} are not an object")
    return found


def _input(tensor: dict[str, Any], body: bytes, start: int) -> tuple[Any, int]:
    """An input, and the offset of the next input's bytes."""
    from kserve import InferInput

    shape, parameters = tensor.get("shape"), tensor.get("parameters") or {}
    name, datatype = _text(tensor, "name"), _text(tensor, "datatype")
    if not isinstance(shape, list):
        raise InputError(f"input {name!r} has no shape, or it is not a list")
    made = InferInput(name, shape, datatype, tensor.get("data"), parameters)
    if _SIZE not in parameters:
        if not isinstance(made.data, list):
            raise InputError(f"input {name!r} has no data, or it is not a list")
        return made, start
    size = parameters[_SIZE]
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(body) - start:
        raise InputError(
            f"input {name!r} has a {_SIZE} of {size!r}, and {len(body) - start} bytes are left in the request"
        )
    made._raw_data = body[start : start + size]
    return made, start + size


def _text(request: dict[str, Any], key: str) -> str:
    found = request.get(key)
    if not isinstance(found, str):
        raise InputError(f"one of the tensors of the request has no {key}, or it is not text")
    return found
