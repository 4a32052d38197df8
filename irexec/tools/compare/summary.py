"""The summary of a comparison: results from runs in which nothing else is observed, notes, and known reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.open_sizes import what_hides
from irexec.dtypes.elements import BF16, F16, Element
from irexec.tools.compare.comparison import Comparison, TensorRow
from irexec.tools.compare.divergence import first_divergence
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.known import known_reasons
from irexec.tools.compare.rows import Found, Rows, row_of
from irexec.tools.engines.runtimes import Runtime, runtime_kind
from irexec.tools.observing.sides import AnySide, ModelSide, RecordedSide

_FUSED = 80.0
"""Minimum SNR in decibels of a difference by rounding, for a result that agrees if all tensors are observed: fused
layers round less often."""


def summary(evidence: Evidence, rows: Rows, layouts: Sequence[str] = ()) -> Comparison:
    """The comparison of two sides.

    Args:
        evidence: both sides.
        rows: the rows, with the verdicts on their layers.
        layouts: sentences about recorded tensors in another layout.

    Raises:
        RunTimeoutError: a run takes longer than the timeout.
    """
    is_isolated = evidence.options.isolate
    results = () if is_isolated else _results(evidence, rows)
    first, layers = first_divergence(evidence, rows)
    shapes = {name: array.shape for name, array in evidence.inputs.b[0].items()}
    are_halves = isinstance(evidence.a, RecordedSide) and evidence.a.are_halves
    return Comparison(
        a=_label(evidence.a, evidence.run_a),
        b=_label(evidence.b, evidence.run_b),
        tolerance=str(evidence.tolerances.of(F16)) if are_halves else evidence.tolerances.text,
        rows=tuple(found.row for found in rows.found),
        first=first,
        independent=layers,
        results=results,
        missing_results=() if is_isolated else _missing_results(evidence, rows),
        uncompared=rows.uncompared,
        notes=(*layouts, *_notes(evidence, rows, results)),
        inputs=shapes,
        runs=evidence.runs,
        isolated=is_isolated,
        whole=evidence.inputs.whole,
        known=known_reasons(evidence, rows.pairs, first, layers, results),
        hidden=what_hides(evidence.b.model, shapes, evidence.facts_b, bool(evidence.options.shapes)),
    )


def _label(side: AnySide, runtime: Runtime | None) -> str:
    if runtime is None:
        return side.label
    return f"{side.label} ({' '.join(filter(None, (runtime.name, runtime.version.split('-')[0])))})"


def _results(evidence: Evidence, rows: Rows) -> tuple[TensorRow, ...]:
    """A row for each result of both models."""
    batch = [pair for pair in rows.pairs.tensors if pair.b in evidence.b.results and pair.b in rows.by_value]
    if not batch:
        return ()
    of_a, of_b = evidence.unobserved([pair.a for pair in batch], [pair.b for pair in batch])
    errors = [*of_a.errors, *of_b.errors]
    if errors and not all(pair.a in of_a.arrays and pair.b in of_b.arrays for pair in batch):
        # With observed tensors, which gave them, the runtime has run another model.
        raise errors[0]
    found = []
    for pair in batch:
        if pair.a in of_a.arrays and pair.b in of_b.arrays:
            row = row_of(evidence, pair, of_a.arrays[pair.a], of_b.arrays[pair.b], rows.are_reordered)[0]
            is_right = row.agreement.agrees
            found.append(row if is_right else replace(row, follows=_follows(row, rows.by_value[pair.b])))
    return tuple(found)


def _follows(row: TensorRow, observed: Found) -> bool | None:
    """Whether a differing result only follows, judged by its row among the observed tensors."""
    if not observed.row.agreement.agrees:
        return observed.row.follows
    return True if (row.agreement.snr or 0.0) >= _FUSED else None


def _missing_results(evidence: Evidence, rows: Rows) -> tuple[str, ...]:
    """Names of the results of both models that no run returned."""
    paired = {pair.b for pair in rows.pairs.tensors}
    wanted = (value for value in evidence.b.results if value in paired and value not in rows.by_value)
    return tuple(dict.fromkeys(value.name for value in wanted))


def _computes_in(half: Element, side: AnySide) -> bool:
    """Whether a computed result of a model is declared as this type."""
    return isinstance(side, ModelSide) and any(
        value.fact is not None and value.fact.element is half
        for node in side.order
        if node.type not in ("Parameter", "Constant", "Result")
        for value in node.outputs
    )


def _notes(evidence: Evidence, rows: Rows, results: Sequence[TensorRow]) -> Iterator[str]:
    """Facts that a reader has to know."""
    a, b, options = evidence.a, evidence.b, evidence.options
    kinds = dict.fromkeys(map(runtime_kind, (options.a_runtime, options.b_runtime)))
    others = [name for name in kinds if name in ("openvino", "onnxruntime")]
    names = " and ".join({"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}[name] for name in others)
    if others:
        yield f"observed tensors change the layers that {names} fuses; results are compared without observation too"
    yield from dict.fromkeys(one.unused for one in (evidence.run_a, evidence.run_b) if one is not None and one.unused)
    if others and options.precision is None and any(_computes_in(half, side) for half in HALVES for side in (a, b)):
        yield f"irexec computes f16 and bf16 in f32, as {names} does; --precision as-written rounds every result"
    if "openvino" in others and _computes_in(BF16, b):
        yield "OpenVINO rounds every bf16 result where the processor can: tensors computed from it have its tolerance"
    if isinstance(a, RecordedSide) and a.are_halves:
        yield "the tensors of A are stored as f16: their tolerance is that of f16"
    if evidence.tolerances.quantised:
        yield "only one of the models is quantised: its tensors agree in a signal-to-noise ratio, not value by value"
    agree = {found.row.b.tensor: found.row.agreement.agrees for found in rows.found}
    for row in results:
        if not row.agreement.agrees and agree.get(row.b.tensor):
            yield (
                f"result {row.b.tensor!r} agrees when every tensor is observed and differs when none is: "
                "fused layers are the reason"
            )
    if results and all(row.agreement.agrees for row in results) and not rows.agree:
        yield "the results agree: the difference does not reach any of them"
    for found in rows.found:
        if not found.value.node.bodies or found.row.agreement.agrees:
            continue
        inner = [other for other in rows.found if other.path.startswith(f"{found.value.node.name}/")]
        if inner and all(other.row.agreement.agrees for other in inner):
            yield (
                f"the tensors inside {found.value.node.name!r} agree when they are observed; "
                "its result without observation differs"
            )
            break
    if evidence.runs > 1:
        yield f"{evidence.runs} runs, one after the other: state goes from run to run"
