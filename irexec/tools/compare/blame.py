"""Rows that differ only because the inputs of their layers do: layers are run alone, from equal inputs.

A difference within the tolerance may grow: a Softmax of large values, or a division by a small variance, enlarges the
rounding of earlier layers. The layer at which it leaves the tolerance is not at fault. irexec therefore computes each
layer of B from A's inputs of this layer. If the result agrees with A's tensor, both layers are the same function. The
same is done with B's inputs and B's tensor: the runtime of B may be at fault, irexec's own plans included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irexec.ir.graph import Value
from irexec.tools.arrays.agreement import Agreement, Tolerance
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.options import RTOL, Side
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import Found, Rows, agreement, rounded_once, tolerance_of
from irexec.tools.observing.alone import Alone, arranged

HIDDEN = 0.03
"""Fraction of the relative tolerance above which the deviation of one layer is a fault within the tolerance.

For f32 this is a deviation of 3e-6, of root mean squares. Two runtimes differ by up to 7e-7 in a Convolution and by 1
to 3e-7 in other layers, measured over 15 networks.
"""
HIDDEN_COARSE = 0.4
"""The same fraction for types coarser than f32, with a tolerance of about ten roundings: the layers that run alone read
inputs rounded to their types, and a runtime in f32 read inputs without this rounding."""


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
