"""The contents of a report: everything known of a model, and why the rest is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from irexec.analysis.execution_graph import is_execution_graph
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference
from irexec.errors import InputError, IrexecError
from irexec.ir.findings import Findings
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Node
from irexec.messages import silent
from irexec.runtime.profile import Profile
from irexec.tools.arrays.histogram import Histogram, constant_histogram
from irexec.tools.inspect.cost import CostReport, cost
from irexec.tools.inspect.memory import MemoryReport, PlannedMemory, memory
from irexec.tools.inspect.precision import PrecisionReport, precision
from irexec.tools.inspect.summary import LayerLine, Summary, layer_lines, summarize

T = TypeVar("T")

BINS = 24
"""Intervals of a histogram of weights."""

Advance = Callable[[float], None]


@dataclass(frozen=True)
class Measured:
    """Measurements of a run: the time of the steps, and the memory of the compiled model."""

    profile: Profile
    memory: PlannedMemory


@dataclass
class Contents:
    """Everything known of a model.

    Attributes:
        model: the model, reshaped as asked for.
        lines: every layer, those of bodies after the layer that has them.
        nodes: the same layers as the graph has them.
        findings: about the model.
        inference: facts of its values.
        summary, cost, memory, precision: of the model; None for an execution graph, or where ``notes`` say why.
        histograms: of each constant, or why it cannot be read; None if weights are not to be read.
        measured: None unless the model was run.
        notes: missing parts of the report, and the reasons.
    """

    model: Model
    lines: list[LayerLine]
    nodes: list[Node]
    findings: Findings
    inference: Inference
    summary: Summary | None = None
    cost: CostReport | None = None
    memory: MemoryReport | None = None
    precision: PrecisionReport | None = None
    histograms: dict[Node, Histogram | str] | None = None
    measured: Measured | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def is_execution_graph(self) -> bool:
        """Whether it is what OpenVINO ran, and not a model."""
        return is_execution_graph(self.model)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(node.constant.size for node in self.nodes if node.constant is not None)

    def attempt(self, what: str, find: Callable[[], T]) -> T | None:
        """The result of a function; None, with a note, where the model does not allow it."""
        try:
            return find()
        except IrexecError as error:
            self.notes.append(f"{what}: {error}")
            return None


@collection_paused()
def contents_of(model: Model, findings: Findings, inference: Inference, *, advance: Advance = silent) -> Contents:
    """Everything that can be said of a model, however damaged, without running it or reading its weights.

    Args:
        model: any model, or an execution graph.
        findings: about it.
        inference: facts of its values.
        advance: called after each part of the work with its fraction of the whole.
    """
    found = Contents(model, layer_lines(model, inference.facts), list(model.walk()), findings, inference)
    advance(0.4)
    if not found.is_execution_graph:
        found.summary = found.attempt("summary", lambda: summarize(model, inference))
        advance(0.2)
        found.cost = found.attempt("cost", lambda: cost(model, inference))
        advance(0.2)
        found.memory = found.attempt("memory", lambda: memory(model, compiled=False, inference=inference))
        found.precision = found.attempt("element types", lambda: precision(model, inference))
    advance(0.2)
    return found


@collection_paused()
def read_weights(found: Contents, advance: Advance = silent) -> None:
    """Add the histograms of all constants; ``advance`` is called with the bytes of each.

    What is read goes with the last reference to it, block by block: no cycles hold it.
    """
    found.histograms = {}
    for node in found.nodes:
        if node.constant is None:
            continue
        try:
            # Damaged weights may be signalling NaN, or too large for a sum.
            with np.errstate(all="ignore"):
                found.histograms[node] = constant_histogram(node, BINS)
        except IrexecError as error:
            found.histograms[node] = str(error)
        advance(node.constant.size)


def measure(found: Contents, run: Callable[[Model], tuple[Profile, PlannedMemory]]) -> None:
    """Run the model and add what that shows; a note says why it cannot be run.

    Raises:
        InputError: of what the caller gave for the run.
    """
    try:
        found.measured = Measured(*run(found.model))
    except InputError:
        raise
    except IrexecError as error:
        found.notes.append(f"times: the model cannot be run: {error}")


def file_size(path: Path | None) -> int | None:
    """Bytes of a file; None if there is none."""
    try:
        return None if path is None else path.stat().st_size
    except OSError:
        return None
