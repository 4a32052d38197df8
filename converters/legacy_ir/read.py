"""Reading a file of version 2 to 7 as a model of version 11."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from converters.legacy_ir.graph import GraphTranslation
from converters.legacy_ir.layer import Job
from converters.legacy_ir.pre_process import mean_subtraction
from converters.legacy_ir.syntax import OldModel, read_syntax
from converters.legacy_ir.writer import written_by
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.analysis.version_10 import output_name
from irexec.dtypes.elements import I32, I64
from irexec.errors import ConversionError, OpError
from irexec.io.constants import weights_problems
from irexec.io.payload import set_metadata
from irexec.io.sources import Source
from irexec.io.weights_file import Weights
from irexec.io.xml import Progress
from irexec.ir import legacy_codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Value
from irexec.messages import counted

_SHOWN = 8


@dataclass(frozen=True)
class Examination:
    """The model and the findings of a file.

    Attributes:
        model: the model; None if a layer cannot be translated. Its problems are the warnings and
            infos, and the finding of an unreadable .bin.
        findings: all findings, in the order of the file.
        writer: who wrote the file, for messages.
    """

    model: Model | None
    findings: tuple[Finding, ...]
    writer: str


def read(source: Source, weights: Weights, *, progress: Progress | None = None, warn: Callable[[str], object]) -> Model:
    """Read a file.

    Args:
        source: the .xml.
        weights: the .bin.
        progress: called with the fraction of the .xml that each step has read.
        warn: called with one sentence for each warning.

    Raises:
        ModelError: the file is not XML, or not an IR of version 2 to 7.
        ConversionError: layers cannot be translated; the message has each with its line.
    """
    found = translated(source, weights, progress=progress)
    for finding in found.findings:
        if finding.severity == "warning":
            warn(f"{finding.at(source.name)}: {finding.message}")
    assert found.model is not None
    return found.model


def translated(source: Source, weights: Weights, *, progress: Progress | None = None) -> Examination:
    """The examination of a file that can be translated.

    Raises:
        ModelError, ConversionError: as for read.
    """
    found = examine(source, weights, progress=progress)
    if found.model is None:
        errors = [finding for finding in found.findings if finding.severity == "error"]
        unsupported = all(one.code in (legacy_codes.UNKNOWN_LAYER, legacy_codes.NO_EQUIVALENT) for one in errors)
        raise ConversionError(f"{source.name} ({found.writer}): {_listed(errors)}", unsupported=unsupported)
    return found


def _listed(errors: list[Finding]) -> str:
    texts = [f"{one.at()}: {one.message}" if one.at() else one.message for one in errors[:_SHOWN]]
    more = len(errors) - len(texts)
    return "; ".join(texts) + (f"; and {counted(more, 'further error')} (irexec validate lists all)" if more else "")


@collection_paused()
def examine(source: Source, weights: Weights, *, progress: Progress | None = None) -> Examination:
    """Translate a file as far as possible, and find everything that is wrong with it at once.

    Raises:
        ModelError: the file is not XML, or not an IR of version 2 to 7.
    """
    old = read_syntax(source, weights, progress)
    builder, job = Builder(old.graph.name), Job(old.version, weights)
    main = GraphTranslation(old.graph, builder, job)
    try:
        main.mean = mean_subtraction(old)
    except OpError as error:
        job.fail(in_model(legacy_codes.DOES_NOT_FIT, str(error)))
    main.translate()
    if old.has_statistics:
        job.findings.append(in_model(legacy_codes.IGNORED_STATISTICS, "the statistics of activations are ignored"))
    _results(main)
    model = None if job.has_failed else _model(old, main, source, weights)
    return Examination(model, tuple(sorted(job.findings, key=lambda one: one.line or 0)), written_by(old))


def _results(main: GraphTranslation) -> None:
    """A Result for each port that no layer reads; of i64, engines give i32."""
    for port in main.unread():
        value = main.values.get(port)
        if value is not None:
            value = _given_out(main.builder, value, output_name(port))
            # The declared sizes are checked at the port of the layer.
            main.builder.result(value).ports[0].fact = main.builder.fact(value)


def _given_out(builder: Builder, value: Value, name: str) -> Value:
    if builder.fact(value).element is not I64:
        return value
    builder.rename(value.node, f"{name}/i64")
    value.names = []
    converted: Value = builder.emit("Convert", value, name=name, names=[name], destination_type=I32)
    return converted


def _model(old: OldModel, main: GraphTranslation, source: Source, weights: Weights) -> Model:
    builder, findings = main.builder, main.job.findings
    builder.drop_unused()
    main.restore_ids()
    model = builder.model()
    unreadable = [node for node in model.walk() if node.constant is not None and not node.constant.is_readable]
    findings += weights_problems(weights, unreadable)
    model.problems = list(findings)
    model.path, model.origin = source.path, written_by(old)
    if weights.path is not None and weights.defect is None:
        # Not bin_path: blobs may be in any order, leave gaps and share bytes.
        model.external_files = (weights.path,)
    set_metadata(model, elements=old.metadata)
    return model
