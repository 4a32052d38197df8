"""Reading, converting, checking, saving, compiling and running models: the public functions over io, analysis and
runtime."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from irexec import io
from irexec.analysis.model import Model
from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.analysis.shape_inference import Inference
from irexec.errors import ConversionError, ConversionWarning, InputError
from irexec.io.onnx_bytes import is_onnx
from irexec.io.output_file import check_target
from irexec.io.sources import Source, read_source
from irexec.ir import graph as ir
from irexec.ir.findings import Finding, Findings
from irexec.ir.shape_text import NamedShapes

if TYPE_CHECKING:
    import numpy as np

    from irexec.runtime.compiled_model import CompiledModel
    from irexec.runtime.inputs import Inputs
    from irexec.runtime.outputs import Outputs
    from irexec.runtime.weight_packing import WeightsMode

ModelLike: TypeAlias = ir.ModelGraph | io.ModelSource
"""A model, or what read_model reads one from, such as a path: every function that takes a model takes these."""


def as_model(model: ModelLike) -> Model:
    """The model itself, or the one that is read.

    Raises:
        ModelError, ConversionError: it cannot be read; see read_model.
        InputError: it is neither a model nor what one is read from.
    """
    if isinstance(model, ir.ModelGraph):
        return model if isinstance(model, Model) else Model.of(model)
    return read_model(model)


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


def to_onnx(model: ModelLike, *, opset: int | None = None, strict: bool = False) -> Any:
    """Write a model as ONNX; ``onnx.save`` writes the result to a file.

    Args:
        model: the model, or what one is read from.
        opset: of ai.onnx, from 13 on; the newest whose operators ONNX Runtime has by default.
        strict: refuse a layer whose nodes may give other values, such as random ones.

    Returns:
        An onnx.ModelProto. A model over 2 GB must be saved with external data.

    Raises:
        ConversionError: layers cannot be expressed in ONNX, all of which the attribute ``layers`` of the error has; or
            the package onnx is not installed.
        InputError: the opset is not one that is written.
        ModelError: the model cannot be read, or its graph has a cycle.
    """
    import converters

    return converters.to_onnx(as_model(model), opset=opset, strict=strict)


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


def _upgraded(old: io.OldVersionError, progress: Callable[[float], None] | None) -> Model:
    """The model of an IR of version 2 to 7, for a public function that was called with its path."""
    texts: list[str] = []
    found: Model = _legacy_reader().read(old.source, old.weights, progress=progress, warn=texts.append)
    for text in texts:
        warnings.warn(text, ConversionWarning, stacklevel=3)
    return found


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


def _legacy_reader() -> Any:
    """The reader of IR of versions 2 to 7."""
    import converters.legacy_ir.read

    return converters.legacy_ir.read


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
    if isinstance(model, str | os.PathLike) and os.fspath(model).lower().endswith(".onnx"):
        return _OnnxSource(str(model), Path(model))
    source = read_source(model)
    return _OnnxSource(source.name, source.path or source.data) if is_onnx(source.data) else source


def _refuse_bin(name: str, weights: io.WeightsSource, mmap: bool) -> None:
    """Raise InputError for what is given for the .bin of an ONNX model."""
    for given, what in (
        (weights is not None, "whose weights could be given"),
        (not mmap, "that could be read at once"),
    ):
        if given:
            raise InputError(f"{name} is an ONNX model: it has no .bin {what}")


def _converters(name: str) -> Any:
    """The converters, for the model that messages call ``name``; raises ConversionError without the package onnx."""
    try:
        import converters.onnx.translate
    except ImportError as error:
        raise ConversionError(
            f"{name}: an ONNX model needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return converters


def validate(
    model: ModelLike, *, weights: bool = False, portability: bool = False, release: str | None = None,
    inference: Inference | None = None, progress: Callable[[float], None] | None = None,
) -> Findings:  # fmt: skip
    """All findings about a model, by XML line.

    Args:
        model: a model, however damaged, which is not changed; or what read_model takes. Findings of an ONNX model are
            the reasons that keep it from being converted or, if none do, the findings of the converted IR.
        weights: also read every constant and report NaN and infinities.
        portability: also report, as info, where OpenVINO's own implementations differ from each other or from the
            specification.
        release: also report what this release of OpenVINO, such as "2023.3", does not read, or what a device of the
            newest release refuses: "CPU", "GPU" or "NPU"; of ``portability`` what holds for it.
        inference: the result of ``infer_all`` for the unchanged model; inferred unless given.
        progress: called after shape inference and after each check with its share of the work, a fraction.

    Returns:
        The findings, a list. An execution graph gives one that says so, and nothing else of it is checked.

    Raises:
        InputError: it is neither a model nor what one is read from, or there is no such release or device.
        ModelError, ConversionError: it cannot be read at all.
    """
    read, before = (as_model(model), []) if isinstance(model, ir.ModelGraph) else read_tolerant(model)
    if read is None:
        return Findings(before)
    # Only here, so that a model can be run without loading the checks.
    from irexec.analysis import validate as checking

    found = checking.validate(
        read, weights=weights, portability=portability, release=release, inference=inference, progress=progress
    )
    return Findings([*before, *found])


def save_model(model: ModelLike, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an IR: ``path`` and the .bin beside it, both or neither.

    What was read is written as it was, in the version that it had; what was built is written as version 11.

    Args:
        model: a model, or what read_model takes.
        path: the .xml.
        overwrite: whether a .bin beside the .xml is replaced although no IR of that name exists.

    Raises:
        ModelError: the model or the files cannot be written.
        InputError: it is neither a model nor what one is read from, or the path does not end in .xml. The .bin beside
            it would overwrite a file with constants of the model, such as the external data of an ONNX model, or a file
            without an IR of its name.
    """
    read, target = as_model(model), Path(path)
    check_target(read, target, overwrite)
    io.write(read, target)


def compile_model(
    model: ModelLike,
    bin: io.WeightsSource = None,
    *,
    threads: int | None = None,
    optimize: bool = True,
    weights: WeightsMode = "auto",
    precision: Precision = DEFAULT_PRECISION,
    mmap: bool = True,
    max_memory: int | None = None,
    native: bool = True,
) -> CompiledModel:
    """Make a model ready to run.

    Args:
        model: a model, or what read_model takes. It is copied: changing it afterwards changes nothing.
        bin: the weights as for read_model, where ``model`` is not a model yet.
        threads: number of threads of a step; by default IREXEC_NUM_THREADS, or as many as the process has cores to
            run on.
        optimize: rewrite the graph and use fast kernels; without, only reference kernels run.
        weights: form in which weights of 4 and 8 bits are held. "packed": as they are stored, decompressed block by
            block on every run. "unpacked": as f32, with four to eight times the memory. "auto": as packed by C kernels;
            by NumPy, weights of 4 bits with one byte each, nearly as fast as f32, if that takes at most a quarter of
            the memory that is available when the model is compiled, otherwise packed.
        precision: how f16 and bf16 are computed. "as-written": every result is rounded to its element type. "f32": in
            f32, as OpenVINO's CPU plugin does; what is stored, given out or assigned to a state has the type that it is
            written with. f64, integers and types of 8 bits and less are the same in both.
        mmap: as for read_model, where ``model`` is not a model yet.
        max_memory: bytes of memory that the process may hold, mapped files not counted; None for what the system and
            its control groups have left. Tensors are refused before they are allocated; what a kernel needs besides its
            outputs is not counted before. Where the system does not say what a process holds, each allocation is
            compared with it alone.
        native: use the C kernels, where they were built for this processor; without, NumPy computes everything.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be read or run, or takes more memory than there is.
        InputError: an argument is wrong.
    """
    # Its import takes longer than reading a model, which is all that validate and diff do.
    from irexec.runtime.compiled_model import CompiledModel

    if not isinstance(model, ir.ModelGraph):
        model = read_model(model, bin, mmap=mmap)
    elif bin is not None:
        raise InputError("weights are given for a model that has its own")
    return CompiledModel(
        model,
        threads=threads,
        optimize=optimize,
        weights=weights,
        precision=precision,
        max_memory=max_memory,
        native=native,
    )


def infer(
    model: ModelLike,
    inputs: Inputs = None,
    outputs: Sequence[str | int] | str | int | None = None,
    *,
    threads: int | None = None,
    optimize: bool = True,
    weights: WeightsMode = "auto",
    precision: Precision = DEFAULT_PRECISION,
    max_memory: int | None = None,
    native: bool = True,
    timeout: float | None = None,
    allow_cast: bool = False,
) -> Outputs | dict[str, np.ndarray]:
    """Compile a model and run it once. ``compile_model`` gives a model that runs many times.

    Args:
        model: a model, or what read_model takes.
        inputs: arrays by name or position, a sequence in the order of the inputs, or one array.
        outputs: the tensors to return, any of the graph; see ``CompiledModel.run``. None is all results.
        threads, optimize, weights, precision, max_memory, native: as for compile_model.
        timeout: seconds that the run may take; None for any.
        allow_cast: convert inputs of another element type even where values change.

    Returns:
        Outputs, by name and position; a dict by the keys of ``outputs`` where these are given.

    Raises:
        NodeError, UnsupportedError, ModelError, ConversionError: the model cannot be read or run.
        InputError: an argument is wrong.
        RunTimeoutError: the run takes longer than ``timeout``.
    """
    compiled = compile_model(
        model,
        threads=threads,
        optimize=optimize,
        weights=weights,
        precision=precision,
        max_memory=max_memory,
        native=native,
    )
    return compiled.run(inputs, outputs, allow_cast=allow_cast, timeout=timeout)


class Core:
    """The entry point of OpenVINO's Python, for code that was written for it; the devices are names of this CPU."""

    available_devices = ("CPU",)

    def read_model(self, model: io.ModelSource, weights: io.WeightsSource = None) -> Model:
        """Read a model; see ``read_model``."""
        return read_model(model, weights)

    def compile_model(self, model: ModelLike, device_name: str = "CPU") -> CompiledModel:
        """Make a model ready to run; see ``compile_model``.

        Args:
            model: a model, or what read_model takes.
            device_name: "CPU" or "AUTO".

        Raises:
            InputError: the device is another.
        """
        if device_name not in ("CPU", "AUTO"):
            raise InputError(f"there is no device {device_name!r}: irexec runs models on the CPU")
        return compile_model(model)
