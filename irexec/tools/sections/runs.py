"""Compiled models, sessions, and the arrays of their runs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from irexec.display import Column, Content, Definitions, HistogramChart, Table, Text, sections_of
from irexec.messages import counted
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.inputs import NamedArrays, Outputs
from irexec.runtime.session import Session, StepRun
from irexec.runtime.variables import VariableStates
from irexec.tools.sections.models import ports_table

_BINS = 30
_SAMPLE = 1_000_000
"""The maximum number of elements, evenly spaced, that statistics of an array are computed of: a display takes no
time."""


@sections_of.register
def _(compiled: CompiledModel) -> Iterable[Content]:
    model = compiled.model
    general = {
        "layers": f"{len(model.nodes):,}",
        "threads": str(compiled.threads),
        "variables": ", ".join(compiled.program.variables),
    }
    ports = ports_table({"input": compiled.inputs, "output": compiled.outputs})
    return [Text(f"{model.name or 'model'}, compiled", "title"), Definitions(general), ports]


@sections_of.register
def _(session: Session) -> Iterable[Content]:
    name = session.program.model.name or "a model"
    return [Text(f"session of {name}", "title"), arrays_table(session.variables.items())]


@sections_of.register
def _(outputs: Outputs) -> Iterable[Content]:
    return [Text(counted(len(outputs), "output"), "title"), arrays_table(outputs.items())]


@sections_of.register
def _(variables: VariableStates) -> Iterable[Content]:
    title = Text("variables" if variables else "no variables yet", "title")
    return [title, arrays_table(variables.items())]


@sections_of.register
def _(step: StepRun) -> Iterable[Content]:
    general = {
        "layers": ", ".join(step.layers),
        "algorithm": step.algorithm,
        "time": f"{step.seconds * 1e3:.3g} ms",
    }
    outputs = [(f"output {index}", array) for index, array in enumerate(step.outputs)]
    return [Text(step.operation, "title"), Definitions(general), arrays_table(outputs)]


def arrays_table(arrays: NamedArrays) -> Table:
    """A row for each array: its type, shape, statistics and histogram; of a long array those of a million elements."""
    numbers = [Column(title, kind="number") for title in ("minimum", "maximum", "mean", "NaN, infinities")]
    columns: list[Column | str] = [
        "name",
        Column("type", kind="code"),
        Column("shape", kind="code"),
        *numbers,
        Column("histogram", kind="chart"),
    ]
    return Table(columns, [_row(name, array) for name, array in arrays])


def array_histogram(array: np.ndarray) -> HistogramChart | None:
    """The histogram of the finite elements of an array; None if it has none, or all are equal."""
    finite, _ = _finite(array)
    return _histogram(finite, float(finite.min()), float(finite.max())) if finite.size else None


def _row(name: str, array: np.ndarray | None) -> list[Content]:
    if array is None:
        return [name, "not computed", "", "", "", "", "", ""]
    general = [name, "string" if array.dtype == object else str(array.dtype), f"[{','.join(map(str, array.shape))}]"]
    finite, others = _finite(array)
    if finite.size == 0:
        return [*general, "", "", "", others or "", ""]
    low, high = float(finite.min()), float(finite.max())
    return [*general, low, high, float(finite.mean()), others or "", _histogram(finite, low, high)]


def _finite(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The finite elements of a sample of an array, and the number of its other elements."""
    if array.size == 0 or array.dtype.kind not in "fiub":
        return np.zeros(0), 0
    # The conversion of a signalling NaN is an invalid operation.
    with np.errstate(all="ignore"):
        values = array.reshape(-1)[:: math.ceil(array.size / _SAMPLE)].astype(np.float64)
        finite = values[np.isfinite(values)]
    return finite, values.size - finite.size


def _histogram(values: np.ndarray, low: float, high: float) -> HistogramChart | None:
    """None where all values are the same, or their range is more than a float holds."""
    if not 0 < high - low < math.inf:
        return None
    # By hand: NumPy's refuses ranges that are too narrow for its bins.
    bins = np.minimum(((values - low) / (high - low) * _BINS).astype(np.intp), _BINS - 1)
    return HistogramChart(np.bincount(bins, minlength=_BINS).tolist(), low, high)
