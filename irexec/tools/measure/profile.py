"""Where the time of a model goes, and what its layers cost without running them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irexec.compile.memory_limit import MemoryLimit
from irexec.runtime.observation import RunProgress
from irexec.runtime.profile import (
    Profile,
)
from irexec.tools.images.files import Notify
from irexec.tools.measure.trace import check_trace, write_trace
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.input_sources import InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.run_options import SessionOptions
from irexec.tools.run.shapes import read_with_shapes, reshape


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(SessionOptions):
    """How a model is run.

    Attributes:
        runs: number of measured runs.
        trace: the file to write every time to.
    """

    runs: int = 20
    trace: str | None = None


def profile(
    path: str,
    sources: Sequence[InputSource],
    options: ProfileOptions,
    notify: Notify,
    progress: RunProgress | None = None,
) -> Profile:
    """Run a model several times and measure every step.

    Args:
        path: the .xml or .onnx.
        sources: the inputs; random values without any.
        options: options of the run.
        notify: called with notes for the user.
        progress: called after each run with its fraction of all runs.

    Raises:
        InputError: a name, shape, type or file does not fit the model, or a file that is read would be overwritten.
        ModelError, NodeError, UnsupportedError: the model cannot be read or run, or the trace cannot be written.
        RunTimeoutError: the runs take longer than the timeout.
    """
    if options.trace is not None:
        check_trace(options.trace, files_read(path, options.weights, sources))
    model = read_with_shapes(path, options.weights, options.shapes or {}, given=GivenInputs(sources), mmap=options.mmap)
    if options.trace is not None:
        check_trace(options.trace, external_files(model))
    reshape(model, options.shapes or {})
    compiled = options.compiled(model)
    inputs = sample_inputs(sources, compiled.inputs, options.seed, notify, MemoryLimit(options.max_memory))
    found = compiled.profile(inputs, options.runs, timeout=options.timeout, progress=progress)
    if options.trace is not None:
        write_trace(options.trace, found, Path(path).name)
    return found
