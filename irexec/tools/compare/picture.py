"""A comparison as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irexec.ir.graph import ModelGraph, Value
from irexec.tools.compare.comparison import Comparison, Divergence
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import Found, Rows
from irexec.tools.graph.beside import Beside, PairedTensor, tensors, with_images
from irexec.tools.observing.alone import arranged
from irexec.tools.observing.sides import ModelSide

_STATES = {
    "differs": "different",
    "follows": "different by their inputs",
    "agrees": "agreeing",
    "blind": "agreeing, of equal elements",
    "unpaired": "not compared",
}


def picture(evidence: Evidence, rows: Rows, comparison: Comparison) -> Beside:
    """A comparison as a picture, while both sides are open; the rows have the verdicts on their layers."""
    pairs = {pair.b: pair for pair in rows.pairs.tensors}
    is_single = evidence.is_one_model or not isinstance(evidence.a, ModelSide)
    made = [_row(found, pairs.get(found.value), rows, is_single) for found in rows.found]
    wrong = comparison.first
    first = next((i for i, found in enumerate(rows.found) if wrong is not None and found.row == wrong.row), None)
    if first is not None and wrong is not None:
        made[first] = replace(made[first], facts=(*made[first].facts, *_reasons(wrong)))
    drawn = with_images(made)
    values = {} if comparison.isolated else dict(_values(evidence, rows, pairs, drawn))
    made = [replace(row, tensors=values.get(i)) for i, row in enumerate(made)]
    models: tuple[tuple[str, ModelGraph], ...] = ((comparison.b, evidence.b.model),)
    if isinstance(evidence.a, ModelSide) and not is_single:
        models = ((comparison.a, evidence.a.model), *models)
    return Beside(_title(comparison), models, made, _STATES, first)


def _title(comparison: Comparison) -> str:
    if comparison.first is None:
        return comparison.verdict or "no layer is at fault"
    first = comparison.first
    likely = [one for one in first.likely[:2] if one != first.row.b]
    suspects = f"; at fault may be {' or '.join(map(str, likely))}" if likely else ""
    return f"the first difference is at {first.row.b}: {first.row.agreement.message}{suspects}"


def _row(found: Found, pair: TensorPair | None, rows: Rows, is_single: bool) -> PairedTensor:
    row = found.row
    partner = pair.a if pair is not None else rows.pairs.by_b.get(found.value)
    of_a = partner.node if isinstance(partner, Value) and not is_single else None
    facts = [("tensor", row.b.tensor)]
    if row.a is not None and row.a.tensor != row.b.tensor:
        facts.append(("tensor of A", row.a.tensor))
    facts += [("paired by", row.how)]
    if row.agreement.message:
        facts.append(("difference", row.agreement.message))
    elif row.agreement.largest is not None:
        facts.append(("largest difference", f"{row.agreement.largest:.4g}"))
    if row.run > 1 or row.iteration:
        facts.append(("run, iteration", ", ".join(map(str, (row.run, *row.iteration)))))
    state = "blind" if row.is_blind else row.state
    return PairedTensor(of_a, found.value.node, state, tuple(facts), row.agreement.snr)


def _reasons(first: Divergence) -> Iterator[tuple[str, str]]:
    """Names and texts about the first layer that differs: its inputs, attributes and constants."""
    suspect = first.suspect
    for one in suspect.inputs:
        state = {True: "agrees", False: "differs", None: "not known"}[one.agrees]
        yield f"input {one.index}", f"{one.name}: {state}{f', {one.message}' if one.message else ''}"
    for name, (a, b) in suspect.attributes.items():
        yield name, f"{'absent' if a is None else a} in A, {'absent' if b is None else b} in B"
    for constant in suspect.unknown_constants:
        yield "constant", f"{constant} is not in A"
    if suspect.correction:
        yield "agrees with", suspect.correction


def _values(
    evidence: Evidence, rows: Rows, pairs: dict[Value, TensorPair], drawn: set[int]
) -> Iterator[tuple[int, dict[str, object] | None]]:
    """The tensors of the rows outside of bodies, by the index of the row."""
    outer = {found.value: (i, found) for i, found in enumerate(rows.found) if not found.path and found.value in pairs}
    for batch in evidence.batches(list(outer), evidence.facts_b):
        of_a = evidence.tensors("A", [pairs[value].a for value in batch]).arrays
        of_b = evidence.tensors("B", batch).arrays
        for value in batch:
            i, found = outer[value]
            pair = pairs[value]
            runs = of_a.get(pair.a, ()), of_b.get(value, ())
            a, b = (arrays[found.row.run - 1] if found.row.run <= len(arrays) else None for arrays in runs)
            if a is not None and b is not None and a.shape != b.shape:
                a = arranged(a, b.shape, pair.order)
            yield i, tensors(("A", "B"), a, b, is_drawn=i in drawn)
