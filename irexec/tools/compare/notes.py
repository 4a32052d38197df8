"""Notes for a reader of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irexec.analysis.f32_arithmetic import HALVES
from irexec.dtypes.elements import BF16, Element
from irexec.tools.compare.comparison import TensorRow
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.rows import Rows
from irexec.tools.compare.sides import AnySide, ModelSide, RecordedSide
from irexec.tools.compare.tolerances import Tolerances
from irexec.tools.engines.runtimes import runtime_kind


def _computes_in(half: Element, side: AnySide) -> bool:
    """Whether a computed result of a model is declared as this type."""
    nodes = (
        (node for node in side.order if node.type not in ("Parameter", "Constant", "Result"))
        if isinstance(side, ModelSide)
        else ()
    )
    return any(value.fact is not None and value.fact.element is half for node in nodes for value in node.outputs)


def notes_on(
    a: AnySide,
    b: ModelSide,
    options: CompareOptions,
    tolerances: Tolerances,
    rows: Rows,
    results: Sequence[TensorRow],
    runs: int,
) -> Iterator[str]:
    """The notes of a comparison."""
    kinds = dict.fromkeys(map(runtime_kind, (options.a_runtime, options.b_runtime)))
    others = [name for name in kinds if name in ("openvino", "onnxruntime")]
    names = " and ".join({"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}[name] for name in others)
    if others:
        yield f"observed tensors change the layers that {names} fuses; results are compared without observation too"
    if others and options.precision is None and any(_computes_in(half, side) for half in HALVES for side in (a, b)):
        yield f"irexec computes f16 and bf16 in f32, as {names} does; --precision as-written rounds every result"
    if "openvino" in others and _computes_in(BF16, b):
        yield "OpenVINO rounds every bf16 result where the processor can: tensors computed from it have its tolerance"
    if isinstance(a, RecordedSide) and a.are_halves:
        yield "the tensors of A are stored as f16: their tolerance is that of f16"
    if tolerances.quantised:
        yield "only one of the models is quantised: its tensors agree in a signal-to-noise ratio, not value by value"
    observed = {found.value: found.row.agreement.agrees for found in rows.found}
    by_name = {found.row.b.tensor: observed[found.value] for found in rows.found}
    hidden = [row for row in results if not row.agreement.agrees and by_name.get(row.b.tensor)]
    for row in hidden:
        yield (
            f"result {row.b.tensor!r} agrees when every tensor is observed and differs when none is: "
            "fused layers are the reason"
        )
    if results and all(row.agreement.agrees for row in results) and not all(observed.values()):
        yield "the results agree: the difference does not reach any of them"
    for found in rows.found:
        inner = (
            [other for other in rows.found if other.path.startswith(f"{found.value.node.name}/")]
            if found.value.node.bodies
            else []
        )
        if inner and not found.row.agreement.agrees and all(other.row.agreement.agrees for other in inner):
            yield (
                f"the tensors inside {found.value.node.name!r} agree when they are observed; "
                "its result without observation differs"
            )
            break
    if runs > 1:
        yield f"{runs} runs, one after the other: state goes from run to run"
