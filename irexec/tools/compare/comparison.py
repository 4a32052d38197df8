"""The result of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irexec.messages import counted
from irexec.records import Record
from irexec.tools.arrays.agreement import Agreement


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
        from dataclasses import asdict

        found = asdict(self)
        if self.first is not None:
            found["first"]["inputs_agree"] = self.first.inputs_agree
            found["first"]["likely"] = [asdict(layer) for layer in self.first.likely]
        return {"agrees": self.agrees, **found}
