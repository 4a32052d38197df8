"""Correction of pairs that differ: by equal values, by equal readers, and without wrong guesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from irexec.analysis.constant_layers import constant_layers
from irexec.ir.graph import Value
from irexec.tools.compare.backwards import Backwards
from irexec.tools.compare.comparison import ONLY_B, Uncompared
from irexec.tools.compare.divergence import differing_attributes
from irexec.tools.compare.evidence import (
    Fingerprint,
    fingerprint,
    have_same_elements,
    is_suspicious,
    order_of_axes,
    pair_by_value,
    permuted_candidates,
    wrong_pairs,
)
from irexec.tools.compare.folded import pair_with_constants
from irexec.tools.compare.judge import Judge
from irexec.tools.compare.observe import Facts, Observed
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.pairs import TensorPair, pair_models
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.rows import Ancestors, Found, Rows
from irexec.tools.compare.sides import ModelSide, computed

_MAX_ROUNDS = 20
"""Maximum number of rounds in which wrong pairs are dropped: dropped pairs reveal other wrong ones."""


class Repairing:
    """The pairs of a comparison, corrected.

    Args:
        context: the comparison, whose pairs are changed.
        a: its first side.
        rows: the rows of the pairs, which are changed as well.
        facts: facts of the values of A, and of the values of B.
        judge: the judge of single layers; None if the metric does not compare values.
    """

    def __init__(
        self, context: OpenSides, a: ModelSide, rows: Rows, facts: tuple[Facts, Facts], judge: Judge | None
    ) -> None:
        self._context, self._a, self._rows, self._facts, self._judge = context, a, rows, facts, judge

    def repaired(self, uncompared: list[Uncompared]) -> list[Uncompared]:
        """Pair differing tensors again, and drop pairs that were guessed wrongly; returns the tensors that are not
        compared."""
        added = self._paired_by_value()
        self._replace(added)
        self._add(added, uncompared)
        if not self._results_agree():
            again = self._paired_again()
            self._add(again, uncompared)
            added += [*again, *self._paired_with_constants(uncompared)]
        dropped = self._drop_wrong()
        added += self._paired_backwards(uncompared)
        late = self._paired_with_constants(uncompared)
        if late:
            added += late
            dropped |= self._drop_wrong()
        return [
            *self._still_uncompared(uncompared, added),
            *(
                Uncompared("B", value.name, value.node.type, ONLY_B)
                for value in dropped
                if value not in self._context.pairs.by_b
            ),
        ]

    def _drop_wrong(self) -> set[Value]:
        """Drop wrongly guessed pairs until none is found; returns their values of B."""
        dropped: set[Value] = set()
        for _ in range(_MAX_ROUNDS):
            wrong = self._wrong_pairs()
            if not wrong:
                break
            self._forget_readers(wrong)
            self._drop(wrong)
            dropped |= wrong
        return dropped

    def _forget_readers(self, values: set[Value]) -> None:
        """Drop the judgements of the layers that read these values of B."""
        if self._judge is not None:
            ancestors = self._ancestors()
            self._judge.forget(
                {one.value for one in self._rows.found if not values.isdisjoint(ancestors.of(one.value)[0])}
            )

    def _paired_with_constants(self, uncompared: list[Uncompared]) -> list[TensorPair]:
        """Pair tensors of B with Constants into which A's exporter has folded them, such as positions and masks."""
        if self._results_agree():
            return []
        agree = {one.value for one in self._rows.found if one.row.agreement.agrees}
        added = pair_with_constants(self._a, self._context.b, self._context.pairs, self._facts, agree)
        self._replace(added)
        self._add(added, uncompared)
        self._forget_readers({pair.b for pair in added})
        return added

    def _paired_by_value(self) -> list[TensorPair]:
        """Pairs by equal values, for tensors without a partner and for guessed pairs that differ."""
        doubtful = {one.value for one in self._rows.found if is_suspicious(one)}
        constant = constant_layers(self._context.b.model)
        random = random_layers(self._context.b.order, seeded=self._context.seeded)
        of_b = [value for value in computed(self._context.b.order) if value.node not in constant | random.keys()]
        prints_a = self._fingerprints(self._context.observed_a, list(computed(self._a.order)), self._facts[0])
        prints_b = self._fingerprints(self._context.observed_b, of_b, self._facts[1])
        taken = {value: partner for value, partner in self._context.pairs.by_b.items() if value not in doubtful}
        found = pair_by_value(prints_a, prints_b, taken, {node: i for i, node in enumerate(self._a.order)})
        taken |= {pair.b: pair.a for pair in found if isinstance(pair.a, Value)}
        return [*found, *self._permuted(permuted_candidates(prints_a, prints_b, taken))]

    def _permuted(self, candidates: Sequence[tuple[Value, Value]]) -> list[TensorPair]:
        """The candidates with the same values in another order of axes."""
        found: list[TensorPair] = []
        for batch in self._context.batches(
            [TensorPair(one, other, "value") for one, other in candidates], self._facts[1]
        ):
            of_a = self._context.observed_a([pair.a for pair in batch])
            of_b = self._context.observed_b(pair.b for pair in batch)
            for pair in batch:
                if pair.a in of_a.arrays and pair.b in of_b.arrays:
                    order = order_of_axes(of_a.arrays[pair.a][0], of_b.arrays[pair.b][0])
                    found += [] if order is None else [replace(pair, order=order)]
        return found

    def _paired_again(self) -> list[TensorPair]:
        """Match the models again, starting from the tensors that agree; returns the new pairs."""
        # Tensors of zeros, which have no angle between them, say nothing.
        agree = {
            one.value for one in self._rows.found if one.row.agreement.agrees and one.row.agreement.cosine is not None
        }
        known = [pair for pair in self._context.pairs.tensors if pair.b in agree]
        before, self._context.pairs = (
            self._context.pairs,
            pair_models(self._a, self._context.b, self._context.options.maps, known),
        )
        added = [pair for pair in self._context.pairs.tensors if before.by_b.get(pair.b) is not pair.a]
        kept = {pair.b for pair in self._context.pairs.tensors} - {pair.b for pair in added}
        self._rows.found = [one for one in self._rows.found if one.value in kept]
        return added

    def _paired_backwards(self, uncompared: list[Uncompared]) -> list[TensorPair]:
        """Pair differing tensors by the layers that read them, from the results backwards; returns the new pairs."""
        if self._judge is None or self._results_agree():
            return []
        outer = [one for one in self._rows.found if not one.path]
        judgements = self._judge.judgements([one for one in outer if not one.row.agreement.agrees])
        known = {
            one.value
            for one in outer
            if not is_suspicious(one) or (one.value in judgements and judgements[one.value].agreement.agrees)
        }
        added = Backwards(self._context, self._rows, self._facts, known).pairs()
        if added:
            self._replace(added)
            self._add(added, uncompared)
            self._judge.forget({one.value for one in self._rows.found if not one.row.agreement.agrees})
        return added

    def _add(self, pairs: Sequence[TensorPair], uncompared: list[Uncompared]) -> None:
        """Add the rows of late pairs."""
        for batch in self._context.batches(pairs, self._facts[1]):
            self._context.add(batch, self._rows, uncompared)
        self._rows.sort()

    def _replace(self, added: Sequence[TensorPair]) -> None:
        """Replace other pairs of the same tensors."""
        new = {pair.b: pair.a for pair in added if isinstance(pair.a, Value)}
        partners = set(new.values())
        self._drop({value for value, one in self._context.pairs.by_b.items() if value in new or one in partners})
        self._context.pairs.by_b |= new
        self._context.pairs.orders |= {pair.b: pair.order for pair in added if pair.order}
        order = {node: i for i, node in enumerate(self._context.b.order)}
        self._context.pairs.tensors = sorted(
            [*self._context.pairs.tensors, *added], key=lambda pair: (order.get(pair.b.node, 0), pair.b.index)
        )

    def _wrong_pairs(self) -> set[Value]:
        """Values of B with a wrong partner, judged by the remaining pairs."""
        found = [one for one in self._rows.found if not one.path]
        ancestors, agree = self._ancestors(), self._results_agree()
        doubtful = {one.value for one in found if is_suspicious(one)} if agree else set()
        asked = [
            one for one in found if not one.row.agreement.agrees or not doubtful.isdisjoint(ancestors.of(one.value)[0])
        ]
        if moved := self._moved([one for one in found if is_suspicious(one) and one.has_another_shape]):
            return moved
        judgements = self._judge.judgements(asked) if self._judge else {}
        follows = {value: judgement.agreement.agrees for value, judgement in judgements.items()}
        return wrong_pairs(
            found,
            self._context.pairs,
            ancestors,
            follows,
            lambda one, other: bool(differing_attributes(one.node, other.node)),
            lambda value: value.node in self._context.unknown_constants,
            results_agree=agree,
        )

    def _moved(self, suspicious: Sequence[Found]) -> set[Value]:
        """Values of B that have the elements of their guessed partners in another order, or other axes of size 1.

        One exporter transposes the keys of an attention, the other tells the product to read them so: such a pair is a
        wrong guess, whether the results agree or not. Another number of axes is a difference of its own.
        """
        pairs = {pair.b: pair for pair in self._context.pairs.tensors}
        asked = [pairs[one.value] for one in suspicious if one.value in pairs]
        of_a = self._context.observed_a([pair.a for pair in asked]).arrays
        of_b = self._context.observed_b([pair.b for pair in asked]).arrays
        return {
            pair.b
            for pair in asked
            if pair.a in of_a
            and pair.b in of_b
            and of_a[pair.a][0].ndim == of_b[pair.b][0].ndim
            and all(map(have_same_elements, of_a[pair.a], of_b[pair.b]))
        }

    def _ancestors(self) -> Ancestors:
        return Ancestors([one.value for one in self._rows.found], self._context.b.model)

    def _results_agree(self) -> bool:
        """Whether all computed results are compared and agree."""
        results = {value for node in self._context.b.model.results for value in node.inputs if value is not None}
        asked = {value for value in results if value.node.type not in ("Parameter", "Constant")}
        found = {one.value: one.row.agreement.agrees for one in self._rows.found}
        return bool(asked) and all(found.get(value, False) for value in asked)

    def _drop(self, values: set[Value]) -> None:
        """Drop the pairs of these values of B."""
        self._rows.found = [one for one in self._rows.found if one.value not in values]
        for value in values:
            self._context.pairs.by_b.pop(value, None)
            self._context.pairs.orders.pop(value, None)
            self._context.pairs.layers.pop(value.node, None)
        self._context.pairs.tensors = [pair for pair in self._context.pairs.tensors if pair.b not in values]

    def _still_uncompared(self, uncompared: Sequence[Uncompared], added: Sequence[TensorPair]) -> list[Uncompared]:
        named = {("A", pair.a.name) for pair in added if isinstance(pair.a, Value)} | {
            ("B", pair.b.name) for pair in added
        }
        return [one for one in uncompared if (one.side, one.name) not in named]

    def _fingerprints(
        self, observed: Callable[[Sequence[Value]], Observed], values: Sequence[Value], facts: Facts
    ) -> dict[Value, Fingerprint]:
        """Fingerprints of the values with distinctive elements."""
        found: dict[Value, Fingerprint] = {}
        for batch in self._context.batches([TensorPair(value, value, "") for value in values], facts):
            arrays = observed([pair.b for pair in batch]).arrays
            for pair in batch:
                made = fingerprint(arrays[pair.b]) if pair.b in arrays else None
                if made is not None:
                    found[pair.b] = made
        return found
