"""A report of a model: one page with everything that can be said of it, to send to somebody."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference
from irexec.analysis.validate import infer_all, validate
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.display import Content, Text, sections_of
from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.ir.findings import Finding, Findings, counts_of
from irexec.ir.graph import ModelGraph
from irexec.messages import amount, counted, silent
from irexec.reading import read_tolerant
from irexec.records import Report
from irexec.runtime.profile import Profile
from irexec.tools.graph import draw, graph_fragment
from irexec.tools.images import Notify
from irexec.tools.inspect.memory import PlannedMemory, planned_memory
from irexec.tools.report.contents import Contents, contents_of, measure, read_weights
from irexec.tools.report.page import Page, report_page
from irexec.tools.run.input_sources import InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.shapes import SessionOptions, reshape

SUFFIXES = (".html", ".htm")

Progress = Callable[[str, float], AbstractContextManager[Callable[[float], None]]]
"""Shows the work in progress: the text, and the amount of all of it; what it gives is called with each amount that is
done."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SessionOptions):
    """The contents of a report.

    Attributes:
        title: its heading; None is the name of the file.
        has_weights: read all constants and show their statistics and histograms.
        has_graph: draw the graph.
        is_run: run the model and show the times.
        inputs: for the runs; all are random without any.
        runs: number of measured runs.
        made_by: the program that made it.
    """

    title: str | None = None
    has_weights: bool = True
    has_graph: bool = True
    is_run: bool = False
    inputs: tuple[InputSource, ...] = ()
    runs: int = 20
    made_by: str = "irexec"


@dataclass(frozen=True)
class WrittenReport(Report):
    """A report that was written.

    Attributes:
        path: the file.
        bytes: its size.
        layers: number of layers of the model, bodies included.
        findings: their number by severity.
        sections: the ids of the parts of the page, in their order.
        notes: missing parts of the report, and the reasons.
    """

    path: str
    bytes: int
    layers: int
    findings: Mapping[str, int]
    sections: tuple[str, ...]
    notes: tuple[str, ...]


@sections_of.register
def _(written: WrittenReport) -> list[Content]:
    others = [
        f"{counted(count, name) if name != 'info' else f'{count:,} info'}" for name, count in written.findings.items()
    ]
    found = ", ".join(others) or "no findings"
    return [
        Text(f"{written.path}: {amount(written.bytes)}, {counted(written.layers, 'layer')}, {found}", "title"),
        [f"not in the report: {note}" for note in written.notes],
    ]


@contextmanager
def _silent(text: str, total: float) -> Iterator[Callable[[float], None]]:
    yield lambda amount: None


def report(
    model: ModelLike,
    output: str | Path,
    options: ReportOptions | None = None,
    *,
    notify: Notify = silent,
    progress: Progress = _silent,
) -> WrittenReport:
    """Write a report of a model, however damaged it is.

    Args:
        model: a model, an execution graph, or what read_model takes.
        output: the .html.
        options: the contents of the report.
        notify: called with what the user might not expect.
        progress: shows how far the work is.

    Raises:
        InputError: the output is not an .html or would overwrite a file that is read; an input or shape does not fit
            the model.
        ModelError, UnsupportedError, ConversionError: the model cannot be read at all, or the report cannot be written.
    """
    options = options or ReportOptions()
    name = _name(model)
    check_output(
        output, files_read(name, options.weights, options.inputs) if isinstance(model, str | os.PathLike) else {}
    )
    read: Model | None
    findings: list[Finding]
    with progress(f"reading {name}", 1) as advance:
        if isinstance(model, ModelGraph):
            read, findings = as_model(model), []
        else:
            read, findings = read_tolerant(
                model, options.weights, mmap=options.mmap, progress=advance, inputs=options.shapes
            )
    if read is None:
        # An ONNX model.
        found = Contents(Model.of(ModelGraph(path=Path(name))), [], [], Findings(findings), Inference())
        found.notes.append(
            "layers, costs, memory and weights: the model cannot be converted to IR, the findings say why"
        )
    else:
        check_output(output, external_files(read))
        found = _contents(read, findings, options, notify, progress)
    made = _page(found, name, options)
    data = made.text.encode()
    with new_file(output) as file:
        file.write(data)
    counts = counts_of(found.findings)
    return WrittenReport(str(output), len(data), len(found.nodes), counts, made.sections, tuple(found.notes))


def _name(model: ModelLike) -> str:
    """The name of a model in messages and in the title."""
    if isinstance(model, ModelGraph):
        return str(model.path) if model.path is not None else model.name or "model"
    return os.fspath(model) if isinstance(model, str | os.PathLike) else "model"


def page_of(model: ModelLike, options: ReportOptions | None = None) -> str:
    """The HTML of the report of a model, or of what read_model takes; see ``report``."""
    model = as_model(model)
    options = options or ReportOptions()
    return _page(_contents(model, [], options, silent, _silent), _name(model), options).text


def _page(found: Contents, name: str, options: ReportOptions) -> Page:
    graph = _graph(found, options.has_graph)
    return report_page(found, options.title or Path(name).name, _origin(options.made_by), graph)


def _graph(found: Contents, is_wanted: bool) -> Content:
    """The drawing of the graph; None, with a note, unless it is wanted."""
    if not is_wanted:
        found.notes.append("graph: switched off")
    if not is_wanted or not found.nodes:
        return None
    profile = None if found.measured is None else found.measured.profile

    def drawn() -> Content:
        drawing = draw(found.model, cluster=None, findings=found.findings, profile=profile, inference=found.inference)
        return graph_fragment(drawing, id="drawing")

    return found.attempt("graph", drawn)


def check_output(output: str | Path, read: Mapping[str, str]) -> None:
    """Raise InputError unless a report can be written there without overwriting a file that is read."""
    if Path(output).suffix.lower() not in SUFFIXES:
        raise InputError(f"-o {output}: a report is written to an .html")
    check_file("-o", Path(output), read)


def _contents(
    model: Model, before: list[Finding], options: ReportOptions, notify: Notify, progress: Progress
) -> Contents:
    """The contents of the report of a model; ``before`` are the findings of reading it."""
    with progress("checking", 1) as advance:
        inference = infer_all(model)
        findings = Findings([*before, *validate(model, inference=inference, progress=lambda part: advance(part / 2))])
        if options.shapes:
            reshape(model, options.shapes, tolerant=True)
            inference = infer_all(model)
        found = contents_of(model, findings, inference, advance=lambda part: advance(part / 2))
    if options.has_weights:
        with progress("reading weights", found.weight_bytes) as advance:
            read_weights(found, advance)
    if options.is_run:
        with progress("running", 0):
            measure(found, lambda one: _run(one, options, notify))
    return found


def _run(model: Model, options: ReportOptions, notify: Notify) -> tuple[Profile, PlannedMemory]:
    compiled = options.compiled(model)
    inputs = sample_inputs(options.inputs, compiled.inputs, options.seed, notify, MemoryLimit(options.max_memory))
    profile = compiled.profile(inputs, options.runs, timeout=options.timeout)
    return profile, planned_memory(compiled.plan_for({name: array.shape for name, array in inputs.items()}))


def _origin(made_by: str) -> str:
    """The program and the day of the report; SOURCE_DATE_EPOCH sets the day, so that a report can be reproduced."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = time.gmtime(int(epoch)) if epoch.isdecimal() else time.localtime()
    return f"Made by {made_by} on {time.strftime('%Y-%m-%d', moment)}"
