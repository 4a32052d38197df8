"""Reading of ONNX models. Files that are not models are reported before anything is built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx.parser
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from converters.onnx.functions import inlined, overriding
from converters.onnx.graphs import every_graph, opsets_of
from converters.onnx.inlining import name_of
from converters.onnx.names import check_written_names, every_name
from converters.onnx.tensors import external_path
from irexec.errors import ConversionError
from irexec.io.onnx_bytes import is_onnx, text_form
from irexec.io.reading import open_regular
from irexec.io.weights_file import other_file_message

NEWEST_OPSET = 28
"""The newest supported opset of ai.onnx."""

# ONNX keeps versions as 64 bits in files and as 32 bits in memory.
_NO_VERSION = 1 << 31

# Bytes that may precede the first tag of XML.
_SPACE = b"\xef\xbb\xbf \t\r\n"
_LOOKED_AT = 4096


Source: TypeAlias = str | Path | bytes | onnx.ModelProto
"""The path of a model, its bytes, or the model."""


def load(source: Source, warn: Callable[[str], object]) -> tuple[onnx.ModelProto, Path | None]:
    """The model with its local functions inlined, and the folder of its external data.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    model, where, folder = parse(source)
    check_readable(model, where)
    for function in overriding(model):
        warn(f"function {name_of(function)!r} of the model is ignored: it has the name of an operator")
    return prepared(model, where, warn), folder


def parse(source: Source) -> tuple[onnx.ModelProto, str, Path | None]:
    """The model as in the file, its name in messages, and the folder of its external data.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return source, "the model", None
    if isinstance(source, bytes):
        return _parsed(BufferedReader(BytesIO(source)), "the model"), "the model", None
    path = Path(source)
    return _read(path), str(path), path.parent


def is_text(path: str | Path) -> bool:
    """Whether a file that can be read is an ONNX model as text."""
    with open_regular(path) as file:
        return text_form(file.peek(_LOOKED_AT)) is not None


def external_files(path: Path) -> list[Path]:
    """The files of external data of a model.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    return external_files_of(_read(path), path.parent)


def external_files_of(model: onnx.ModelProto, folder: Path) -> list[Path]:
    """The files of external data of a model that was read from a file in ``folder``."""
    return sorted(set(_external_files(model.graph, folder)))


def _external_files(graph: onnx.GraphProto, folder: Path) -> Iterator[Path]:
    for inner in every_graph(graph):
        for tensor in inner.initializer if isinstance(inner, onnx.GraphProto) else ():
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                # The conversion reports tensors that cannot be read.
                with contextlib.suppress(ConversionError):
                    yield external_path(tensor, folder)


def _read(path: Path) -> onnx.ModelProto:
    try:
        with open_regular(path) as file:
            return _parsed(file, str(path))
    except OSError as error:
        raise ConversionError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        # The path contains NUL.
        raise ConversionError(f"{str(path)!r} cannot be read: {error}") from None


def _parsed(file: BufferedReader, where: str) -> onnx.ModelProto:
    head = bytes(file.peek(_LOOKED_AT))[:_LOOKED_AT]
    other = other_file_message(where, head)
    if other is not None:
        raise ConversionError(other)
    form = text_form(head)
    if form is not None:
        return _from_text(file.read(), form, where)
    try:
        # onnx.load takes the format, protobuf or JSON, from the name of the file.
        return onnx.load(file, load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise ConversionError(f"{where}: {_defect(head, str(error))}") from None


def _from_text(data: bytes, form: str, where: str) -> onnx.ModelProto:
    """The model in the text format of protobuf, or in ONNX's own syntax."""
    try:
        text = data.decode("utf-8-sig")
        if form == "syntax":
            return onnx.parser.parse_model(text)
        return text_format.Parse(text, onnx.ModelProto())
    except (UnicodeDecodeError, text_format.ParseError, onnx.parser.ParseError, RecursionError) as error:
        # onnx.parser raises bytes.
        first = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else error
        reason = " ".join(str(first).split()) or "it is nested too deeply"
        raise ConversionError(f"{where}: the ONNX model, which is text, is damaged: {reason}") from None


def _defect(head: bytes, reason: str) -> str:
    """Description of a file that cannot be parsed: its first bytes, and the reason of the parser."""
    if head.lstrip(_SPACE).startswith(b"<"):
        return "not an ONNX model: it is XML, probably an IR, which needs no conversion"
    if is_onnx(head):
        return f"the ONNX model is damaged, perhaps cut off: {reason}"
    return f"not an ONNX model: {reason}"


def check_readable(model: onnx.ModelProto, where: str) -> None:
    """Raise ConversionError unless this is an ONNX model; ``where`` begins the message."""
    if not model.HasField("graph"):
        raise ConversionError(f"{where}: not an ONNX model: it has no graph")
    if not len(model.opset_import) and model.ir_version >= 3:
        raise ConversionError(f"{where}: not a valid ONNX model: it imports no opset")
    if any(isinstance(name, bytes) for name in every_name(model)):
        # protobuf returns bytes in place of text that is not UTF-8.
        raise ConversionError(f"{where}: not an ONNX model: a name in it is not UTF-8 text")
    _check_versions(model, where)


def prepared(model: onnx.ModelProto, where: str, warn: Callable[[str], object]) -> onnx.ModelProto:
    """The model with functions inlined as far as possible.

    Raises:
        ConversionError: functions of the model cannot be inlined, or a name cannot be written to IR.
    """
    model = inlined(model, where)
    check_written_names(model.graph, where)
    version = opsets_of(model)[""]
    if version > NEWEST_OPSET:
        warn(f"opset {version} is newer than {NEWEST_OPSET}, the newest supported opset, whose rules are applied")
    return model


def _check_versions(model: onnx.ModelProto, where: str) -> None:
    if not 0 <= model.ir_version < _NO_VERSION:
        raise ConversionError(f"{where}: not a valid ONNX model: its IR version is {model.ir_version}")
    for opset in [*model.opset_import, *(opset for function in model.functions for opset in function.opset_import)]:
        if not 0 <= opset.version < _NO_VERSION:
            raise ConversionError(
                f"{where}: not a valid ONNX model: it imports opset {opset.version} of {opset.domain or 'ai.onnx'}"
            )
