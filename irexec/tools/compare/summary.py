"""The summary of a comparison: results from runs in which nothing else is observed, notes, and the first divergence:
the first tensor that differs, its layer, the inputs of the layer, and differences of the layer itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.open_sizes import what_hides
from irexec.dtypes.elements import BF16, F16, Element
from irexec.errors import IrexecError
from irexec.ir.constants import Constant, constant_value
from irexec.ir.graph import Node, Value
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare.blame import known_reasons
from irexec.tools.compare.comparison import ComparedLayer, Comparison, Divergence, InputRow, Suspect, TensorRow
from irexec.tools.compare.corrections import with_corrections
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import COMMUTATIVE, MOVES, differing_attributes, layer, with_same_elements
from irexec.tools.compare.pairing import is_suspicious
from irexec.tools.compare.rows import Found, Rows, row_of
from irexec.tools.engines.runtimes import Runtime, runtime_kind
from irexec.tools.observing.sides import AnySide, ModelSide, RecordedSide

_FUSED = 80.0
"""Minimum SNR in decibels of a difference by rounding, for a result that agrees if all tensors are observed: fused
layers round less often."""
_TELLING = 8
"""Minimum number of elements of an unknown constant that is named; exporters fold smaller ones in many ways."""
_SMALL_SET = 5
"""Maximum number of layers that are named together with layers that move axes."""
_FAR = 100
"""Maximum number of tensors in front of a divergence that are examined."""
_EXACT = Tolerance(rtol=0.0, atol=0.0)
_FOLDED = Tolerance(rtol=1e-6, atol=1e-6, scaled=True)
"""Tolerance of constants that two exporters folded in different orders."""


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
    paired = set() if is_isolated else {pair.b for pair in rows.pairs.tensors}
    missing = (one.name for one in evidence.b.results if one in paired and one not in rows.by_value)
    shapes = {name: array.shape for name, array in evidence.inputs.b[0].items()}
    are_halves = isinstance(evidence.a, RecordedSide) and evidence.a.are_halves
    return Comparison(
        a=_label(evidence.a, evidence.run_a),
        b=_label(evidence.b, evidence.run_b),
        tolerance=str(evidence.tolerances.of(F16) if are_halves else evidence.tolerances.of()),
        rows=tuple(found.row for found in rows.found),
        first=first,
        independent=layers,
        results=results,
        missing_results=tuple(dict.fromkeys(missing)),
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
            if not row.agreement.agrees:
                # Whether it only follows is judged by its row among the observed tensors.
                observed = rows.by_value[pair.b].row
                is_rounding = True if (row.agreement.snr or 0.0) >= _FUSED else None
                row = replace(row, follows=is_rounding if observed.agreement.agrees else observed.follows)
            found.append(row)
    return tuple(found)


def _computes_in(half: Element, side: AnySide) -> bool:
    """Whether a computed result of a model is declared as this type."""
    return isinstance(side, ModelSide) and any(
        value.element_type is half
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


def first_divergence(evidence: Evidence, rows: Rows) -> tuple[Divergence | None, tuple[ComparedLayer, ...]]:
    """The first divergence, and all layers that differ by themselves: their inputs agree, or equal inputs have another
    result."""
    differing = [found for found in rows.found if found.row.is_fault]
    if not differing:
        return None, ()
    found = independent(evidence, rows)
    first = found[0] if found else min(differing, key=lambda one: one.order)
    layers = {one.value.node: layer(one.value, one.path) for one in found}
    between = {
        node: one
        for node in _in_front(first, evidence, rows)
        if (one := suspect(node.outputs[0], first, evidence, rows)).differs
        or (node not in evidence.b.of_shapes and node.type != "ShapeOf")
    }
    described = Divergence(first.row, suspect(first.value, first, evidence, rows), tuple(between.values()))
    tried = with_corrections(
        described, first, evidence, rows, lambda node: suspect(node.outputs[0], first, evidence, rows)
    )
    return tried, tuple(layers.values())


def independent(evidence: Evidence, rows: Rows) -> list[Found]:
    """Tensors that differ by themselves, see ``first_divergence``: those of certain pairs first, then guesses.

    Two exporters compute shapes in different layers: integers from shapes that are guessed to be a pair come last.
    Tensors of one rank have the order of their computation.
    """
    differing = [found for found in rows.found if found.row.is_fault]
    found = [
        one
        for one in differing
        # Equal inputs have another result in the layer; layers inside its bodies are named in its place.
        if evidence.options.isolate
        or (one.row.follows is False and not one.value.node.bodies)
        or _is_independent(one, rows)
    ]

    def doubt(one: Found) -> int:
        return is_suspicious(one) * (2 if one.value.node in evidence.b.of_shapes else 1)

    return sorted(found, key=lambda one: (doubt(one), one.order))


def without_reordering(evidence: Evidence, rows: Rows) -> Rows:
    """Name the layer that changed an order of axes, in place of the layer that reads the tensor.

    The reading layer computes the same function as A's layer, but on A's values with axes in another order. The layer
    that changed the order is at fault if it also differs from A's layer by itself; else both may be at fault.
    """
    moved: dict[Value, Found] = {}
    innocent: set[Value] = set()
    for found in rows.outer if rows.pairs.orders else ():
        if not found.row.is_fault:
            continue
        # Whether the shape that a Reshape or Broadcast reads is right, since its result has A's shape.
        has_right_shape = found.value.node.type in ("Reshape", "Broadcast") and found.row.agreement.largest is not None
        if not has_right_shape and suspect(found.value, found, evidence, rows).differs:
            continue
        sources, between = rows.ancestors.of(found.value)
        first = _reordering(sources, rows)
        is_direct = not between or (
            has_right_shape and evidence.b.of_shapes.issuperset(node for node in between if node.type != "ShapeOf")
        )
        are_known = all(rows.by_value[one].row.agreement.agrees for one in (*sources, *first))
        if is_direct and are_known and first and all(suspect(one, found, evidence, rows).differs for one in first):
            innocent.add(found.value)
            moved |= dict.fromkeys(first, found)
    marked = []
    for one in rows.found:
        if one.value in moved:
            order, reader = list(rows.pairs.orders[one.value]), moved[one.value].row.b.name
            one = one.at_fault(f"values of A with axes in the order {order}, which {reader!r} reads in A's order")
        elif one.value in innocent:
            one = replace(one, row=replace(one.row, follows=True))
        marked.append(one)
    return rows.with_found(marked)


def _reordering(sources: Sequence[Value], rows: Rows) -> list[Value]:
    """The tensors from which on A has another order of axes, up to some sources.

    Their layers move elements, or read tensors in A's order, such as a product with swapped operands.
    """
    found: dict[Value, None] = {}
    orders = rows.pairs.orders
    waiting, seen = [value for value in sources if value in orders], set(sources)
    while waiting:
        value = waiting.pop()
        reordered = [source for source in rows.ancestors.of(value)[0] if source in orders]
        if value.node.type in MOVES or not reordered:
            found[value] = None
        waiting += [source for source in reordered if source not in seen]
        seen.update(reordered)
    return list(found)


def _is_independent(found: Found, rows: Rows) -> bool:
    """Whether all inputs of a tensor agree, in the run in which it first differs."""
    sources = [rows.by_value[value] for value in rows.ancestors.of(found.value)[0]]
    return all(source.row.agreement.agrees or source.order >= found.order for source in sources)


def _in_front(first: Found, evidence: Evidence, rows: Rows) -> list[Node]:
    """Layers between the agreeing tensors and one that differs, and layers that moved axes in front of them.

    Beside a tensor of f32 they include layers whose tensors of f16 or bf16 agree by the tolerance of these types alone.
    """
    sources, between = rows.ancestors.of(first.value)
    nodes = [*between, *(value.node for value in _reordering(sources, rows))]
    nodes += [node for node in _coarser(first.value, sources, rows) if node not in nodes]
    if first.row.agreement.largest is not None:
        return _misread(first, evidence, rows) or nodes
    more = [node for node in _axes_from(first, evidence, rows) if node not in nodes]
    return [*nodes, *more[: max(0, _SMALL_SET - 1 - len(nodes))]]


def _coarser(value: Value, sources: Sequence[Value], rows: Rows) -> list[Node]:
    """The layers of f16 or bf16 in front of a value of another type, as long as these are few."""
    found: dict[Node, None] = {}
    waiting = [] if value.element_type in HALVES else [*sources]
    while waiting and len(found) < _SMALL_SET - 1:
        source = waiting.pop(0)
        node = source.node
        if source.element_type in HALVES and node not in found and node.type not in ("Parameter", "Constant"):
            found[node] = None
            waiting += rows.ancestors.of(source)[0]
    return list(found)


def _axes_from(first: Found, evidence: Evidence, rows: Rows) -> list[Node]:
    """Layers that may have given a tensor its shape, which is another one in A; the nearest first.

    These are layers that move axes, and layers unlike those of A. Other layers pass axes on. Layers whose tensors have
    A's shape come last; the search ends at such a layer if the first layer has a difference of its own.
    """
    inputs, own = first.value.node.inputs, suspect(first.value, first, evidence, rows)
    constants = {i for i, value in enumerate(inputs) if value is not None and value.node.constant is not None}
    is_told = bool(own.attributes or own.unknown_constants) or any(
        one.agrees is False and one.index in constants for one in own.inputs
    )
    near: dict[Node, None] = {}
    far: dict[Node, None] = {}
    waiting, seen = deque(inputs), set[Value]()
    while waiting and len(near) < _SMALL_SET and len(seen) < _FAR:
        value = waiting.popleft()
        if value is None or value in seen or value.node.type in ("Parameter", "Constant", "ShapeOf", "ReadValue"):
            continue
        seen.add(value)
        node, found = value.node, rows.by_value.get(value)
        moves = node.type in MOVES
        is_as_in_a = found is not None and found.row.agreement.agrees and not found.is_reshaped
        if is_as_in_a and value not in rows.pairs.orders:
            if is_told:
                continue
            if moves:
                far[node] = None
        elif moves or found is None or suspect(value, first, evidence, rows).differs:
            near[node] = None
        waiting.extend(node.inputs[:1] if moves else node.inputs)
    return [*near, *far]


def _misread(first: Found, evidence: Evidence, rows: Rows) -> list[Node]:
    """Layers in front of an input at which A's layer reads a tensor that B does not have.

    One of them may be at fault: B lacks a layer after it, or a layer such as a Transpose moves elements otherwise. The
    same holds if B has the tensor, but in front of such a layer.
    """
    node, pairs = first.value.node, rows.pairs
    of_a = pairs.layer_of_a(node)
    if of_a is None or of_a.type != node.type:
        return []
    paired = set(pairs.by_b.values())
    found: dict[Node, None] = {}
    for value, theirs in zip(node.inputs, of_a.inputs, strict=False):
        partner = None if value is None else pairs.by_b.get(value)
        if theirs is None or partner is None or partner in of_a.inputs or _are_equal_in_a(theirs, partner, evidence):
            continue
        moved = with_same_elements(value)
        if theirs not in paired or any(pairs.by_b.get(one) is theirs for one in moved[1:]):
            found |= dict.fromkeys(one.node for one in moved)
    return list(found)[: _SMALL_SET - 1]


def _are_equal_in_a(one: Value, other: Value, evidence: Evidence) -> bool:
    """Whether two tensors of A have the same elements in one order, as those in front of and after a Reshape."""
    arrays = evidence.tensors("A", [one, other]).arrays
    if one not in arrays or other not in arrays:
        return False
    runs = zip(arrays[one], arrays[other], strict=True)
    return all(np.array_equal(mine.ravel(), theirs.ravel()) for mine, theirs in runs)


def suspect(value: Value, first: Found, evidence: Evidence, rows: Rows) -> Suspect:
    """The layer of a value of B as a suspect, with inputs as they are up to the first tensor that differs."""
    node = value.node
    of_a = rows.pairs.layer_of_a(node)
    theirs = [*_inputs_of_a(node, of_a, rows), *[None] * len(node.inputs)]
    inputs = (
        _input(i, value, source, first, evidence, rows)
        for i, (value, source) in enumerate(zip(node.inputs, theirs, strict=False))
        if value is not None
    )
    unknown = evidence.unknown_constants.get(node, ())
    constants = (one for one in unknown if one.constant is not None and one.constant.count >= _TELLING)
    return Suspect(
        layer(value, evidence.b.paths[node]),
        tuple(inputs),
        differing_attributes(of_a, node),
        tuple(one.name for one in constants),
    )


def _inputs_of_a(node: Node, of_a: Node | None, rows: Rows) -> list[Value | None]:
    """The inputs of A's layer in B's order: two exporters may write a sum with its operands exchanged."""
    inputs = [] if of_a is None else list(of_a.inputs)
    if node.type not in COMMUTATIVE or len(inputs) != len(node.inputs):
        return inputs
    partners = [None if value is None else rows.pairs.by_b.get(value) for value in node.inputs]
    is_exchanged = any(one is not None and one is other for one, other in zip(partners, inputs[::-1], strict=True))
    return inputs[::-1] if is_exchanged else inputs


def _input(i: int, value: Value, source: Value | None, first: Found, evidence: Evidence, rows: Rows) -> InputRow:
    """An input of a layer beside the same input of A's layer."""
    name = value.name
    constant, of_a = value.node.constant, None if source is None else source.node.constant
    if constant is not None and of_a is not None:
        agreement = _constants(constant, of_a, name)
        return InputRow(i, name, agreement.agrees, agreement.message)
    partner = rows.pairs.by_b.get(value)
    if source is not None and partner is not None and partner is not source:
        return InputRow(i, name, False, f"A reads {source.name!r} here")
    if value.node.type == "Parameter":
        outer = evidence.b.paths[value.node] == ""
        # The input of a body is a tensor outside of the body.
        return InputRow(i, name, True if outer else None, "an input of the model" if outer else "an input of the body")
    if evidence.options.isolate and partner is not None:
        return InputRow(i, name, True, "as in A")
    found = rows.by_value.get(value)
    if found is None:
        return InputRow(i, name, None, "")
    if found.order > first.order:
        # It differs only later: in another run or iteration.
        return InputRow(i, name, True, "")
    return InputRow(i, name, found.row.agreement.agrees, found.row.agreement.message)


def _constants(constant: Constant, other: Constant, name: str) -> Agreement:
    if constant.element is other.element and constant.shape == other.shape:
        try:
            if np.array_equal(constant.raw, other.raw):
                return Agreement(name, True, 0.0, "")
        except IrexecError as error:
            return Agreement(name, False, None, str(error))
    values, theirs = (_without_leading_ones(constant_value(one)) for one in (constant, other))
    agreement = agreement_of(name, values, theirs, _EXACT, "A")
    if not agreement.agrees and agreement_of(name, values, theirs, _FOLDED, "A").agrees:
        return Agreement(
            name, True, agreement.largest, f"{counted(agreement.differing, 'value')} of {values.size} by rounding"
        )
    if agreement.agrees and constant.element is not other.element:
        return Agreement(name, True, 0.0, f"of type {constant.element}, A has {other.element}")
    return agreement


def _without_leading_ones(array: np.ndarray) -> np.ndarray:
    """An array without the axes of size 1 in front, which broadcasting adds anyway."""
    first = next((i for i, size in enumerate(array.shape) if size != 1), array.ndim)
    return array.reshape(array.shape[first:])
