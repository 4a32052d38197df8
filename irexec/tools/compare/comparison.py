"""The result of a comparison, and its contents: tensors, the first divergence, and counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from irexec.display import Column, Content, Section, Table, Text, sections_of
from irexec.ir.order import grouped
from irexec.messages import counted, listed
from irexec.records import Record
from irexec.tools.arrays.agreement import Agreement

_AROUND = 3
"""Number of rows that are shown before and after the first divergence."""
_NAMES = 8


@dataclass(frozen=True)
class ComparedLayer(Record):
    """A layer of one of the two models.

    Attributes:
        name: the name, after the path of its layers and bodies, each followed by a slash.
        type, id: as in the model.
        line: the line of the .xml; None for a model that was not read from one.
        tensor: the name of the compared output.
    """

    name: str
    type: str
    id: int
    line: int | None
    tensor: str

    def __str__(self) -> str:
        """With its type, id and line."""
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.name!r} ({self.type}, layer {self.id}{line})"


_LIKELY = 5
"""Maximum number of layers that are named if they are ordered by what they reach."""
_ROUNDING = 40.0
"""Minimum SNR in decibels of a difference by grown rounding; results below it are different results for a user."""


@dataclass(frozen=True)
class TensorRow(Record):
    """A tensor of both models.

    Attributes:
        a, b: its layers; a is None for recorded tensors.
        how: the reason for the pair: "tensor name", "name", "map", "value", or a reason of structure.
        type, shape: type and shape in B, with NumPy's name of the type.
        agreement: agreement of B with A, in the first run and iteration with a difference.
        run: the run, from 1.
        iteration: the iteration of each loop around the tensor, from 0; () outside of loops.
        follows: whether the tensor differs only because the inputs of its layer do: both layers return the same for
            equal inputs. None if it agrees, or if the layer could not be run alone.
        is_blind: whether it agrees but all its elements are equal, such as zeros: other layers could return the same.
        recorded: the name of the recorded tensor, such as "module:blocks.0#1[0]"; "" for a model.
    """

    a: ComparedLayer | None
    b: ComparedLayer
    how: str
    type: str
    shape: tuple[int, ...]
    agreement: Agreement
    run: int = 1
    iteration: tuple[int, ...] = ()
    follows: bool | None = None
    is_blind: bool = False
    recorded: str = ""

    @property
    def state(self) -> str:
        """The state in one word."""
        return "agrees" if self.agreement.agrees else "follows" if self.follows else "differs"

    @property
    def is_fault(self) -> bool:
        """Whether the tensor differs, and not only because the inputs of its layer do."""
        return not self.agreement.agrees and not self.follows

    @property
    def is_rounding(self) -> bool:
        """Whether the difference is only rounding that grew."""
        return bool(self.follows) and (self.agreement.snr or 0.0) >= _ROUNDING


@dataclass(frozen=True)
class InputRow(Record):
    """One input of a layer.

    Attributes:
        index: its position.
        name: the name of the tensor in B.
        agrees: whether the tensor is that of A; None if unknown.
        message: the difference, or the reason for None.
    """

    index: int
    name: str
    agrees: bool | None
    message: str


@dataclass(frozen=True)
class Suspect(Record):
    """A layer that may be at fault.

    Attributes:
        layer: the layer of B.
        inputs: its inputs.
        attributes: differing attributes, with their values in A and in B; None if absent. The types, if these differ.
        unknown_constants: names of the constants that it reads and that A does not have.
        correction: a change of the layer, as text after "with", by which the differing tensor becomes A's; "" if none
            is known.
        reach: fraction of the elements of the differing tensor that change with the layer's tensor, for a layer that
            reaches all differing elements; None if unknown.
    """

    layer: ComparedLayer
    inputs: tuple[InputRow, ...]
    attributes: Mapping[str, tuple[str | None, str | None]]
    unknown_constants: tuple[str, ...] = ()
    correction: str = ""
    reach: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the layer has other attributes, constants or inputs than that of A."""
        return bool(self.attributes or self.unknown_constants) or any(one.agrees is False for one in self.inputs)


@dataclass(frozen=True)
class Divergence(Record):
    """The first tensor that differs, and the layers that may be at fault.

    Attributes:
        row: the tensor.
        suspect: its layer.
        between: layers in front of this one that may be at fault too: their tensors are not compared, or agree in f16
            or bf16 alone.
    """

    row: TensorRow
    suspect: Suspect
    between: tuple[Suspect, ...]

    @property
    def likely(self) -> tuple[ComparedLayer, ...]:
        """The layers that may be at fault, the likeliest first.

        If some have corrections, these layers, the ones that differ from A's layers first. Else, if some read constants
        that A does not have, these layers and then the first one, unless all its inputs agree. Else, if only some
        elements differ, the layers that reach these and the fewest others.
        """
        suspects = (self.suspect, *self.between)
        corrected = sorted((one for one in suspects if one.correction), key=lambda one: not one.differs)
        if corrected:
            return tuple(one.layer for one in corrected)
        if any(one.unknown_constants for one in suspects):
            is_misled = any(one.agrees is False for one in self.suspect.inputs) and not self.suspect.unknown_constants
            unknown = [one.layer for one in suspects if one.unknown_constants]
            return (*unknown, self.suspect.layer) if is_misled else tuple(unknown)
        reaching = sorted((one for one in suspects if one.reach is not None), key=lambda one: one.reach or 0.0)
        others = (one for one in suspects if one.reach is None)
        return tuple(one.layer for one in (*reaching, *others))[: _LIKELY if reaching else None]

    @property
    def inputs_agree(self) -> bool | None:
        """Whether every input agrees; None if unknown."""
        inputs = self.suspect.inputs
        if any(one.agrees is False for one in inputs):
            return False
        return None if any(one.agrees is None for one in inputs) else True


@dataclass(frozen=True)
class Known(Record):
    """A known reason for other values in a runtime.

    Attributes:
        code: code of the finding of ``validate --portability``; "" for a reason found from the values themselves.
        layer: the layer.
        message: one sentence without a full stop.
        right: the runtime that agrees with the specification; "" if unknown.
    """

    code: str
    layer: ComparedLayer
    message: str
    right: str

    def __str__(self) -> str:
        """The sentence, with the code and the right runtime."""
        right = f"; {self.right} agrees with the specification" if self.right else ""
        return f"{self.code} {self.message}{right}".strip()


@dataclass(frozen=True)
class Uncompared(Record):
    """A tensor that is not compared.

    Attributes:
        side: "A" or "B".
        name, type: name of the tensor and type of its layer.
        reason: the reason.
    """

    side: str
    name: str
    type: str
    reason: str


ONLY_B = "only B has it"
"""The reason for a tensor without a partner."""


@dataclass(frozen=True)
class Comparison(Record):
    """Two models, tensor by tensor. A is the reference.

    Attributes:
        a, b: names of both models, with their runtimes.
        tolerance: the tolerance as text.
        rows: the observed tensors of both models, in the order in which B computes them.
        first: the first divergence; None if every row agrees.
        independent: all layers that differ although their inputs agree, the first divergence among them.
        results: the results, from runs without other observed tensors, with layers fused as usual.
        missing_results: results of both models that one runtime did not return.
        uncompared: all tensors without a row.
        notes: facts that a reader has to know.
        inputs: the shapes of the inputs of B.
        runs: number of runs.
        isolated: whether each layer was run alone.
        whole: "A" or "B" if the other model is a part of it.
        known: known reasons for the first divergence, or for differing results.
        hidden: inputs with an open axis of size 1, and layers that show no fault then.
    """

    a: str
    b: str
    tolerance: str
    rows: tuple[TensorRow, ...]
    first: Divergence | None
    independent: tuple[ComparedLayer, ...]
    results: tuple[TensorRow, ...]
    missing_results: tuple[str, ...]
    uncompared: tuple[Uncompared, ...]
    notes: tuple[str, ...]
    inputs: Mapping[str, tuple[int, ...]]
    runs: int = 1
    isolated: bool = False
    whole: str | None = None
    known: tuple[Known, ...] = ()
    hidden: str = ""

    @property
    def agrees(self) -> bool:
        """Whether no layer is at fault, no result is missing, and all results agree up to grown rounding."""
        if self.missing_results or any(row.is_fault for row in self.rows):
            return False
        return self.results_agree

    @property
    def results_agree(self) -> bool:
        """Whether all results agree up to grown rounding, whatever the tensors inside do."""
        return all(row.agreement.agrees or row.is_rounding for row in self.results)

    @property
    def verdict(self) -> str:
        """The verdict without a fault; "" if there is a fault, or if layers were run alone."""
        rows = (*self.rows, *self.results)
        if self.isolated or not self.results or self.missing_results or any(row.is_fault for row in rows):
            return ""
        if any(not row.agreement.agrees and row.agreement.largest is None for row in self.results):
            # Rounding changes no shape.
            return ""
        if not self.agrees:
            return (
                "every layer of both computes the same from the same inputs: "
                f"the results differ by rounding, which grows from {self._grown}"
            )
        count = sum(one.side == "B" and one.reason == ONLY_B for one in self.uncompared)
        found = f"the models agree with {self.hidden}" if self.hidden else "the models agree"
        if count:
            found += f"; {counted(count, 'intermediate tensor')} {'has' if count == 1 else 'have'} no counterpart"
        reshaped = [row for row in self.differing if row.agreement.largest is None]
        if follow := len(self.differing) - len(reshaped):
            found += f"; rounding grows beyond the tolerance in {counted(follow, 'tensor')}, first in {self._grown}"
        if reshaped:
            has = "has" if len(reshaped) == 1 else "have"
            found += f"; {counted(len(reshaped), 'tensor')} {has} another shape, first {reshaped[0].b}"
        return found

    @property
    def _grown(self) -> str:
        """The first layer with rounding beyond the tolerance."""
        rows = (row for row in (*self.rows, *self.results) if not row.agreement.agrees)
        first = next((row for row in rows if row.agreement.largest is not None), None)
        return "" if first is None else str(first.b)

    @property
    def blind(self) -> tuple[TensorRow, ...]:
        """Tensors that can show no fault with these inputs."""
        return tuple(row for row in self.rows if row.is_blind)

    @property
    def differing(self) -> tuple[TensorRow, ...]:
        """The tensors that differ."""
        return tuple(row for row in self.rows if not row.agreement.agrees)

    def __repr__(self) -> str:
        """One line."""
        count = len(self.differing)
        if self.first is None:
            observed = "some results could not be had" if self.missing_results else "results without observation do not"
            said = "no layer is at fault" if count else "all agree"
            said = said if self.agrees else f"{said}, {observed}"
        else:
            said = f"{count} differ, the first in layer {self.first.row.b.name!r} ({self.first.row.b.type})"
        return f"<Comparison of {self.a} and {self.b}: {counted(len(self.rows), 'tensor')}, {said}>"

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        found = asdict(self)
        if self.first is not None:
            found["first"]["inputs_agree"] = self.first.inputs_agree
            found["first"]["likely"] = [asdict(layer) for layer in self.first.likely]
        return {"agrees": self.agrees, **found}


@sections_of.register
def _(found: Comparison) -> Iterable[Content]:
    """The contents for a notebook: also what is compared, the notes, and folded every tensor and its difference."""
    columns = [Column(name, name) for name in ("side", "name", "type", "reason")]
    folded = [
        (counted(len(found.rows), "tensor"), rows_table(found.rows, is_full=True)),
        (counted(len(found.results), "result"), rows_table(found.results, is_full=True)),
        (f"{len(found.uncompared):,} not compared", Table(columns, found.uncompared, what="tensors")),
    ]
    return [
        Text(f"comparison of {found.a} and {found.b}", "title"),
        comparison_sections(found),
        [Section(title, table, is_folded=True) for title, table in folded if table.rows],
        [Text(note, "note") for note in found.notes],
    ]


def comparison_sections(found: Comparison, shows_all: bool = False) -> Iterator[Content]:
    """The tensors around the first divergence, the divergence, and counts; ``shows_all``: every tensor."""
    yield found.verdict or None
    yield rows_table(found.rows if shows_all else _shown(found))
    if found.first is not None:
        yield from _divergence(found.first, found)
    at = "" if found.first is None else found.first.row.b.name
    yield from (f"  known: {one}" for one in found.known if one.layer.name == at)
    others = grouped((str(one), str(one.layer)) for one in found.known if one.layer.name != at)
    yield from (f"  known of {listed(layers, 3)}: {text}" for text, layers in others.items())
    yield from _ending(found)


def rows_table(rows: Sequence[TensorRow], is_full: bool = False) -> Table:
    """Tensors and their differences; a full table also has their types and sentences about the differences."""
    columns = [
        Column("tensor", _name, "path"),
        Column("layer type", lambda row: row.b.type),
        Column("", lambda row: Text(row.state, "error" if row.is_fault else "")),
        Column("largest", lambda row: row.agreement.largest, "number"),
        Column("relative", lambda row: row.agreement.relative, "number"),
        Column("SNR", _decibels, "number"),
    ]
    if is_full:
        columns.insert(2, Column("type", lambda row: f"{row.type}[{','.join(map(str, row.shape))}]", "code"))
        columns.append(Column("difference", lambda row: row.agreement.message, "sentence"))
    return Table(columns, rows, hide_empty=False, what="tensors")


def _shown(found: Comparison) -> Sequence[TensorRow]:
    """The rows around the first divergence and the results; without a divergence, the rows with the largest errors."""
    if len(found.rows) <= 2 * _AROUND + 2:
        return found.rows
    if found.first is not None:
        at = found.rows.index(found.first.row)
        chosen = set(range(max(0, at - _AROUND), at + _AROUND + 1))
    else:
        chosen = set(sorted(range(len(found.rows)), key=lambda i: -(found.rows[i].agreement.relative or 0.0))[:_AROUND])
    results = {row.b for row in found.results}
    return [row for i, row in enumerate(found.rows) if i in chosen or row.b in results]


def _name(row: TensorRow) -> str:
    is_inside = bool(row.iteration) or any(f"/{body}/" in row.b.name for body in ("body", "then_body", "else_body"))
    path, _, own = row.b.tensor.rpartition("/") if is_inside else ("", "", row.b.tensor)
    inside = f" in {path}" if path else ""
    where = [] if row.agreement.agrees else _where(row)
    return f"{own} ({', '.join(where)}){inside}" if where else f"{own}{inside}"


def _where(row: TensorRow) -> list[str]:
    """The run and the iterations of a tensor."""
    return [*([f"run {row.run}"] if row.run > 1 else []), *(f"iteration {i}" for i in row.iteration)]


def _decibels(row: TensorRow) -> str | None:
    snr = row.agreement.snr
    return None if snr is None else "equal" if math.isinf(snr) and snr > 0 else f"{snr:.1f} dB"


def _divergence(first: Divergence, found: Comparison) -> Iterator[str]:
    row = first.row
    beside = f", beside {row.recorded!r}" if row.recorded not in ("", row.b.name, row.b.tensor) else ""
    yield f"first divergence: {', '.join([str(row.b), *_where(row)])}{beside}"
    yield f"  {row.agreement.message}"
    yield from (f"  {text}" for text in reasons(first.suspect))
    if row.a is not None and row.a.name != row.b.name:
        yield f"  in A it is {row.a}, matched by {row.how}"
    yield from _between(first)
    others = [f"{layer.name} ({layer.type})" for layer in found.independent if layer.name != row.b.name]
    if others:
        cause = "by themselves" if found.isolated else "although what they are computed from agrees"
        yield f"also differing {cause}: {listed(others, _NAMES)}"


def _between(first: Divergence) -> Iterator[str]:
    """The layers with a correction, else the preceding layers that may be at fault, with their differences."""
    if corrected := [suspect for suspect in (first.suspect, *first.between) if suspect.correction]:
        for suspect in corrected:
            where = "" if suspect is first.suspect else f"; the layer at fault is {suspect.layer}"
            yield f"  its values are those of A with {suspect.correction}{where}"
            yield from (f"    {text}" for text in ([] if suspect is first.suspect else _differences(suspect)))
        return
    likely = [layer.name for layer in first.likely]
    if len(likely) > 1 and likely[0] != first.suspect.layer.name:
        yield f"  at fault is probably {first.likely[0]}"
    described = [suspect for suspect in first.between if _differences(suspect)][:_NAMES]
    for suspect in described:
        yield f"  in front of it, and not ruled out: {suspect.layer}"
        yield from (f"    {text}" for text in _differences(suspect))
    others = [f"{each.layer.name} ({each.layer.type})" for each in first.between if each not in described]
    if others:
        yield f"  in front of it, and not ruled out: {listed(others, _NAMES)}"


def _differences(suspect: Suspect) -> list[str]:
    """The differences of a layer itself."""
    return list(reasons(replace(suspect, inputs=tuple(one for one in suspect.inputs if one.agrees is False))))


def reasons(suspect: Suspect) -> Iterator[str]:
    """Sentences about a layer that may be at fault."""
    for name, (mine, theirs) in suspect.attributes.items():
        yield f"{name}: {mine or 'absent'} in A, {theirs or 'absent'} in B"
    told = {one.name for one in suspect.inputs if one.agrees is False}
    for name in (name for name in suspect.unknown_constants if name not in told):
        yield f"constant {name!r} has values that no constant of A has"
    for one in suspect.inputs:
        state = "is not compared" if one.agrees is None else "agrees" if one.agrees else "differs"
        yield f"input {one.index} {one.name!r} {state}{f': {one.message}' if one.message else ''}"


def _ending(found: Comparison) -> Iterator[str]:
    """Counts."""
    count = len(found.differing)
    agree = len(found.rows) - count
    alone = ", each layer alone with the tensors of A" if found.isolated else ""
    follow = sum(bool(row.follows) for row in found.differing)
    only = f", {follow} of them only because their inputs do" if follow else ""
    compared = f"{counted(len(found.rows), 'tensor')} compared{alone}"
    yield f"{compared}: {agree} agree, {count} differ{only}; {found.tolerance}"
    bad = [row for row in found.results if not row.agreement.agrees]
    if bad:
        yield f"results that differ: {listed([row.b.tensor for row in bad], _NAMES)}"
    if not found.differing:
        yield from (f"  {row.b.tensor} when no tensor is observed: {row.agreement.message}" for row in bad[:_NAMES])
    if found.missing_results:
        yield f"results that could not be compared: {listed(found.missing_results, _NAMES)}"
    if found.blind:
        blind = listed([row.b.tensor for row in found.blind], _NAMES)
        text = "blind, since all their values are the same with these inputs"
        yield f"{text}: {blind}; --tries 5 compares with others too"
    for reason, names in grouped((one.reason, one.name) for one in found.uncompared).items():
        yield f"not compared, {reason}: {listed(names, _NAMES)}"
