"""Checking, saving, compiling and running models: the public functions over reading, analysis and runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from irexec import io
from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference
from irexec.errors import InputError
from irexec.io.writer import check_target
from irexec.ir import graph as ir
from irexec.ir.findings import Findings
from irexec.reading import read_model, read_tolerant

if TYPE_CHECKING:
    from irexec.runtime.compiled_model import CompiledModel
    from irexec.runtime.inputs import Inputs, Outputs
    from irexec.runtime.program import WeightsMode

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


def to_onnx(model: ModelLike, path: str | Path | None = None, *, opset: int | None = None, strict: bool = False) -> Any:
    """Write a model as ONNX.

    Args:
        model: the model, or what one is read from.
        path: the .onnx to write; weights go to ``path.data`` if it would be larger than 2 GB. None writes no file.
        opset: of ai.onnx, from 13 on; the newest whose operators ONNX Runtime has by default.
        strict: refuse a layer whose nodes may give other values, such as random ones.

    Returns:
        An onnx.ModelProto. A model over 2 GB must be saved with external data, as ``path`` does.

    Raises:
        ConversionError: layers cannot be expressed in ONNX, all of which the attribute ``layers`` of the error has; or
            the package onnx is not installed.
        InputError: the opset is not one that is written, or the file would overwrite one of the model.
        ModelError: the model cannot be read, its graph has a cycle, or the file cannot be written.
    """
    import converters

    return converters.to_onnx(as_model(model), path, opset=opset, strict=strict)


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
        InputError: it is neither a model nor what one is read from, or the release or device does not exist.
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
    dynamic_quantization: int | None = None,
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
            written with. f64, integers and types of 8 bits and less are the same in both. "bf16": as "f32", and
            convolutions and matrix products by constants round both operands to bf16 where that is faster; sums are
            f32. C kernels do so on Linux, on processors with AVX-512 BF16; elsewhere it is an InputError.
        mmap: as for read_model, where ``model`` is not a model yet.
        max_memory: bytes of memory that the process may hold, mapped files not counted; None for what the system and
            its control groups have left. Tensors are refused before they are allocated; what a kernel needs besides its
            outputs is not counted before. Where the system does not say what a process holds, each allocation is
            compared with it alone.
        native: use the C kernels, where they were built for this processor; without, NumPy computes everything.
        dynamic_quantization: quantise the rows that are multiplied by weights of 4 and 8 bits in each run, by groups of
            this size, a multiple of 16, as OpenVINO's CPU plugin does by default with 32; None computes with the values
            as they are. It changes results by about 1 %. ``plan`` says where it applies.

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
        dynamic_quantization=dynamic_quantization,
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
    dynamic_quantization: int | None = None,
    timeout: float | None = None,
    allow_cast: bool = False,
) -> Outputs:
    """Compile a model and run it once. ``compile_model`` gives a model that runs many times.

    Args:
        model: a model, or what read_model takes.
        inputs: arrays by name or position, a sequence in the order of the inputs, or one array.
        outputs: the tensors to return, any of the graph; see ``CompiledModel.run``. None is all results.
        threads, optimize, weights, precision, max_memory, native, dynamic_quantization: as for compile_model.
        timeout: seconds that the run may take; None for any.
        allow_cast: convert inputs of another element type even where values change.

    Returns:
        The results by name and position; with ``outputs`` these tensors, by their keys as text and by position.

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
        dynamic_quantization=dynamic_quantization,
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
