"""Models and weights as users pass them: a path, bytes, an array, or an open file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from irexec.errors import InputError, ModelError
from irexec.io.elements import XmlElement
from irexec.io.reading import open_regular
from irexec.io.weights_file import Weights, other_file_message
from irexec.io.xml import Progress, Reader, parse

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
WeightsSource: TypeAlias = ModelSource | np.ndarray | None
_BYTES = (bytes, bytearray, memoryview)
_HINTS = {".bin": " (the weights? the model is the .xml beside them)"}


class Source(NamedTuple):
    """The bytes of a .xml, what messages call it, and its path if it has one."""

    data: bytes
    name: str
    path: Path | None

    def parse(self, opened: Reader, parts: Mapping[str, Reader], progress: Progress | None) -> XmlElement:
        """Parse it as irexec.io.xml.parse does; raises ModelError if it is not XML."""
        other = other_file_message(self.name, self.data[:1024])
        if other is not None:
            raise ModelError(other)
        try:
            return parse(self.data, self.name, opened, parts, progress)
        except ModelError as error:
            hint = "" if self.path is None else _HINTS.get(self.path.suffix.lower(), "")
            if not hint:
                raise
            raise ModelError(f"{error}{hint}") from None


def read_source(model: ModelSource | Source) -> Source:
    """The bytes of a .xml, or of an ONNX model; a Source is one already.

    Raises:
        ModelError: it cannot be read.
        InputError: it is not a path, bytes or a file.
    """
    if isinstance(model, Source):
        return model
    if isinstance(model, _BYTES):
        return Source(bytes(model), "<bytes>", None)
    if hasattr(model, "read"):
        name = getattr(model, "name", None)
        return Source(_read(model, "the model"), name if isinstance(name, str) else "<file>", None)
    path = _path(model, "the model")
    try:
        with open_regular(path) as file:
            return Source(file.read(), str(path), path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}") from None


def weights_of(weights: WeightsSource, beside: Path | None, *, mapped: bool) -> Weights:
    """The weights as given, or the .bin beside a .xml; a file is ``mapped``, or read at once.

    Raises:
        ModelError: the file that is given cannot be read.
        InputError: it is not a path, bytes, an array or a file.
    """
    if weights is None:
        return Weights(None if beside is None else beside.with_suffix(".bin"), mapped=mapped)
    if isinstance(weights, np.ndarray):
        if weights.dtype.hasobject:
            raise InputError("the weights are an array of objects, expected the bytes of a .bin")
        return Weights(data=weights)
    if isinstance(weights, _BYTES):
        return Weights(data=bytes(weights))
    if hasattr(weights, "read"):
        return Weights(data=_read(weights, "the weights"))
    path = _path(weights, "the weights")
    found = Weights(path, mapped=mapped)
    if found.defect is not None:
        owner = "the" if beside is None else f"{beside}: the"
        raise ModelError(f"{owner} weights {str(path)!r} cannot be read: {found.defect}")
    return found


def _path(given: object, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"{what} is a {type(given).__name__}, expected a path, bytes or a file open for reading bytes")
    if isinstance(given, str) and given.lstrip().startswith("<"):
        raise InputError(f"{what} is XML text, expected a path or bytes: pass text.encode()")
    return Path(given)


def _read(file: Any, what: str) -> bytes:
    try:
        data = file.read()
    except (OSError, ValueError) as error:
        raise ModelError(f"{what} cannot be read from {file!r}: {error}") from None
    if not isinstance(data, bytes):
        raise InputError(f"{what} is a file open for reading text, expected one open for reading bytes")
    return data
