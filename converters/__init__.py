"""Converters: ``convert("model.onnx")`` returns a Model that irexec runs, ``to_onnx(model)`` an ONNX model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irexec.analysis.model import Model
from irexec.errors import ConversionError
from irexec.ir.shape_text import NamedShapes


def convert(
    model: str | Path | bytes | Any, *, inputs: NamedShapes | None = None, strict: bool = False,
    warn: Callable[[str], object] | None = None,
) -> Model:  # fmt: skip
    """Convert an ONNX model to IR.

    Args:
        model: the path of an .onnx file, its bytes, or an onnx.ModelProto.
        inputs: shapes of inputs by name, in place of the declared ones, in the forms that Model.reshape accepts; the
            name None is the only input.
        strict: refuse a model whose declared types or shapes contradict the inferred ones. Otherwise each contradiction
            is a warning. Nothing is compared if ``inputs`` contradicts the declared inputs.
        warn: called with one sentence for each warning; a Python UserWarning unless given.

    Raises:
        ConversionError: the file cannot be read, or is not a valid model; operators cannot be translated, all of which
            the message names; or the package onnx is not installed.
        InputError: the input does not exist, or a shape is invalid.
    """
    with _needs_onnx():
        from converters.onnx.translate import translate
    return translate(model, dict((inputs or {}).items()), strict, warn or _warn)


def examine(model: str | Path | bytes | Any, inputs: NamedShapes | None = None) -> Any:
    """Convert an ONNX model as far as possible, and report everything that is wrong with it: converters.onnx.examine.

    Raises:
        ConversionError: the model cannot be read at all, or the package onnx is not installed.
        InputError: the input does not exist, or a shape is invalid.
    """
    with _needs_onnx():
        from converters.onnx import examine
    return examine.examine(model, dict((inputs or {}).items()))


def to_onnx(model: Model, path: str | Path | None = None, *, opset: int | None = None, strict: bool = False) -> Any:
    """Write a model as ONNX.

    Args:
        model: the model, which is not changed.
        path: the .onnx to write; weights go to ``path.data`` if it would be larger than 2 GB. None writes no file.
        opset: of ai.onnx, from 13 on; the newest whose operators ONNX Runtime has by default.
        strict: refuse a layer whose nodes may give other values, such as random ones.

    Returns:
        An onnx.ModelProto. A model over 2 GB must be saved with external data, as ``path`` does.

    Raises:
        ConversionError: layers cannot be expressed in ONNX, all of which the attribute ``layers`` of the error has; or
            the package onnx is not installed.
        InputError: the opset is not one that is written, or the file would overwrite one of the model.
        ModelError: the graph has a cycle, weights cannot be read, or the file cannot be written.
    """
    with _needs_onnx():
        from converters.ir_to_onnx.export import check_onnx_target, export, save_onnx
    if path is not None:
        check_onnx_target(model, Path(path), "path")
    proto = export(model, opset, strict).proto
    if path is not None:
        save_onnx(proto, Path(path))
    return proto


@contextmanager
def _needs_onnx() -> Iterator[None]:
    """Say what to install where the import inside fails."""
    try:
        yield
    except ImportError as error:
        message = f"conversion needs the package onnx (pip install onnx): {error}"
        raise ConversionError(message, unsupported=True) from None


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


__all__ = ["convert", "to_onnx"]
