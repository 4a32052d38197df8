"""Converters to OpenVINO IR: ``convert("model.onnx")`` gives a Model that irexec runs and writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irexec.analysis.model import Model
from irexec.errors import ConversionError, InputError, OpError
from irexec.ir.dims import PartialShape
from irexec.ir.shape_text import ShapeLike, parse_named_shape


def convert(model: str | Path | Any, *, inputs: Mapping[str, ShapeLike] | None = None) -> Model:
    """Convert an ONNX model to IR.

    Args:
        model: the path of an .onnx file, or an onnx.ModelProto.
        inputs: shapes for inputs by name, in place of those that the model declares, as Model.reshape takes them.

    Raises:
        ConversionError: the file cannot be read, is no sound model, or has operators that cannot be
            translated, each of which is named; or the package onnx is not installed.
        InputError: there is no such input, or a shape is none.
    """
    try:
        from converters.onnx.translate import translate
    except ImportError as error:
        raise ConversionError(f"converting needs the package onnx (pip install 'irexec[onnx]'): {error}") from None
    return translate(model, dict(inputs or {}))


def parse_input_spec(text: str) -> tuple[str, PartialShape]:
    """A name and a shape from text such as ``x[1,3,?,2..8]`` or ``x=1,3,?,2..8``.

    Raises:
        InputError: the text is not of that form.
    """
    try:
        return parse_named_shape(text)
    except OpError as error:
        raise InputError(str(error)) from None


__all__ = ["convert", "parse_input_spec"]
