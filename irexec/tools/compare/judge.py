"""Judgements of single layers: a layer computes something else, or passes on the difference of its inputs.

A difference within the tolerance may grow: a Softmax of large values, or a division by a small variance, enlarges the
rounding of earlier layers. The layer at which it leaves the tolerance is not at fault. irexec therefore computes each
layer of B from A's inputs of this layer. If the result agrees with A's tensor, both layers are the same function. The
same is done with B's inputs and B's tensor: the runtime of B may be at fault, irexec's own plans included.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.ir.graph import Value
from irexec.tools.arrays.agreement import Agreement, Tolerance
from irexec.tools.compare.isolate import Isolated, Sources
from irexec.tools.compare.observe import Facts, Observed
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import Ancestors, Found, Rows, fitted
from irexec.tools.compare.tolerances import RTOL

HIDDEN = 0.03
"""Fraction of the relative tolerance above which the deviation of one layer is a fault within the tolerance.

For f32 this is a deviation of 3e-6, of root mean squares. Two runtimes differ by up to 7e-7 in a Convolution and by 1
to 3e-7 in other layers, measured over 15 networks.
"""
HIDDEN_COARSE = 0.4
"""The same fraction for types coarser than f32, with a tolerance of about ten roundings: the judge reads inputs
rounded to their types, and a runtime in f32 read inputs without this rounding."""


@dataclass(frozen=True)
class Judgement:
    """The judgement of one layer.

    Attributes:
        agreement: agreement of the runtime's tensor with irexec's result, for the first side that differs.
        deviation: root mean square of the difference divided by that of the tensor, the larger one of both sides.
        is_fault: whether the deviation is more than rounding.
    """

    agreement: Agreement
    deviation: float
    is_fault: bool


class Judge:
    """The judge of the rows of one comparison.

    Args:
        context: the comparison; A is a model.
        rows: the rows of the comparison.
        facts: facts of the values of B.
    """

    def __init__(self, context: OpenSides, rows: Rows, facts: Facts) -> None:
        self._context, self._rows, self._facts = context, rows, facts
        self._made: dict[Value, Judgement] = {}
        self._results = {value for node in context.b.model.results for value in node.inputs if value is not None}
        self._tried: set[Value] = set()
        options = context.options
        self._runtime = "reference" if "reference" in (options.a_runtime, options.b_runtime) else "irexec"

    def judgements(self, found: Sequence[Found]) -> dict[Value, Judgement]:
        """Judgements of the layers that can be run alone with the tensors of A; each is made once."""
        of_value = {pair.b: pair for pair in self._context.pairs.tensors}
        # A Parameter that is a result has no layer.
        asked = [one.value for one in found if one.value.node.type != "Parameter" and one.value not in self._tried]
        chosen = [of_value[value] for value in asked if value in of_value]
        self._tried |= {pair.b for pair in chosen}
        unreadable = self._rows.unreadable
        sources = {value: one for value, one in self._context.sources().items() if value not in unreadable}
        for batch in self._context.batches(chosen, self._facts):
            made = self._judged(batch, sources, self._context.observed_a, self._context.pairs.orders)
            # Layers that do not fit A's tensors stay without a judgement: B's own tensors alone show no difference to
            # A.
            own: Sources = {value: value for value in sources if self._context.run_b.gives(value)}
            rest = [replace(pair, a=pair.b, order=()) for pair in batch if pair.b in made]
            for value, judgement in self._judged(rest, own, self._context.observed_b, {}).items():
                made[value] = _worse(made[value], judgement)
            self._made |= made
        return {one.value: self._made[one.value] for one in found if one.value in self._made}

    def forget(self, values: set[Value]) -> None:
        """Drop the judgements of these values, whose layers are given other tensors now."""
        self._tried -= values
        for value in values:
            self._made.pop(value, None)

    def results_of_another_shape(self, differing: Sequence[Found], ancestors: Ancestors) -> set[Value]:
        """The first layers whose tensors have another shape than in A, and from which a result has its shape.

        A judgement compares values in A's shape, since exporters keep or remove axes of size 1 in different layers.
        """
        reshaped = {one.value for one in differing if one.has_another_shape}
        waiting = [value for value in reshaped if value in self._results]
        found, seen = set[Value](), set(waiting)
        while waiting:
            value = waiting.pop()
            sources = [source for source in ancestors.of(value)[0] if source in reshaped]
            if not sources:
                found.add(value)
            waiting += [source for source in sources if source not in seen]
            seen.update(sources)
        return found

    def _judged(
        self,
        batch: Sequence[TensorPair],
        sources: Sources,
        observed: Callable[[Sequence[Value | str]], Observed],
        orders: Mapping[Value, tuple[int, ...]],
    ) -> dict[Value, Judgement]:
        """Judgements by the tensors of one side, whose axes have these orders."""
        context = self._context
        shapes = {one.value: one.row.shape for one in self._rows.found}
        isolated = Isolated(context.b, sources, context.options, shapes, orders)
        batch = isolated.chosen(batch, [])
        given = observed([*isolated.needed(batch), *(pair.a for pair in batch)])
        computed = isolated.observed_each(batch, given, self._runtime, len(context.inputs.b))
        return {
            pair.b: self._judgement(pair, given.arrays[pair.a], computed.arrays[pair.b])
            for pair in batch
            if pair.b in computed.arrays and pair.a in given.arrays
        }

    def _judgement(self, pair: TensorPair, actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> Judgement:
        tolerance = self._rows.tolerance(pair.a, pair.b)
        found = []
        for mine, theirs in zip(actual, expected, strict=True):
            arrays = fitted(pair, mine, theirs)
            agreement = self._rows.agreement(pair.a, pair.b, *arrays)
            found.append(Judgement(agreement, _deviation(agreement), is_more_than_rounding(agreement, tolerance)))
        return functools.reduce(_worse, found)


def _worse(one: Judgement, other: Judgement) -> Judgement:
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


def judge_rows(rows: Rows, judge: Judge, ancestors: Ancestors) -> None:
    """Mark the rows of innocent layers: these differ only because the inputs of their layers do.

    If all differing layers are innocent, a layer whose own tensor is within the tolerance may be at fault. Its row then
    counts as differing.
    """
    outer = [one for one in rows.found if not one.path]
    differing = [one for one in outer if not one.row.agreement.agrees]
    judgements = judge.judgements(differing)
    innocent = {one.value for one in differing if one.value in judgements and judgements[one.value].agreement.agrees}
    innocent |= _following(differing, innocent, judgements, ancestors)
    if len(innocent) == len(differing):
        innocent -= judge.results_of_another_shape(differing, ancestors)
    guilty = judgements.keys() - innocent
    rows.found = [_told(one, innocent, guilty) for one in rows.found]
    if len(innocent) < len(differing):
        return
    before = [one for one in outer if one.row.agreement.agrees and not one.row.agreement.equal]
    hidden = {value: one for value, one in judge.judgements(before).items() if one.is_fault}
    if hidden:
        most = max(hidden, key=lambda value: hidden[value].deviation)
        rows.found = [_uncovered(one) if one.value is most else one for one in rows.found]


def _following(
    differing: Sequence[Found], innocent: set[Value], judgements: Mapping[Value, Judgement], ancestors: Ancestors
) -> set[Value]:
    """Values without a judgement whose differing inputs all belong to innocent layers, such as a ReadValue."""
    differ = {one.value for one in differing}
    found: set[Value] = set()
    for one in differing:
        sources = {value for value in ancestors.of(one.value)[0] if value in differ}
        if one.value not in judgements and sources and sources <= innocent | found:
            found.add(one.value)
    return found


def _is_inside(one: Found, innocent: set[Value]) -> bool:
    """Whether a tensor belongs to a body of an innocent layer."""
    return bool(one.path) and any(one.path.startswith(f"{value.node.name}/") for value in innocent if value.node.bodies)


def _told(one: Found, innocent: set[Value], guilty: set[Value]) -> Found:
    """A row with the judgement of its layer."""
    if one.row.agreement.agrees:
        return one
    follows = True if one.value in innocent or _is_inside(one, innocent) else False if one.value in guilty else None
    return replace(one, row=replace(one.row, follows=follows))


def _uncovered(one: Found) -> Found:
    """A row within the tolerance whose layer is at fault."""
    agreement = one.row.agreement
    text = (
        f"values differ by up to {agreement.largest:g}, within the tolerance, and not by rounding; "
        "later layers enlarge the difference"
    )
    return replace(one, row=replace(one.row, agreement=replace(agreement, agrees=False, message=text), follows=False))
