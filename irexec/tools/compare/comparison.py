"""What came of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irexec.messages import counted
from irexec.records import Record
from irexec.tools.arrays.agreement import Agreement


@dataclass(frozen=True)
class Layer(Record):
    """A layer of one of the two models.

    Attributes:
        name: with the path of the layers and bodies that it is in, each followed by a slash.
        type, id: as in the model.
        line: of the .xml; None for a model that was not read from one.
        tensor: the name of its output that is meant.
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


_ROUNDING = 40.0
"""Decibels that are left of a tensor whose rounding grew on its way; with less the results are others for those who use
them."""


@dataclass(frozen=True)
class TensorRow(Record):
    """A tensor that both have.

    Attributes:
        a, b: where it comes from; a is None where A is a file of tensors.
        how: why both are taken for the same: "tensor name", "name", "map", "folded" for a Constant of A that B
            computes, or what structure says.
        type, shape: of B, with NumPy's name of the type.
        agreement: of B with A, of the first run and iteration in which they differ.
        run: the run, from 1 on.
        iteration: of a tensor inside a loop, from 0 on, one for each loop; () outside.
        follows: whether it differs only because the inputs of its layer do: the layers of A and B give the same for the
            same inputs. None where it agrees, or where the layer could not be run alone.
        is_blind: it agrees, but has one value alone, zero say: another layer would give the same.
    """

    a: Layer | None
    b: Layer
    how: str
    type: str
    shape: tuple[int, ...]
    agreement: Agreement
    run: int = 1
    iteration: tuple[int, ...] = ()
    follows: bool | None = None
    is_blind: bool = False

    @property
    def state(self) -> str:
        """In one word."""
        return "agrees" if self.agreement.agrees else "follows" if self.follows else "differs"

    @property
    def is_fault(self) -> bool:
        """Whether it differs, and not only because the inputs of its layer do."""
        return not self.agreement.agrees and not self.follows

    @property
    def is_rounding(self) -> bool:
        """Whether it differs by no more than rounding that grew on its way."""
        return bool(self.follows) and (self.agreement.snr or 0.0) >= _ROUNDING


@dataclass(frozen=True)
class InputRow(Record):
    """One input of a layer.

    Attributes:
        index: its position.
        name: of the tensor in B.
        agrees: whether the tensor that arrives is the same; None where that is not known.
        message: what differs, or why it is not known.
    """

    index: int
    name: str
    agrees: bool | None
    message: str


@dataclass(frozen=True)
class Suspect(Record):
    """A layer that may be why a tensor differs.

    Attributes:
        layer: of B.
        inputs: of the layer.
        attributes: those that differ, with their values in A and in B; None where one has none. Of layers of two types,
            the types.
        unknown_constants: the names of constants that it reads and whose values no constant of A has.
    """

    layer: Layer
    inputs: tuple[InputRow, ...]
    attributes: Mapping[str, tuple[str | None, str | None]]
    unknown_constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Divergence(Record):
    """The first tensor that differs, and what is known of its layer.

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
    def likely(self) -> tuple[Layer, ...]:
        """The layers that may be at fault.

        If some read constants that A does not have, these layers and the first one, unless all its inputs agree.
        """
        suspects = (self.suspect, *self.between)
        if not any(one.unknown_constants for one in suspects):
            return tuple(one.layer for one in suspects)
        is_misled = any(one.agrees is False for one in self.suspect.inputs)
        return tuple(one.layer for one in suspects if one.unknown_constants or (is_misled and one is self.suspect))

    @property
    def inputs_agree(self) -> bool | None:
        """Whether every input agrees; None where that is not known of all."""
        inputs = self.suspect.inputs
        if any(one.agrees is False for one in inputs):
            return False
        return None if any(one.agrees is None for one in inputs) else True


@dataclass(frozen=True)
class Known(Record):
    """A known reason for which a runtime has other values.

    Attributes:
        code: of the finding of ``validate --portability``; "" for what was found with the values of this comparison.
        layer: where.
        message: one sentence without a full stop.
        right: the runtime that agrees with the specification; "" where none of the two is known to.
    """

    code: str
    layer: Layer
    message: str
    right: str

    def __str__(self) -> str:
        """The sentence, with the code and who is right."""
        right = f"; {self.right} agrees with the specification" if self.right else ""
        return f"{self.code} {self.message}{right}".strip()


@dataclass(frozen=True)
class Uncompared(Record):
    """A tensor that is not compared.

    Attributes:
        side: "A" or "B".
        name, type: of the tensor and of its layer.
        reason: why.
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
        a, b: what was compared, with the runtimes.
        tolerance: what counts as equal, for people.
        rows: every tensor that both have and that could be observed, in the order in which B computes them.
        first: the first divergence; None if every row agrees.
        independent: all layers that differ although what they are computed from agrees; the first among them.
        results: the results, from runs in which nothing else was observed, so that layers are fused as usual.
        missing_results: the results that both have and that could not be had from one of them.
        uncompared: all tensors that are not in ``rows``.
        notes: what one has to know to read this.
        inputs: the shapes of the inputs of B.
        runs: how many.
        isolated: whether each layer was run alone.
        whole: "A" or "B" where the other one is a part of it, whose inputs are its tensors.
        known: known reasons for the first divergence, or for results that differ.
    """

    a: str
    b: str
    tolerance: str
    rows: tuple[TensorRow, ...]
    first: Divergence | None
    independent: tuple[Layer, ...]
    results: tuple[TensorRow, ...]
    missing_results: tuple[str, ...]
    uncompared: tuple[Uncompared, ...]
    notes: tuple[str, ...]
    inputs: Mapping[str, tuple[int, ...]]
    runs: int = 1
    isolated: bool = False
    whole: str | None = None
    known: tuple[Known, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no layer is at fault, every result agrees but for rounding that grew on its way, and no result is
        missing."""
        if self.missing_results or any(row.is_fault for row in self.rows):
            return False
        return all(row.agreement.agrees or row.is_rounding for row in self.results)

    @property
    def verdict(self) -> str:
        """The sentence for two without a fault; "" if there is one, or layers were run alone."""
        if (
            self.isolated
            or not self.results
            or self.missing_results
            or any(row.is_fault for row in (*self.rows, *self.results))
        ):
            return ""
        if not self.agrees:
            return f"every layer of both computes the same from the same inputs: the results differ by what rounding makes of {self._grown}"
        count = sum(one.side == "B" and one.reason == ONLY_B for one in self.uncompared)
        without = (
            f"; {counted(count, 'intermediate tensor')} {'has' if count == 1 else 'have'} no counterpart"
            if count
            else ""
        )
        follow = len(self.differing)
        rounding = (
            f"; rounding grows beyond the tolerance in {counted(follow, 'tensor')}, first in {self._grown}"
            if follow
            else ""
        )
        return f"the models agree{without}{rounding}"

    @property
    def _grown(self) -> str:
        """Where rounding first grows beyond the tolerance."""
        first = next((row for row in (*self.rows, *self.results) if not row.agreement.agrees), None)
        return "" if first is None else str(first.b)

    @property
    def blind(self) -> tuple[TensorRow, ...]:
        """The tensors that cannot show a fault with these inputs."""
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
        """All of it as plain values."""
        from dataclasses import asdict

        found = asdict(self)
        if self.first is not None:
            found["first"]["inputs_agree"] = self.first.inputs_agree
            found["first"]["likely"] = [asdict(layer) for layer in self.first.likely]
        return {"agrees": self.agrees, **found}
