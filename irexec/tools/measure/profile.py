"""Where the time of a model goes, and what its layers cost without running them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irexec.analysis.cost import Cost, Costs
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.html import display, element, sections
from irexec.messages import counted
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.profile import (
    Grouping,
    Profile,
    ProfileRow,
    SortKey,
    by_type,
    cost_line,
    rows_table,
    sorted_rows,
    static_rows,
)
from irexec.runtime.run_progress import RunProgress
from irexec.tools.images.files import Notify
from irexec.tools.measure.trace import check_trace, write_trace
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.input_sources import InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.run_options import SessionOptions
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(SessionOptions):
    """How a model is run.

    Attributes:
        runs: how many runs are measured.
        trace: the file to write every time to.
    """

    runs: int = 20
    trace: str | None = None


@dataclass(frozen=True, repr=False)
class StaticProfile:
    """What the layers of a model cost.

    Attributes:
        layers: a row for each layer, without times.
        types: a row for each type of operation, that with the most MACs first.
        cost: of the whole model.
        unknown: the names of layers whose MACs depend on shapes that are not known.
    """

    layers: tuple[ProfileRow, ...]
    types: tuple[ProfileRow, ...]
    cost: Cost
    unknown: tuple[str, ...]

    def rows(self, by: Grouping, sort: SortKey | None = None) -> list[ProfileRow]:
        """The rows of layers or types, sorted as those of a Profile."""
        return sorted_rows(self.types if by == "type" else self.layers, sort)

    def __repr__(self) -> str:
        return f"<StaticProfile: {cost_line(self.cost)} in {counted(len(self.layers), 'layer')}>"

    def _repr_html_(self) -> str:
        tables = sections(*((f"by {by}", rows_table(self.rows(by, "macs"), by)) for by in _GROUPINGS))
        return display("cost", element("p", cost_line(self.cost)), tables)


_GROUPINGS: tuple[Grouping, ...] = ("type", "layer")


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
        sources: where the inputs come from; all are random without any.
        options: how it is run.
        notify: called with what the user might not expect.
        progress: called after each run with its part of all of them.

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
    compiled = CompiledModel(
        model,
        threads=options.threads,
        optimize=options.optimize,
        precision=options.precision,
        max_memory=options.max_memory,
    )
    inputs = sample_inputs(sources, compiled.inputs, options.seed, notify, MemoryLimit(options.max_memory))
    found = compiled.profile(inputs, options.runs, timeout=options.timeout, progress=progress)
    if options.trace is not None:
        write_trace(options.trace, found, Path(path).name)
    return found


def static_profile(path: str, weights: str | None = None, shapes: Shapes | None = None) -> StaticProfile:
    """What the layers cost, from their shapes alone; without the .bin, where shapes do not follow from others, as they are declared.

    Raises:
        InputError: there is no input of a name in ``shapes``.
        ModelError: the model cannot be read.
    """
    model = read_with_shapes(path, weights, shapes or {})
    refuse_execution_graph(model)
    reshape(model, shapes or {}, tolerant=True)
    costs = Costs(model, infer_shapes(model, tolerant=True).facts)
    rows = static_rows(costs)
    unknown = tuple(row.name for row in rows if row.macs is None)
    return StaticProfile(tuple(rows), tuple(by_type(rows)), costs.of(costs.layers), unknown)
