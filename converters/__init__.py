"""Converters to OpenVINO IR: ``convert("model.onnx")`` returns a Model that irexec runs and writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
        InputError: there is no such input, or a shape is invalid.
    """
    try:
        from converters.onnx.translate import translate
    except ImportError as error:
        raise ConversionError(
            f"conversion needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return translate(model, dict((inputs or {}).items()), strict, warn or _warn)


def examine(model: str | Path | bytes | Any, inputs: NamedShapes | None = None) -> Any:
    """Convert an ONNX model as far as possible, and report everything that is wrong with it: converters.onnx.examine.

    Raises:
        ConversionError: the model cannot be read at all, or the package onnx is not installed.
        InputError: there is no such input, or a shape is invalid.
    """
    try:
        from converters.onnx import examine
    except ImportError as error:
        raise ConversionError(
            f"conversion needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return examine.examine(model, dict((inputs or {}).items()))


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


__all__ = ["convert"]
