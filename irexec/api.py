"""Reading, saving and compiling models: the public functions over io, analysis and runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from irexec import io
from irexec.analysis.model import Model, check_model
from irexec.errors import InputError
from irexec.io.targets import check_target
from irexec.ir import graph as ir
from irexec.runtime.session import CompiledModel
from irexec.runtime.weights import WeightsMode


def read_model(
    model: io.ModelSource, weights: io.WeightsSource = None, *, mmap: bool = True, progress: Callable[[float], None] | None = None
) -> Model:
    """Read an IR; its weights stay in the .bin until they are used.

    The .bin is open as long as the model needs it: a file that replaces it is not seen. If it is changed itself before it is mapped, using
    its weights raises ModelError; after that, results may change, and if it becomes shorter, the system ends the process.

    Args:
        model: the .xml: its path, its bytes, or a file open for reading bytes.
        weights: the .bin: its path, its bytes, an array or a file; by default the file of the same name beside the .xml.
        mmap: map the .bin. Otherwise it is read into memory at once, so that what happens to it later has no effect.
        progress: is called with each part of the .xml that has been read, as a fraction of it.

    Raises:
        ModelError: the .xml cannot be read or is not an IR, or the .bin that is named cannot be read. Damage that leaves a
            graph is kept in ``model.problems`` for ``irexec.validate``, and so is a .bin beside the .xml that cannot be
            read; compile_model refuses both.
        InputError: an argument is of another type.
    """
    return Model.of(io.read(model, weights, mmap=mmap, progress=progress))


def save_model(model: ir.Model, path: str | Path) -> None:
    """Write an IR: ``path`` and the .bin beside it, both or neither.

    What was read is written as it was, in the version that it had; what was built is written as version 11.

    Raises:
        ModelError: the model or the files cannot be written.
        InputError: it is not a model, the path does not end in .xml, or the .bin beside it would overwrite a file that holds constants of
            the model, such as the external data of an ONNX model.
    """
    check_model(model)
    target = Path(path)
    check_target(model, target)
    io.write(model, target)


def compile_model(
    model: ir.Model | io.ModelSource,
    bin: io.WeightsSource = None,
    *,
    threads: int | None = None,
    optimize: bool = True,
    weights: WeightsMode = "auto",
    mmap: bool = True,
    max_memory: int | None = None,
) -> CompiledModel:
    """Make a model ready to run.

    Args:
        model: a model, or what read_model takes. It is copied: changing it afterwards changes nothing.
        bin: the weights as for read_model, where ``model`` is not a model yet.
        threads: how many threads work on a step; by default IREXEC_NUM_THREADS, or as many as the process has cores to run on.
        optimize: rewrite the graph and use fast kernels; without, only reference kernels run.
        weights: what becomes of weights that are stored as integers of 4 or 8 bits. "packed": they are decompressed block by block
            on every run. "unpacked": they are held as f32, which is faster and takes four to eight times the memory. "auto":
            unpacked if that takes at most a quarter of the memory that is available when the model is compiled.
        mmap: as for read_model, where ``model`` is not a model yet.
        max_memory: bytes of memory that the process may hold, mapped files not counted; None for what the system and its control
            groups have left. Tensors are refused before they are allocated; what a kernel needs besides its outputs is not
            counted before. Where the system does not say what a process holds, each allocation is compared with it alone.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be read or run, or takes more memory than there is.
        InputError: an argument is wrong.
    """
    if not isinstance(model, ir.Model):
        model = read_model(model, bin, mmap=mmap)
    elif bin is not None:
        raise InputError("weights are given for a model that has its own")
    return CompiledModel(model, threads=threads, optimize=optimize, weights=weights, max_memory=max_memory)
