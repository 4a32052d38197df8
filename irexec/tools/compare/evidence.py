"""Evidence for and against pairs of tensors that differ.

Names make a pair certain. A pair from structure is a guess: if its tensors differ, the guess may be wrong. It is wrong
if all results agree, unless both layers read the same and an attribute or a constant differs: such a fault reaches no
result. If results differ, the pair is kept with a confirmation: a later layer computes A's tensor from A's inputs, or
both layers have one type and rank and read tensors that are pairs themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.ir.constants import Constant, constant_value
from irexec.ir.graph import Node, Value
from irexec.tools.compare.constants import is_scaled
from irexec.tools.compare.pairs import GUESSES, Pairs, TensorPair
from irexec.tools.compare.rows import Ancestors, Found

_DISTINCTIVE = 8
"""Minimum number of different elements of a tensor that is paired by its values."""
_AXES = 5
"""Maximum number of axes of a tensor whose orders are tried."""
_EQUAL = 1e-4
"""Maximum relative difference of two fingerprints of the same tensor."""


def wrong_pairs(
    found: Sequence[Found],
    pairs: Pairs,
    ancestors: Ancestors,
    follows: Mapping[Value, bool],
    has_other_attributes: Callable[[Value, Value], bool],
    has_unknown_constants: Callable[[Value], bool],
    *,
    results_agree: bool,
) -> set[Value]:
    """Values of B with a wrongly guessed partner.

    Args:
        found: all rows outside of bodies, in the order in which B computes them.
        pairs: the pairs.
        ancestors: ancestors of the values of the rows.
        follows: the judgement of layers that differ or read a difference: whether they compute A's tensor from A's
            inputs; see Judge.
        has_other_attributes: whether the layer of a tensor of B has other attributes than that of its partner in A.
        has_unknown_constants: whether the layer of a tensor of B reads constants that A does not have.
        results_agree: whether all results agree.
    """
    rows = {one.value: one for one in found}
    readers: dict[Value, list[Value]] = {}
    for one in found:
        for source in ancestors.of(one.value)[0]:
            readers.setdefault(source, []).append(one.value)
    wrong: set[Value] = set()
    told: set[Value] = set()
    for one in found:
        if not is_suspicious(one) or follows.get(one.value):
            continue
        is_other_function = (
            not one.has_another_shape
            and _reads_the_same(one, rows, pairs, wrong)
            and has_other_attributes(pairs.by_b[one.value], one.value)
        )
        if results_agree:
            # A scale folded into weights: the next layer agrees, but would not if it read A's tensor.
            is_refuted = any(follows.get(reader) is False for reader in readers.get(one.value, ()))
            is_told = is_other_function or (
                not one.has_another_shape
                and _reads_the_same(one, rows, pairs, wrong)
                and has_unknown_constants(one.value)
            )
            (told if is_told and not is_refuted else wrong).add(one.value)
        elif is_other_function:
            told.add(one.value)
        elif _is_another_size(one) or (
            not _reads_the_same(one, rows, pairs, wrong)
            and not any(follows.get(reader) for reader in readers.get(one.value, ()))
        ):
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
    if one.row.agreement.agrees:
        return False
    return one.row.how in GUESSES or (one.row.how == "tensor name" and _is_chance(one))


def _is_chance(one: Found) -> bool:
    of_a = one.row.a
    return of_a is not None and of_a.type != one.row.b.type and (of_a.type == "Parameter" or one.row.b.tensor.isdigit())


def _reads_the_same(one: Found, rows: Mapping[Value, Found], pairs: Pairs, wrong: set[Value]) -> bool:
    """Whether a layer and its partner have one type and rank, and all computed inputs are right pairs."""
    partner = pairs.by_b.get(one.value)
    if (
        partner is None
        or partner.node.type != one.value.node.type
        or len(partner.node.inputs) != len(one.value.node.inputs)
    ):
        return False
    if _rank(partner) != _rank(one.value):
        return False
    for mine, theirs in zip(one.value.node.inputs, partner.node.inputs, strict=True):
        if mine is None or theirs is None:
            return mine is theirs
        if mine.node.constant is not None and theirs.node.constant is not None:
            if is_scaled(mine.node, theirs.node):
                # A scale after the layer of one model is folded into the weights of the other.
                return False
            if one.row.type.startswith("int") and not _are_equal_constants(mine.node.constant, theirs.node.constant):
                # Two exporters compute sizes in different layers: one reads the height where the other reads the batch.
                return False
            continue
        if pairs.by_b.get(mine) is not theirs or mine in wrong:
            return False
        if mine not in rows and mine.node.type != "Parameter":
            return False
    return True


def _are_equal_constants(one: Constant, other: Constant) -> bool:
    return np.array_equal(constant_value(one).ravel(), constant_value(other).ravel())


def _rank(value: Value) -> int | None:
    return None if value.fact is None or value.fact.shape is None else len(value.fact.shape)


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

    @property
    def size(self) -> tuple[int, str]:
        """The number of elements, and the kind of type."""
        return math.prod(self.shape), self.kind


def fingerprint(arrays: Sequence[np.ndarray]) -> Fingerprint | None:
    """The fingerprint of a tensor; None without distinctive elements.

    Args:
        arrays: the tensor in each run.
    """
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
    by_size: dict[tuple[int, str], list[Value]] = {}
    for value in sorted(a, key=lambda value: (order.get(value.node, 0), value.index)):
        by_size.setdefault(a[value].size, []).append(value)
    partners = set(taken.values())
    seen: dict[tuple[int, str], list[Fingerprint]] = {}
    found: list[TensorPair] = []
    for value, own in b.items():
        before = seen.setdefault(own.size, [])
        is_first = not any(_are_equal(one.sums, own.sums) for one in before)
        before.append(own)
        if not is_first or value in taken:
            continue
        equal = (
            other
            for other in by_size.get(own.size, ())
            if _are_equal(a[other].sums, own.sums) and _have_one_shape(a[other].shape, own.shape)
        )
        partner = next(equal, None)
        if partner is not None and partner not in partners:
            partners.add(partner)
            found.append(TensorPair(partner, value, "value"))
    return found


def permuted_candidates(
    a: Mapping[Value, Fingerprint], b: Mapping[Value, Fingerprint], taken: Mapping[Value, Value]
) -> list[tuple[Value, Value]]:
    """Tensors of A and B that may have the same values in another order of axes, if no third tensor has these values.

    Args:
        a, b: fingerprints of the tensors.
        taken: partners of values of B.
    """
    partners = set(taken.values())
    left_a = [value for value in a if value not in partners]
    left_b = [value for value in b if value not in taken]
    found = []
    for value in left_b:
        equal = [one for one in left_a if _are_permuted(a[one], b[value])]
        if len(equal) == 1 and sum(_are_permuted(a[equal[0]], b[other]) for other in left_b) == 1:
            found.append((equal[0], value))
    return found


def _are_permuted(one: Fingerprint, other: Fingerprint) -> bool:
    return (
        one.kind == other.kind and sorted(one.shape) == sorted(other.shape) and _are_equal(one.moments, other.moments)
    )


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


def _are_equal(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two fingerprints are equal up to rounding; each run has its scale first, then sums."""
    if len(one) != len(other):
        return False
    return all(
        abs(x - y) <= _EQUAL * scale
        for start in range(0, len(one), 4)
        for scale in (max(one[start], other[start]),)
        for x, y in zip(one[start : start + 4], other[start : start + 4], strict=True)
    )
