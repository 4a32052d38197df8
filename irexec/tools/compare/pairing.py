"""Passes that correct pairs: each is a function of the evidence and the pairs, and returns other pairs.

Names make a pair certain. A pair from structure is a guess: if its tensors differ, the guess may be wrong. It is wrong
if all results agree, unless both layers read the same and an attribute or a constant differs: such a fault reaches no
result. If results differ, the pair is kept with a confirmation: a later layer computes A's tensor from A's inputs, or
both layers have one type and rank and read tensors that are pairs themselves.

A pass can be left out or run alone: ``PASSES`` is the order of all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import grouped
from irexec.tools.compare.blame import trials
from irexec.tools.compare.comparison import ONLY_B, Uncompared
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import differing_attributes
from irexec.tools.compare.options import Side
from irexec.tools.compare.pairs import GUESSES, VALUE, Pairs, TensorPair, matched
from irexec.tools.compare.rows import Found, Rows, compared
from irexec.tools.observing.sides import ModelSide, computed

_DISTINCTIVE = 8
"""Minimum number of different elements of a tensor that is paired by its values."""
_AXES = 5
"""Maximum number of axes of a tensor whose orders are tried."""
_EQUAL = 1e-4
"""Maximum relative difference of two fingerprints of the same tensor."""
_MAX_ROUNDS = 20
"""Maximum number of rounds in which wrong pairs are dropped: dropped pairs reveal other wrong ones."""

Pass = Callable[[Evidence, Pairs], Pairs]


def without_random(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Leave out tensors with random values: two runs differ."""
    sources = {pair.b: evidence.random[pair.b.node] for pair in pairs.tensors if pair.b.node in evidence.random}
    return _without_rows(pairs, {
        value: "its values are random"
        if source is value.node
        else f"it depends on {source.name!r}, whose values are random"
        for value, source in sources.items()
    })  # fmt: skip


def with_layers_that_run_alone(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Leave out tensors of layers that cannot be run alone, where each is to be."""
    if not evidence.options.isolate:
        return pairs
    alone = evidence.alone(evidence.sources(pairs))
    return _without_rows(pairs, {pair.b: text for pair in pairs.tensors if (text := alone.refusal(pair.b))})


def _without_rows(pairs: Pairs, reasons: Mapping[Value, str]) -> Pairs:
    """The pairs with the same partners, without the comparison of some tensors."""
    left = [Uncompared("B", value.name, value.node.type, text) for value, text in reasons.items()]
    tensors = tuple(pair for pair in pairs.tensors if pair.b not in reasons)
    return replace(pairs, tensors=tensors, uncompared=(*pairs.uncompared, *left))


def by_values(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Pair tensors of equal values: without a partner so far, or of a guessed pair that differs."""
    rows = _doubtful_rows(evidence, pairs)
    if rows is None or not isinstance(evidence.a, ModelSide):
        return pairs
    taken = _taken(rows)
    added = pair_by_value(_prints(evidence, "A"), _prints(evidence, "B"), taken, evidence.a.positions)
    return pairs.with_others(added, evidence.b.positions)


def by_values_in_another_order(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Pair tensors with the same values in another order of axes, such as with channels last."""
    rows = _doubtful_rows(evidence, pairs)
    if rows is None:
        return pairs
    candidates = permuted_candidates(_prints(evidence, "A"), _prints(evidence, "B"), _taken(rows))
    added = []
    for one, other in candidates:
        a, b = evidence.tensors("A", [one]).arrays.get(one), evidence.tensors("B", [other]).arrays.get(other)
        order = None if a is None or b is None else order_of_axes(a[0], b[0])
        added += [] if order is None else [TensorPair(one, other, VALUE, order)]
    return pairs.with_others(added, evidence.b.positions)


def from_agreeing_tensors(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Match the models again, starting from the tensors that agree, where results differ.

    A layer that B lacks moves all guesses behind it by one block, up to the next tensor that agrees.
    """
    rows = _doubtful_rows(evidence, pairs)
    if rows is None or not isinstance(evidence.a, ModelSide) or results_agree(evidence, rows):
        return pairs
    # Tensors of zeros, which have no angle between them, say nothing.
    agreements = {one.value: one.row.agreement for one in rows.found}
    agree = {value for value, one in agreements.items() if one.agrees and one.cosine is not None}
    known = [pair for pair in pairs.tensors if pair.b in agree]
    made = without_random(evidence, matched(evidence.a, evidence.b, evidence.options.maps, known))
    return replace(made, by_b={**made.by_b, **evidence.inputs.partners})


def without_wrong_guesses(evidence: Evidence, pairs: Pairs) -> Pairs:
    """Drop wrongly guessed pairs until none is found."""
    for _ in range(_MAX_ROUNDS):
        rows = _doubtful_rows(evidence, pairs)
        wrong = set() if rows is None else _wrong(evidence, rows)
        if not wrong:
            break
        lone = (Uncompared("B", pair.b.name, pair.b.node.type, ONLY_B) for pair in pairs.tensors if pair.b in wrong)
        pairs = pairs.without(wrong, lone)
    return pairs


PASSES: tuple[Pass, ...] = (
    without_random, with_layers_that_run_alone, by_values, by_values_in_another_order, from_agreeing_tensors,
    without_wrong_guesses,
)  # fmt: skip
"""All passes, in the order in which they run."""


def corrected(evidence: Evidence, pairs: Pairs, passes: Iterable[Pass] = PASSES) -> Pairs:
    """The pairs after some passes."""
    for one in passes:
        pairs = one(evidence, pairs)
    return pairs


def _doubtful_rows(evidence: Evidence, pairs: Pairs) -> Rows | None:
    """The rows of two models of which some differ; None where no pair is in doubt."""
    options = evidence.options
    if options.isolate or options.strict or evidence.is_one_model or not isinstance(evidence.a, ModelSide):
        return None
    rows = compared(evidence, pairs)
    return None if rows.agree else rows


def _taken(rows: Rows) -> dict[Value, Value]:
    """The partners that values of B keep: all but those of guessed pairs that differ."""
    doubtful = {one.value for one in rows.found if is_suspicious(one)}
    return {value: partner for value, partner in rows.pairs.by_b.items() if value not in doubtful}


def _prints(evidence: Evidence, side: Side) -> dict[Value, Fingerprint]:
    """Fingerprints of the tensors of a side with distinctive elements."""
    if side not in evidence.prints:
        of_side, facts = (evidence.a, evidence.facts_a) if side == "A" else (evidence.b, evidence.facts_b)
        assert isinstance(of_side, ModelSide)
        left_out = set() if side == "A" else evidence.b.constant | evidence.random.keys()
        found: dict[Value, Fingerprint] = {}
        for batch in evidence.batches([one for one in computed(of_side.order) if one.node not in left_out], facts):
            arrays = evidence.tensors(side, batch).arrays
            found |= {value: made for value in batch if value in arrays and (made := fingerprint(arrays[value]))}
        evidence.prints[side] = found
    return evidence.prints[side]


def _wrong(evidence: Evidence, rows: Rows) -> set[Value]:
    """Values of B with a wrong partner, judged by the other pairs."""
    moved = _moved(evidence, [one for one in rows.outer if is_suspicious(one) and one.has_another_shape], rows)
    if moved:
        return moved
    agree = results_agree(evidence, rows)
    doubtful = {one.value for one in rows.outer if is_suspicious(one)} if agree else set()
    asked = [
        one
        for one in rows.outer
        if not one.row.agreement.agrees or not doubtful.isdisjoint(rows.ancestors.of(one.value)[0])
    ]
    follows = {value: trial.agreement.agrees for value, trial in trials(evidence, rows, asked).items()}
    unknown = evidence.unknown_constants
    return wrong_pairs(
        rows,
        follows,
        lambda one, other: bool(differing_attributes(one.node, other.node)),
        lambda value: value.node in unknown,
        results_agree=agree,
    )


def _moved(evidence: Evidence, suspicious: Sequence[Found], rows: Rows) -> set[Value]:
    """Values of B that have the elements of their guessed partners in another order, or other axes of size 1.

    One exporter transposes the keys of an attention, the other tells the product to read them so: such a pair is a
    wrong guess, whether the results agree or not. Another number of axes is a difference of its own.
    """
    of_b = {pair.b: pair for pair in rows.pairs.tensors}
    asked = [of_b[one.value] for one in suspicious if one.value in of_b]
    a = evidence.tensors("A", [pair.a for pair in asked]).arrays
    b = evidence.tensors("B", [pair.b for pair in asked]).arrays
    both = [(pair.b, a[pair.a], b[pair.b]) for pair in asked if pair.a in a and pair.b in b]
    return {
        value for value, one, other in both if one[0].ndim == other[0].ndim and all(map(have_same_elements, one, other))
    }


def results_agree(evidence: Evidence, rows: Rows) -> bool:
    """Whether all computed results are compared and agree."""
    asked = [value for value in evidence.b.results if value.node.type not in ("Parameter", "Constant")]
    found = {one.value: one.row.agreement.agrees for one in rows.found}
    return bool(asked) and all(found.get(value, False) for value in asked)


def wrong_pairs(
    given: Rows,
    follows: Mapping[Value, bool],
    has_other_attributes: Callable[[Value, Value], bool],
    has_unknown_constants: Callable[[Value], bool],
    *,
    results_agree: bool,
) -> set[Value]:
    """Values of B with a wrongly guessed partner.

    Args:
        given: the rows.
        follows: whether layers that differ or read a difference compute A's tensor from A's inputs.
        has_other_attributes: whether the layer of a tensor of B has other attributes than that of its partner in A.
        has_unknown_constants: whether the layer of a tensor of B reads constants that A does not have.
        results_agree: whether all results agree.
    """
    found, pairs, ancestors = given.outer, given.pairs, given.ancestors
    rows = {one.value: one for one in found}
    readers = grouped((source, one.value) for one in found for source in ancestors.of(one.value)[0])

    def confirms(reader: Value) -> bool:
        # From another size a guess has another shape whatever it is: that does not confirm the size.
        is_doubtful = is_suspicious(rows[reader]) and rows[reader].has_another_shape
        return bool(follows.get(reader)) and not is_doubtful

    wrong: set[Value] = set()
    told: set[Value] = set()
    for one in found:
        if not is_suspicious(one) or follows.get(one.value):
            continue
        reads_the_same = _reads_the_same(one, rows, pairs, wrong)
        is_alike = reads_the_same and not one.has_another_shape
        is_other_function = is_alike and has_other_attributes(pairs.by_b[one.value], one.value)
        if results_agree:
            # A scale folded into weights: the next layer agrees, but would not if it read A's tensor.
            is_refuted = any(follows.get(reader) is False for reader in readers.get(one.value, ()))
            is_told = is_other_function or (is_alike and has_unknown_constants(one.value))
            (told if is_told and not is_refuted else wrong).add(one.value)
        elif is_other_function:
            told.add(one.value)
        elif _is_another_size(one) or not (reads_the_same or any(map(confirms, readers.get(one.value, ())))):
            wrong.add(one.value)
    for one in reversed(found):
        if is_suspicious(one) and one.value not in wrong | told and _is_contradicted(one.value, readers, rows, wrong):
            wrong.add(one.value)
    return wrong


def _is_another_size(one: Found) -> bool:
    """Whether a tensor of integers has another shape in A: two exporters compute sizes in different layers."""
    return one.row.type.startswith("int") and one.has_another_shape


def is_suspicious(one: Found) -> bool:
    """Whether a differing pair is a guess, or has only a common tensor name: exporters use numbers and "x" for many
    tensors."""
    row, of_a = one.row, one.row.a
    if row.agreement.agrees:
        return False
    if row.how in GUESSES:
        return True
    if row.how != "tensor name" or of_a is None or of_a.type == row.b.type:
        return False
    return of_a.type == "Parameter" or row.b.tensor.isdigit()


def _reads_the_same(one: Found, rows: Mapping[Value, Found], pairs: Pairs, wrong: set[Value]) -> bool:
    """Whether a layer and its partner have one type and rank, and all computed inputs are right pairs."""
    partner = pairs.by_b.get(one.value)
    if partner is None or _form(partner) != _form(one.value):
        return False
    for mine, theirs in zip(one.value.node.inputs, partner.node.inputs, strict=True):
        if mine is None or theirs is None:
            return mine is theirs
        if mine.node.constant is not None and theirs.node.constant is not None:
            if one.row.type.startswith("int") and not np.array_equal(
                constant_value(mine.node.constant).ravel(), constant_value(theirs.node.constant).ravel()
            ):
                # Two exporters compute sizes in different layers: one reads the height where the other reads the batch.
                return False
            continue
        if pairs.by_b.get(mine) is not theirs or mine in wrong:
            return False
        if mine not in rows and mine.node.type != "Parameter":
            return False
    return True


def _form(value: Value) -> tuple[str, int, int | None]:
    """Type and number of inputs of the layer of a value, and its rank; None if that is unknown."""
    shape = None if value.fact is None else value.fact.shape
    return value.node.type, len(value.node.inputs), None if shape is None else len(shape)


def _is_contradicted(
    value: Value, readers: Mapping[Value, list[Value]], rows: Mapping[Value, Found], wrong: set[Value]
) -> bool:
    """Whether other tensors are computed from the value, and all of them agree."""
    found: list[bool] = []
    waiting, seen = [value], {value}
    while waiting:
        for reader in readers.get(waiting.pop(), []):
            if reader in wrong:
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
            else:
                found.append(rows[reader].row.agreement.agrees)
    return bool(found) and all(found)


@dataclass(frozen=True)
class Fingerprint:
    """Figures that are equal for two tensors of the same values.

    Attributes:
        shape: shape of the tensor.
        kind: kind of its type.
        sums: the maximum magnitude of each run, and sums with weights by position.
        moments: the maximum magnitude of each run, and sums without an order.
    """

    shape: tuple[int, ...]
    kind: str
    sums: tuple[float, ...]
    moments: tuple[float, ...]


def fingerprint(arrays: Sequence[np.ndarray]) -> Fingerprint | None:
    """The fingerprint of a tensor, from its array in each run; None without distinctive elements."""
    first = arrays[0]
    if first.dtype.kind not in "fiu" or first.size < _DISTINCTIVE:
        return None
    sums: list[float] = []
    moments: list[float] = []
    for array in arrays:
        values = array.astype(np.float64).ravel()
        if values.size != first.size or not np.isfinite(values).all() or np.unique(values[:256]).size < _DISTINCTIVE:
            return None
        scale = float(np.abs(values).max())
        places = np.arange(values.size, dtype=np.float64)
        sums += [scale, *(float(values @ np.cos(places * step)) / np.sqrt(values.size) for step in (0.0, 0.7, 1.9))]
        own = values / (scale or 1.0)
        moments += [scale, *(scale * float((own**power).sum()) / np.sqrt(values.size) for power in (1, 2, 3))]
    return Fingerprint(first.shape, first.dtype.kind, tuple(sums), tuple(moments))


def pair_by_value(
    a: Mapping[Value, Fingerprint],
    b: Mapping[Value, Fingerprint],
    taken: Mapping[Value, Value],
    order: Mapping[Node, int],
) -> list[TensorPair]:
    """Pairs of tensors with equal values, each tensor once; of several the first in the order of A.

    Several tensors of one model may have the same values, such as a Reshape and its input: only the first is paired.

    Args:
        a, b: fingerprints of the tensors.
        taken: partners that values of B keep.
        order: the positions of the layers of A.
    """
    ordered = sorted(a, key=lambda value: (order.get(value.node, 0), value.index))
    of_a = _grouped(ordered, a, in_order=True)
    partners = set(taken.values())
    found: list[TensorPair] = []
    for size, (values, sums) in _grouped(b, b, in_order=True).items():
        others, theirs = of_a.get(size, ([], sums[:0]))
        for i, value in enumerate(values):
            if value in taken or _are_equal(sums[:i], sums[i]).any():
                continue
            equal = (others[k] for k in np.flatnonzero(_are_equal(theirs, sums[i])))
            partner = next((one for one in equal if _have_one_shape(a[one].shape, b[value].shape)), None)
            if partner is not None and partner not in partners:
                partners.add(partner)
                found.append(TensorPair(partner, value, VALUE))
    return found


def permuted_candidates(
    a: Mapping[Value, Fingerprint], b: Mapping[Value, Fingerprint], taken: Mapping[Value, Value]
) -> list[tuple[Value, Value]]:
    """Tensors of A and B that may have the same values in another order of axes, if no third tensor has these values;
    ``taken`` as for ``pair_by_value``."""
    partners, found = set(taken.values()), []
    left_a, left_b = [value for value in a if value not in partners], [value for value in b if value not in taken]
    of_a = _grouped(left_a, a, in_order=False)
    for key, (values, moments) in _grouped(left_b, b, in_order=False).items():
        if key in of_a:
            others, theirs = of_a[key]
            equal = np.array([_are_equal(theirs, own) for own in moments])
            alone = equal & (equal.sum(axis=0) == 1) & (equal.sum(axis=1, keepdims=True) == 1)
            found += [(others[k], values[i]) for i, k in np.argwhere(alone)]
    return found


def _grouped(
    values: Iterable[Value], prints: Mapping[Value, Fingerprint], *, in_order: bool
) -> dict[Hashable, tuple[list[Value], np.ndarray]]:
    """Values that may have equal elements, in one order or in any, each group with the figures of its fingerprints."""
    groups: dict[Hashable, list[Value]] = {}
    for value in values:
        own = prints[value]
        sizes = (math.prod(own.shape),) if in_order else sorted(own.shape)
        groups.setdefault((own.kind, *sizes), []).append(value)
    return {
        key: (group, np.array([prints[value].sums if in_order else prints[value].moments for value in group]))
        for key, group in groups.items()
    }


def order_of_axes(a: np.ndarray, b: np.ndarray) -> tuple[int, ...] | None:
    """The order of axes that makes one array the other, up to rounding; None if there is none."""
    if a.ndim != b.ndim or not 2 <= a.ndim <= _AXES:
        return None
    scale = float(np.abs(b).max(initial=0.0))
    for order in itertools.permutations(range(a.ndim)):
        moved = a.transpose(order)
        is_other = moved.shape == b.shape and order != tuple(range(a.ndim))
        if is_other and np.allclose(moved, b, rtol=_EQUAL, atol=_EQUAL * scale):
            return order
    return None


def have_same_elements(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two tensors have the same elements in any order, up to rounding."""
    if a.size != b.size or a.dtype.kind != b.dtype.kind or a.dtype.kind not in "fiub":
        return False
    one, other = np.sort(a, axis=None), np.sort(b, axis=None)
    scale = float(np.abs(other).max(initial=0.0))
    return bool(np.allclose(one, other, rtol=_EQUAL, atol=_EQUAL * scale, equal_nan=True))


def _have_one_shape(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes are equal, or of different ranks: exporters keep, merge and split axes."""
    return one == other or len(one) != len(other)


def _are_equal(figures: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Mask of the figures that are equal to others up to rounding; each run has its scale first, then sums."""
    a, b = figures.reshape(len(figures), own.size // 4, 4), own.reshape(-1, 4)
    scale = np.maximum(a[..., :1], b[:, :1])
    return np.asarray((np.abs(a - b) <= _EQUAL * scale).all(axis=(1, 2)))
