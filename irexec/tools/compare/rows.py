"""Rows of a comparison: each pair of tensors with the agreement of its arrays."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.analysis.f32_arithmetic import HALVES
from irexec.dtypes.elements import F32, F64
from irexec.ir.graph import Graph, Value
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare.comparison import TensorRow, Uncompared
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import DETECTIONS, Ancestors, layer, levels_apart
from irexec.tools.compare.pairs import VALUE, Pairs, TensorPair
from irexec.tools.observing.alone import Alone, arranged
from irexec.tools.observing.observe import Observed

_VARIED = 7
"""Minimum number of elements other than the most frequent one of a tensor that confirms a trial."""
_SHAPED = ("Broadcast", "ReadValue")
"""Layers with results that are often filled with one value."""
_SCORE = 2
"""The column of the score in rows of DetectionOutput and of selected_scores."""
_PART = 0.7
"""Fraction of the work that the first rows are, for the progress."""
_MOST = 1 << 13
"""Maximum number of rows of detections that are paired one by one."""


@dataclass(frozen=True)
class Found:
    """A row with its value of B.

    Attributes:
        row, value: the row and the value.
        positions: positions of the layers around its bodies, from the outermost on, and of its own layer.
        path: the path of the bodies.
        is_reshaped: whether A has the values in another shape.
        is_reordered: whether the tensor agrees as rows of detections alone, see ``as_rows``.
    """

    row: TensorRow
    value: Value
    positions: tuple[int, ...]
    path: str = ""
    is_reshaped: bool = False
    is_reordered: bool = False

    @property
    def has_another_shape(self) -> bool:
        """Whether A's tensor has another shape, such as with axes of size 1 in other places."""
        return self.row.agreement.largest is None and self.row.type != "string"

    @property
    def position(self) -> tuple[int, ...]:
        """Sort key by the order of computation in B; rows of a body come before its layer."""
        *outer, own = self.positions
        return (*(part for position in outer for part in (position, -1)), own, self.value.index)

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key by the time of the difference: by run, and by iteration in a loop."""
        *outer, own = self.positions
        iterations = (*self.row.iteration, *([0] * len(outer)))
        inside = (
            part for position, iteration in zip(outer, iterations, strict=False) for part in (position, -1, iteration)
        )
        return (self.row.run, *inside, own, self.value.index)

    def at_fault(self, message: str) -> Found:
        """The row as a fault of its layer, with a message."""
        agreement = replace(self.row.agreement, agrees=False, message=message)
        return replace(self, row=replace(self.row, agreement=agreement, follows=False))


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a comparison.

    Attributes:
        pairs: the pairs.
        graph: the graph of B.
        found: the rows, in the order in which B computes their tensors.
        uncompared: all tensors without a row.
    """

    pairs: Pairs
    graph: Graph
    found: tuple[Found, ...] = ()
    uncompared: tuple[Uncompared, ...] = ()

    def with_found(self, found: Iterable[Found], uncompared: Iterable[Uncompared] = ()) -> Rows:
        """The rows with others in their place, and with further tensors that are not compared."""
        ordered = tuple(sorted(found, key=lambda one: one.position))
        return replace(self, found=ordered, uncompared=(*self.uncompared, *uncompared))

    @functools.cached_property
    def by_value(self) -> dict[Value, Found]:
        """The rows by their values of B."""
        return {one.value: one for one in self.found}

    @functools.cached_property
    def outer(self) -> list[Found]:
        """The rows outside of bodies."""
        return [one for one in self.found if not one.path]

    @functools.cached_property
    def shapes(self) -> dict[Value, tuple[int, ...]]:
        """The shapes of B's tensors."""
        return {one.value: one.row.shape for one in self.found}

    @functools.cached_property
    def ancestors(self) -> Ancestors:
        """The nearest compared tensors in front of a tensor."""
        return Ancestors(self.by_value, self.graph)

    @property
    def agree(self) -> bool:
        """Whether all rows agree."""
        return all(one.row.agreement.agrees for one in self.found)

    @functools.cached_property
    def are_reordered(self) -> bool:
        """Whether rows of detections agree in another order, so that layers behind them compute rows too."""
        return any(one.is_reordered for one in self.found)


def compared(evidence: Evidence, pairs: Pairs) -> Rows:
    """The rows of pairs; a pair that was compared before has the same row."""
    known, are_reordered = evidence.rows, False
    share = 0.0 if known else _PART
    alone = evidence.alone(evidence.sources(pairs)) if evidence.options.isolate else None
    of_b = {pair.b: pair for pair in pairs.tensors}
    outcomes: list[Found | Uncompared] = []
    for batch in evidence.batches(list(of_b), evidence.facts_b):
        # A layer behind detections has a row of its own where these are in another order.
        both = [(of_b[value], flag) for value in batch for flag in {False, value.node in evidence.detections}]
        fresh = list(dict.fromkeys(pair for pair, flag in both if (pair, flag) not in known))
        of_a, seen = _observed(evidence, pairs, fresh, alone, share * len(batch) / len(of_b))
        for value in batch:
            key = of_b[value], are_reordered and value.node in evidence.detections
            if key not in known:
                known[key] = _outcome(evidence, of_b[value], of_a, seen, key[1])
            outcomes.append(known[key])
            are_reordered = are_reordered or (isinstance(known[key], Found) and known[key].is_reordered)
    rows = Rows(pairs, evidence.b.model, uncompared=pairs.uncompared)
    return rows.with_found(
        (one for one in outcomes if isinstance(one, Found)), (one for one in outcomes if isinstance(one, Uncompared))
    )


def _observed(
    evidence: Evidence, pairs: Pairs, batch: Sequence[TensorPair], alone: Alone | None, share: float
) -> tuple[Observed, Observed]:
    """The tensors of A and of B for a batch, which is ``share`` of the work."""
    values, sources = [pair.b for pair in batch], [pair.a for pair in batch]
    if alone is None:
        of_a = evidence.tensors("A", sources)
        evidence.advance(share / 2)
        of_b = evidence.tensors("B", values)
    else:
        given, of_a = evidence.given("A", alone.inputs(values), pairs, {}, sources)
        evidence.advance(share / 2)
        of_b = alone.observed(values, given, evidence.runs, evidence.opened(evidence.options.b_runtime))
        read = (source for value in values for source in value.node.inputs if source is not None)
        if evidence.is_one_model and any(source.element_type in HALVES for source in read):
            # Tensors of f16 are rounded as B's inputs; inside of a run in f32 they are not.
            again = alone.observed_each(values, given, evidence.runs, evidence.opened(evidence.options.a_runtime))
            own = {pair.a: again.arrays[pair.b] for pair in batch if pair.b in again.arrays}
            of_a = replace(of_a, arrays={**of_a.arrays, **own})
    evidence.advance(share / 2)
    return of_a, of_b


def _outcome(
    evidence: Evidence, pair: TensorPair, of_a: Observed, of_b: Observed, are_reordered: bool
) -> Found | Uncompared:
    """The row of a pair, or why there is none."""
    for side, one, observed in (("A", pair.a, of_a), ("B", pair.b, of_b)):
        if one not in observed.arrays:
            return Uncompared(side, pair.b.name, pair.b.node.type, observed.failures[one])
    a, b = of_a.arrays[pair.a], of_b.arrays[pair.b]
    row, is_reordered = row_of(evidence, pair, a, b, are_reordered)
    is_reshaped = any(one.shape != other.shape for one, other in zip(a, b, strict=True))
    return Found(row, pair.b, (evidence.b.positions[pair.b.node],), "", is_reshaped, is_reordered)


def row_of(
    evidence: Evidence, pair: TensorPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray], are_reordered: bool
) -> tuple[TensorRow, bool]:
    """The row of a pair: of the first run with a difference, else of the run with the largest one. Also whether its
    layer returns detections that agree as rows alone."""
    if pair.how == VALUE:
        a = [arranged(one, other.shape, pair.order) for one, other in zip(a, b, strict=True)]
    agreements = [
        rounded_once(agreement(evidence, pair, one, other, are_reordered), one, other, pair.b)
        for one, other in zip(a, b, strict=True)
    ]
    run, chosen = worst(agreements)
    apart = None if chosen.agrees else levels_apart(pair.b, a[run], b[run])
    if apart is not None and apart.any():
        count, most = int(np.count_nonzero(apart)), int(apart.max())
        off = "one level off" if most == 1 else f"on another level, up to {most:,} levels off"
        chosen = replace(chosen, message=f"{chosen.message}; {count:,} of {counted(apart.size, 'value')} {off}")
    of_a = layer(pair.a) if isinstance(pair.a, Value) else None
    is_blind = chosen.agrees and pair.b.node.type not in _SHAPED and all(map(_is_constant, (*a, *b)))
    row = TensorRow(
        of_a, layer(pair.b), pair.how, type_name(b[run]), b[run].shape, chosen, run + 1, is_blind=is_blind,
        recorded="" if isinstance(pair.a, Value) else pair.a,
    )  # fmt: skip
    # Agreeing elements have no message.
    is_reordered = pair.b.node.type in DETECTIONS and any(one.agrees and one.message for one in agreements)
    return row, is_reordered


def tolerance_of(evidence: Evidence, pair: TensorPair) -> Tolerance:
    """The tolerance of a pair."""
    return evidence.tolerances.of(*evidence.elements(pair.a, pair.b))


def agreement(
    evidence: Evidence, pair: TensorPair, a: np.ndarray, b: np.ndarray, are_reordered: bool = False
) -> Agreement:
    """The agreement of two arrays of a pair, within the tolerance of their types; ``are_reordered``: whether rows of
    detections in front of the tensor agree in another order."""
    tolerance = tolerance_of(evidence, pair)
    found = agreement_of(pair.b.name, b, a, tolerance, "A")
    if pair.b.node.type in DETECTIONS or (are_reordered and pair.b.node in evidence.detections):
        return as_rows(found, a, b, tolerance)
    return found


def rounded_once(found: Agreement, a: np.ndarray, b: np.ndarray, value: Value) -> Agreement:
    """The agreement of arrays that are converted from 16 bits, equal if one array is the other one rounded to 16 bits.

    A runtime in f32 may leave out the rounding of a tensor of 16 bits, which another one has stored.
    """
    source = value.node.inputs[0] if value.node.type in ("Convert", "ConvertLike") else None
    half = None if source is None else source.element_type
    if found.agrees or a.shape != b.shape or half not in HALVES or value.element_type not in (F32, F64):
        return found
    for one, other in ((a, b), (b, a)):
        stored = rounded(one.astype(half.carrier), half).astype(other.dtype)
        if np.array_equal(stored, other):
            equal = agreement_of(found.name, stored, other, Tolerance(), "A")
            return replace(equal, message=f"{found.message}, rounded to {half.name} in one of them")
    return found


def as_rows(found: Agreement, a: np.ndarray, b: np.ndarray, tolerance: Tolerance) -> Agreement:
    """The agreement of two tensors as sets of rows, if that of their elements is a difference; else the same.

    Each row has a partner within the tolerance. Rows without a partner have equal scores: one of two rows is kept, and
    either may be.
    """
    if found.agrees or tolerance.metric != "max" or a.shape != b.shape or a.ndim == 0 or a.dtype.kind not in "fiub":
        return found
    one, other = (
        np.asarray(array, np.float64).reshape(-1, array.shape[-1] if array.ndim > 1 else 1) for array in (a, b)
    )
    with np.errstate(invalid="ignore"):
        scale = float(np.sqrt(np.mean(np.square(one)))) if tolerance.scaled and one.size else 1.0
        limits = tolerance.atol * scale + tolerance.rtol * np.abs(one)
        left = np.flatnonzero(~(np.abs(one - other) <= limits).all(axis=1))
        if left.size > _MOST:
            return found
        free = list(left)
        lonely = []
        for i in left:
            gaps = np.abs(other[free] - one[i])
            fitting = np.flatnonzero((gaps <= limits[i]).all(axis=1))
            if fitting.size:
                del free[int(fitting[0])]
            else:
                lonely.append(int(i))
    if lonely:
        if one.shape[1] <= _SCORE or len(lonely) * 2 > len(left):
            return found
        scores, others = np.sort(one[lonely, _SCORE]), np.sort(other[free, _SCORE])
        if not np.allclose(scores, others, rtol=tolerance.rtol, atol=tolerance.atol):
            return found
    text = f"{counted(len(left), 'row')} of {len(one)} in another order, with equal scores"
    return replace(found, agrees=True, message=text, differing=0)


def is_varied(array: np.ndarray) -> bool:
    """Whether a tensor has enough elements other than its most frequent one to confirm that it is computed right."""
    if not array.size:
        return True
    # An element that is more frequent than all others together is the median.
    median = np.partition(array, array.size // 2, axis=None)[array.size // 2]
    return bool(np.count_nonzero(array != median) >= min(_VARIED, array.size - 1))


def _is_constant(array: np.ndarray) -> bool:
    """Whether all elements of a floating-point tensor are equal."""
    return array.dtype.kind == "f" and array.size > 1 and bool((array == array.flat[0]).all())


def worst(agreements: Sequence[Agreement]) -> tuple[int, Agreement]:
    """The first agreement that is a difference, else the one with the largest difference, and its index."""
    for i, agreement in enumerate(agreements):
        if not agreement.agrees:
            return i, agreement
    i = max(range(len(agreements)), key=lambda i: agreements[i].largest or 0.0)
    return i, agreements[i]


def type_name(array: np.ndarray) -> str:
    """NumPy's name of the type, or "string"."""
    return "string" if array.dtype.kind in "OU" else array.dtype.name
