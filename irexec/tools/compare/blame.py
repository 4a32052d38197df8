"""Layers whose tensors differ, and which are not at fault: their inputs differ, or the difference is a known one.

A difference within the tolerance may grow: a Softmax of large values, or a division by a small variance, enlarges the
rounding of earlier layers. The layer at which it leaves the tolerance is not at fault. irexec therefore computes each
layer of B from A's inputs of this layer. If the result agrees with A's tensor, both layers are the same function. The
same is done with B's inputs and B's tensor: the runtime of B may be at fault, irexec's own plans included.

Known differences are those of the table of portability for OpenVINO, and products of bytes in ONNX Runtime. It computes
QLinearConv, QLinearMatMul, MatMulInteger and fused DequantizeLinear and QuantizeLinear with vpmaddubsw on x86
processors without VNNI: neighbouring products of an unsigned and a signed byte are added in 16 bits with saturation
(Intel's manual of instructions). 255 * 127 twice is 64,770, and the sum is 32,767. Weights of 7 bits avoid it: 255 * 64
twice is 32,640.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import differences
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import EDGES, Interval, arithmetic, graph_bounds
from irexec.dtypes.elements import I8, U8
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import ancestors, in_front
from irexec.messages import counted
from irexec.schema.shape_rules import MOVES
from irexec.tools.arrays.agreement import Agreement, Tolerance
from irexec.tools.compare.comparison import ComparedLayer, Divergence, Known, TensorRow
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import layer
from irexec.tools.compare.options import RTOL, Side
from irexec.tools.compare.pairs import Pairs, TensorPair
from irexec.tools.compare.rows import Found, Rows, agreement, rounded_once, tolerance_of
from irexec.tools.engines.runtimes import OWN
from irexec.tools.observing.alone import Alone, arranged
from irexec.tools.observing.sides import Facts, ModelSide, RecordedSide

HIDDEN = 0.03
"""Fraction of the relative tolerance above which the deviation of one layer is a fault within the tolerance.

For f32 this is a deviation of 3e-6, of root mean squares. Two runtimes differ by up to 7e-7 in a Convolution and by 1
to 3e-7 in other layers, measured over 15 networks.
"""
HIDDEN_COARSE = 0.4
"""The same fraction for types coarser than f32, with a tolerance of about ten roundings: the layers that run alone read
inputs rounded to their types, and a runtime in f32 read inputs without this rounding."""
IN_16_BITS = (
    "adds neighbouring products of bytes in 16 bits on x86 processors without VNNI, such as this one: sums beyond "
    "32,767 are cut off"
)
_SEVEN_BITS = 64
"""Largest magnitude of weights of which two products with an unsigned byte fit in 16 bits."""
_KEEP_LEVELS = MOVES | {"MaxPool"}
_VISIBLE = [row for row in DIFFERENCES.values() if row.effect != "fails"]
"""Differences that change tensors."""


@dataclass(frozen=True)
class Trial:
    """A layer that was run alone, from the inputs that one side had.

    Attributes:
        agreement: agreement of the runtime's tensor with irexec's result, for the first side that differs.
        deviation: root mean square of the difference divided by that of the tensor, the larger one of both sides.
        is_fault: whether the deviation is more than rounding.
    """

    agreement: Agreement
    deviation: float
    is_fault: bool


def runs_layers(evidence: Evidence) -> bool:
    """Whether layers are run alone: not for one model in one runtime, nor for metrics of whole tensors."""
    options = evidence.options
    is_one = evidence.is_one_model and options.a_runtime == options.b_runtime
    return not is_one and not options.isolate and evidence.tolerances.metric == "max"


def trials(evidence: Evidence, rows: Rows, asked: Sequence[Found]) -> dict[Value, Trial]:
    """The layers of rows that can be run alone with the tensors of A; each is run once for all that it rests on.

    Empty unless ``runs_layers``.
    """
    if not runs_layers(evidence):
        return {}
    of_value, sources = {pair.b: pair for pair in rows.pairs.tensors}, evidence.sources(rows.pairs)
    # Layers that do not fit A's tensors stay without a trial: B's own tensors alone show no difference to A.
    with_a, with_b = evidence.alone(sources), evidence.alone(one for one in sources if evidence.run_b.gives(one))

    def basis(pair: TensorPair) -> tuple[Any, ...]:
        inputs = with_a.part(pair.b).inputs
        read = ((one, sources.get(one), rows.pairs.orders.get(one), rows.shapes.get(one)) for one in inputs)
        return (pair, *read, with_b.part(pair.b).inputs)

    # A Parameter that is a result has no layer.
    values = [one.value for one in asked if one.value.node.type != "Parameter" and one.value in of_value]
    keys, known = {value: basis(of_value[value]) for value in values}, evidence.trials
    fresh = [value for value in values if keys[value] not in known]
    for batch in evidence.batches(fresh, evidence.facts_b):
        pairs = [of_value[value] for value in batch]
        made = _tried(evidence, rows, pairs, with_a, "A")
        rest = [replace(pair, a=pair.b, order=()) for pair in pairs if pair.b in made]
        for value, other in _tried(evidence, rows, rest, with_b, "B").items():
            made[value] = _worse(made[value], other)
        known.update({keys[value]: made.get(value) for value in batch})
    return {value: one for value in values if (one := known[keys[value]]) is not None}


def _tried(evidence: Evidence, rows: Rows, pairs: Sequence[TensorPair], alone: Alone, side: Side) -> dict[Value, Trial]:
    """The layers of pairs, run from the tensors of one side."""
    pairs = [pair for pair in pairs if not alone.refusal(pair.b)]
    values = [pair.b for pair in pairs]
    given, actual = evidence.given(side, alone.inputs(values), rows.pairs, rows.shapes, [pair.a for pair in pairs])
    runtimes = (evidence.options.a_runtime, evidence.options.b_runtime)
    opened = evidence.opened("reference" if "reference" in runtimes else "irexec")
    expected = alone.observed_each(values, given, evidence.runs, opened).arrays
    found: dict[Value, Trial] = {}
    for pair in pairs:
        for mine, theirs in zip(actual.arrays.get(pair.a, ()), expected.get(pair.b, ()), strict=False):
            mine = arranged(mine, theirs.shape, pair.order)
            one = agreement(evidence, pair, mine, theirs)
            if pair.b.node not in evidence.b.constant:
                # Alone a layer reads tensors that are rounded to 16 bits. The rounding of constants hides their faults.
                one = rounded_once(one, mine, theirs, pair.b)
            trial = Trial(one, _deviation(one), is_more_than_rounding(one, tolerance_of(evidence, pair)))
            found[pair.b] = _worse(found[pair.b], trial) if pair.b in found else trial
    return found


def _worse(one: Trial, other: Trial) -> Trial:
    if one.agreement.agrees is not other.agreement.agrees:
        return other if one.agreement.agrees else one
    return other if other.deviation > one.deviation else one


def is_more_than_rounding(agreement: Agreement, tolerance: Tolerance) -> bool:
    """Whether the result of one layer differs by more than rounding, although it may be within the tolerance."""
    return _deviation(agreement) > tolerance.rtol * (HIDDEN if tolerance.rtol <= RTOL["f32"] else HIDDEN_COARSE)


def _deviation(agreement: Agreement) -> float:
    if agreement.snr is None:
        return 0.0 if agreement.agrees else math.inf
    return float(10.0 ** (-agreement.snr / 20.0))


def without_followers(evidence: Evidence, rows: Rows) -> Rows:
    """The rows with marks at innocent layers: these differ only because the inputs of their layers do.

    If all differing layers are innocent, a layer whose own tensor is within the tolerance may be at fault. Its row then
    counts as differing.
    """
    differing = [one for one in rows.outer if not one.row.agreement.agrees]
    if rows.agree or not runs_layers(evidence):
        return rows
    tried = trials(evidence, rows, differing)
    innocent = {one.value for one in differing if one.value in tried and tried[one.value].agreement.agrees}
    innocent |= _following(differing, innocent, tried, rows)
    if len(innocent) == len(differing):
        innocent -= _of_another_shape(evidence, differing, rows)
    guilty = tried.keys() - innocent
    inside = tuple(f"{value.node.name}/" for value in innocent if value.node.bodies)
    found = []
    for one in rows.found:
        is_innocent = one.value in innocent or one.path.startswith(inside)
        follows = True if is_innocent else False if one.value in guilty else None
        found.append(one if one.row.agreement.agrees else replace(one, row=replace(one.row, follows=follows)))
    if len(innocent) == len(differing):
        before = [one for one in rows.outer if one.row.agreement.agrees and not one.row.agreement.equal]
        hidden = {value: one for value, one in trials(evidence, rows, before).items() if one.is_fault}
        most = max(hidden, key=lambda value: hidden[value].deviation, default=None)
        found = [
            one.at_fault(
                f"values differ by up to {one.row.agreement.largest:g}, within the tolerance, and not by rounding; "
                "later layers enlarge the difference"
            )
            if one.value is most
            else one
            for one in found
        ]
    return rows.with_found(found)


def _of_another_shape(evidence: Evidence, differing: Sequence[Found], rows: Rows) -> set[Value]:
    """The first layers whose tensors have another shape than in A, and from which a result has its shape.

    A trial compares values in A's shape, since exporters keep or remove axes of size 1 in different layers.
    """
    reshaped = {one.value for one in differing if one.has_another_shape}
    waiting = [value for value in reshaped if value in evidence.b.results]
    found, seen = set[Value](), set(waiting)
    while waiting:
        value = waiting.pop()
        sources = [source for source in rows.ancestors.of(value)[0] if source in reshaped]
        if not sources:
            found.add(value)
        waiting += [source for source in sources if source not in seen]
        seen.update(sources)
    return found


def _following(
    differing: Sequence[Found], innocent: set[Value], tried: Mapping[Value, Trial], rows: Rows
) -> set[Value]:
    """Values without a trial whose differing inputs all belong to innocent layers, such as a ReadValue."""
    differ = {one.value for one in differing}
    found: set[Value] = set()
    for one in differing:
        sources = {value for value in rows.ancestors.of(one.value)[0] if value in differ}
        if one.value not in tried and sources and sources <= innocent | found:
            found.add(one.value)
    return found


def known_reasons(
    evidence: Evidence,
    pairs: Pairs,
    first: Divergence | None,
    independent: Sequence[ComparedLayer],
    results: Sequence[TensorRow],
) -> tuple[Known, ...]:
    """Known reasons for a difference; ``first``, ``independent`` and ``results`` are those of Comparison."""
    differing = [row for row in results if row.is_fault]
    if first is None and not differing:
        return ()
    suspects = _suspects(evidence.b, first, independent, differing)
    found = (*_of_openvino(evidence, pairs, suspects), *_of_onnxruntime(evidence, pairs, suspects))
    edge = None if first is None else _at_edges(evidence, pairs, first)
    return found if edge is None else (*found, edge)


def _at_edges(evidence: Evidence, pairs: Pairs, first: Divergence) -> Known | None:
    """A layer that jumps, such as a FakeQuantize, with values in A and in B that both lie in their interval."""
    named = {node.name: node for node in evidence.b.model.nodes if node.type in EDGES}
    node = named.get(first.row.b.name)
    partner = None if node is None else pairs.layer_of_a(node)
    if node is None or partner is None or partner.type != node.type or first.inputs_agree is not True:
        return None
    result = node.outputs[0]
    sides: tuple[tuple[Node, Side], ...] = ((partner, "A"), (node, "B"))
    for own, side in sides:
        asked = [value for value in (*own.inputs, own.outputs[0]) if value is not None]
        found = evidence.tensors(side, [value for value in asked if value.node.constant is None]).arrays
        arrays = [
            found[value][first.row.run - 1] if constant is None else constant_value(constant)
            for value in asked if (constant := value.node.constant) is not None or value in found
        ]  # fmt: skip
        if len(arrays) != len(asked) or len(asked) != len(node.inputs) + 1:
            return None
        sources = {value: array for value, array in zip(node.inputs, arrays, strict=False) if value is not None}
        bound = graph_bounds([node], sources, evidence.facts_b, arithmetic("f32"))[result]
        if not isinstance(bound, Interval) or bound.exact.shape != arrays[-1].shape or bound.outside(arrays[-1]).any():
            return None
    count = counted(first.row.agreement.differing, "value")
    return Known("", layer(result), f"{count} on an edge between two levels: rounding decides, and either is right", "")


def _suspects(
    b: ModelSide, first: Divergence | None, independent: Sequence[ComparedLayer], results: Sequence[TensorRow]
) -> dict[Node, str]:
    """Layers of B that may be the reason, with the paths of their bodies."""
    paths = b.paths
    by_name = {(f"{path}{node.name}", node.id): node for node, path in paths.items()}
    if first is not None:
        layers = [first.suspect.layer, *(one.layer for one in first.between), *independent]
        named = {by_name[key]: paths[by_name[key]] for one in layers if (key := (one.name, one.id)) in by_name}
        # A difference inside a body may be a fault of the layer that runs the body.
        around = (
            node
            for node in paths
            if node.bodies
            for path in named.values()
            if path.startswith(f"{paths[node]}{node.name}/")
        )
        return named | {node: paths[node] for node in around}
    # No observed tensor differs: any layer in front of the results may be the reason.
    before = ancestors(by_name[key] for row in results if (key := (row.b.name, row.b.id)) in by_name)
    return {node: path for node, path in paths.items() if node in before}


def _of_openvino(evidence: Evidence, pairs: Pairs, suspects: Mapping[Node, str]) -> Iterator[Known]:
    """Known differences of OpenVINO at these layers."""
    options, is_recorded = evidence.options, isinstance(evidence.a, RecordedSide)
    right = next((name for name in (options.b_runtime, options.a_runtime) if name in OWN), "")
    if options.b_runtime == "openvino" or (is_recorded and options.b_runtime in OWN):
        condition = "if A was recorded from OpenVINO: " if is_recorded and options.b_runtime in OWN else ""
        model, of_b = evidence.b.model, {node: node for node in suspects}
    elif isinstance(evidence.a, ModelSide) and options.a_runtime == "openvino":
        condition, model = "", evidence.a.model
        of_b = {of_a: node for node in suspects if (of_a := pairs.layer_of_a(node)) is not None}
    else:
        return
    for node, row in differences(model, infer_shapes(model, tolerant=True), _VISIBLE):
        if node in of_b:
            known = of_b[node]
            yield Known(row.code, layer(known.outputs[0], suspects[known]), f"{condition}{row.does}", right)


def _of_onnxruntime(evidence: Evidence, pairs: Pairs, suspects: Mapping[Node, str]) -> Iterator[Known]:
    """Products of bytes at these layers, or in front of them, that ONNX Runtime may saturate."""
    options = evidence.options
    names = {options.a_runtime, options.b_runtime}
    if "onnxruntime" not in names or names.isdisjoint(OWN):
        return
    right = next(name for name in (options.b_runtime, options.a_runtime) if name in OWN)
    for node in products_of_bytes(evidence.b.model, suspects):
        yield saturated(node, suspects[node], right)


def saturated(node: Node, path: str = "", right: str = "irexec") -> Known:
    """The known reason at a product of bytes."""
    return Known("", layer(node.outputs[0], path), f"ONNX Runtime {IN_16_BITS}", right)


def products_of_bytes(model: Model, suspects: Iterable[Node]) -> Iterator[Node]:
    """The layers among some whose products of bytes a runtime may saturate on this processor.

    Both operands come from bytes or a FakeQuantize, and weights of i8 have 8 bits.
    """
    if not _saturates():
        return
    facts = infer_shapes(model, tolerant=True).facts
    for node in suspects:
        if node.type in ("Convolution", "GroupConvolution", "MatMul") and len(node.inputs) == 2:
            integers = [None if value is None else _integers(value, facts) for value in node.inputs]
            weights = integers[1]
            if (
                (integers[0] is None and not _is_of_levels(node.inputs[0]))
                or weights is None
                or facts[weights].element is not I8
            ):
                continue
            constant = weights.node.constant
            if constant is None or np.abs(constant_value(constant).astype(int)).max(initial=0) > _SEVEN_BITS:
                yield node


def _saturates() -> bool:
    """Whether this processor adds products of bytes in 16 bits: x86 without VNNI."""
    found = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features: Mapping[str, bool] = getattr(found, "__cpu_features__", {})
    return bool(features.get("SSE42")) and not features.get("AVX512VNNI")


def _integers(value: Value, facts: Facts) -> Value | None:
    """The bytes that an operand is computed from, as ``(bytes - zero) * scale``; None if it is not."""
    for type in ("Reshape", "Multiply", "Reshape", "Subtract", "Convert"):
        source = value.node.inputs[0] if value.node.type == type else None
        value = source or value
    return value if value in facts and facts[value].element in (I8, U8) else None


def _is_of_levels(value: Value | None) -> bool:
    value = in_front(value, _KEEP_LEVELS)
    return value is not None and value.node.type == "FakeQuantize"
