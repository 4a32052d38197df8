"""Reading a model: which of three kinds a file is, and the reader of each.

An ONNX model is told by its name or first bytes, an IR of version 2 to 7 by its version; anything else is an IR.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from irexec import io
from irexec.analysis.model import Model
from irexec.errors import ConversionError, ConversionWarning, InputError
from irexec.io.onnx_bytes import has_onnx_name, is_onnx
from irexec.io.sources import Source, read_source
from irexec.ir.findings import Finding
from irexec.ir.shape_text import NamedShapes


def read_model(
    model: io.ModelSource, weights: io.WeightsSource = None, *, mmap: bool = True,
    progress: Callable[[float], None] | None = None, inputs: NamedShapes | None = None,
) -> Model:  # fmt: skip
    """Read an IR, or an ONNX model, which is converted to one in memory; weights stay in their files until they are
    used.

    An IR of version 2 to 7, which Model Optimizer wrote until 2020, becomes a model of version 11 with the lines of its
    file; what is read otherwise than it was meant is a ConversionWarning.

    A path that ends in .onnx is that of an ONNX model. Anything else is one if its bytes begin as those of an ONNX
    model, with which no XML can begin. The model has ONNX's names; each warning of the conversion is a
    ConversionWarning.

    The .bin is open as long as the model needs it: a file that replaces it is not seen. If it is changed itself before
    it is mapped, using its weights raises ModelError; after that, results may change, and if it becomes shorter, the
    system ends the process.

    Args:
        model: the .xml or .onnx: its path, its bytes, or a file open for reading bytes. External data of ONNX must be
            in the folder of the file, so that only a path will do.
        weights: the .bin: its path, its bytes, an array or a file; by default the file of the same name beside the
            .xml.
        mmap: map the .bin. Otherwise it is read into memory at once, so that what happens to it later has no effect.
        progress: called with the fraction of the model that each step has read.
        inputs: shapes of inputs of an ONNX model by name (None is the only input), in place of the declared ones:
            some nodes can be converted only if the sizes of their inputs are known. An IR is reshaped when it
            has been read.

    Raises:
        ModelError: the .xml cannot be read or is not an IR, or the .bin that is named cannot be read. Damage that
            leaves a graph is kept in ``model.problems`` for ``irexec.validate``, and so is a .bin beside the .xml that
            cannot be read; compile_model refuses both.
        ConversionError: the ONNX model cannot be read or converted, or the package onnx is not installed; layers of an
            IR of version 2 to 7 cannot be translated.
        InputError: an argument is of another type, or is for a .bin, which an ONNX model does not have, or for an ONNX
            model.
    """
    source = _source(model)
    if isinstance(source, Source):
        if inputs:
            raise InputError(
                f"{source.name} is an IR: it takes other shapes of inputs when it has been read, by reshape"
            )
        try:
            return Model.of(io.read(source, weights, mmap=mmap, progress=progress))
        except io.OldVersionError as error:
            old = error
        return _upgraded(old, progress)
    _refuse_bin(source.name, weights, mmap)
    found = _converted(source, inputs, strict=False)
    if progress is not None:
        progress(1.0)
    return found


def convert(model: io.ModelSource, *, inputs: NamedShapes | None = None, strict: bool = False) -> Model:
    """Convert an ONNX model to IR.

    Each warning of the conversion is a ConversionWarning. ``save_model`` writes the IR.

    Args:
        model: the .onnx: its path, its bytes, or a file open for reading bytes. External data must be in the folder of
            the file, so that only a path will do.
        inputs: shapes of inputs by name (None is the only input), in place of the shapes that the model declares.
        strict: refuse a model whose declared types or shapes contradict its nodes, in place of a warning for each.

    Raises:
        ConversionError: the model cannot be read or converted, or the package onnx is not installed.
        InputError: the model is not an ONNX model, an input does not exist, or a shape is invalid.
    """
    source = _source(model)
    if isinstance(source, Source):
        raise InputError(f"{source.name} is not an ONNX model")
    return _converted(source, inputs, strict=strict)


def read_tolerant(
    model: io.ModelSource, weights: io.WeightsSource = None, *, mmap: bool = True,
    progress: Callable[[float], None] | None = None, inputs: NamedShapes | None = None,
) -> tuple[Model | None, list[Finding]]:  # fmt: skip
    """Read a model as read_model does, but report all that is wrong with an ONNX model instead of raising the first of
    it.

    Args:
        model, weights, mmap, progress: as for read_model.
        inputs: shapes of inputs of an ONNX model, for one that cannot be converted without them; an IR ignores them.

    Returns:
        The model, None if it cannot be converted; and what is found of an ONNX model. What is wrong with an IR is found
        later.

    Raises:
        ModelError, ConversionError, InputError: as for read_model, of an ONNX model only if it cannot be read at all.
    """
    source = _source(model)
    if isinstance(source, Source):
        try:
            return Model.of(io.read(source, weights, mmap=mmap, progress=progress)), []
        except io.OldVersionError as error:
            old = error
        examined = _legacy_reader().examine(old.source, old.weights, progress=progress)
        # Findings of a model are its problems, which validate reports.
        return examined.model, [] if examined.model is not None else list(examined.findings)
    _refuse_bin(source.name, weights, mmap)
    converters = _converters(source.name)
    examined = converters.examine(source.content)
    if examined.model is None and inputs:
        examined = converters.examine(source.content, inputs)
    if progress is not None:
        progress(1.0)
    return examined.model, list(examined.findings)


def read_old(
    model: str | os.PathLike[str], weights: io.WeightsSource = None, *, progress: Callable[[float], None] | None = None
) -> tuple[Model, list[Finding], str]:
    """Read an IR of version 2 to 7, with what is found in it.

    Args:
        model, weights, progress: as for read_model.

    Returns:
        The model; the findings that do not keep it from being translated; and the version of the file and who wrote it.

    Raises:
        InputError: the file is not an IR of version 2 to 7.
        ModelError, ConversionError: it cannot be read; see read_model.
    """
    source = _source(model)
    if isinstance(source, Source):
        try:
            found = io.read(source, weights, progress=progress)
        except io.OldVersionError as old:
            examined = _legacy_reader().translated(old.source, old.weights, progress=progress)
            return examined.model, list(examined.findings), examined.writer
        raise InputError(f"{source.name} is an IR of version {found.version}, expected one of version 2 to 7")
    raise InputError(f"{source.name} is an ONNX model, expected an IR of version 2 to 7")


class _OnnxSource(NamedTuple):
    """An ONNX model: what messages call it, and its path, or its bytes if it has none."""

    name: str
    content: Path | bytes


def _source(model: io.ModelSource) -> Source | _OnnxSource:
    """Source of a model; see read_model for what decides which of the two it is.

    Raises:
        ModelError: it cannot be read.
        InputError: it is not a path, bytes or a file.
    """
    if isinstance(model, str | os.PathLike) and has_onnx_name(model):
        return _OnnxSource(str(model), Path(model))
    source = read_source(model)
    return _OnnxSource(source.name, source.path or source.data) if is_onnx(source.data) else source


def _refuse_bin(name: str, weights: io.WeightsSource, mmap: bool) -> None:
    """Raise InputError for what is given for the .bin of an ONNX model."""
    if weights is not None or not mmap:
        what = "that could be read at once" if weights is None else "whose weights could be given"
        raise InputError(f"{name} is an ONNX model: it has no .bin {what}")


def _converted(source: _OnnxSource, inputs: NamedShapes | None, *, strict: bool) -> Model:
    """The IR of an ONNX model, for a public function that was called with its path."""
    texts: list[str] = []
    try:
        found: Model = _converters(source.name).convert(source.content, inputs=inputs, strict=strict, warn=texts.append)
    except ConversionError as error:
        if str(error).startswith(source.name):
            raise
        raise ConversionError(f"{source.name}: {error}", unsupported=error.unsupported) from error
    for text in texts:
        # At the line that calls the public function.
        warnings.warn(f"{source.name}: {text}", ConversionWarning, stacklevel=3)
    return found


def read_onnx_tensor(path: Path) -> np.ndarray:
    """A tensor of ONNX that is a file of its own, such as ``input_0.pb``.

    Raises:
        ConversionError: it cannot be read, or the package onnx is missing.
        UnsupportedError: IR does not have its type.
    """
    _converters(str(path))
    from converters.onnx.tensors import read_tensor

    return read_tensor(path)


def _converters(name: str) -> Any:
    """The converters, for the model that messages call ``name``; raises ConversionError without the package onnx."""
    try:
        import converters.onnx.translate
    except ImportError as error:
        raise ConversionError(
            f"{name}: an ONNX model needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return converters


def _upgraded(old: io.OldVersionError, progress: Callable[[float], None] | None) -> Model:
    """The model of an IR of version 2 to 7, for a public function that was called with its path."""
    texts: list[str] = []
    found: Model = _legacy_reader().read(old.source, old.weights, progress=progress, warn=texts.append)
    for text in texts:
        warnings.warn(text, ConversionWarning, stacklevel=3)
    return found


def _legacy_reader() -> Any:
    """The reader of IR of versions 2 to 7."""
    import converters.legacy_ir.read

    return converters.legacy_ir.read
