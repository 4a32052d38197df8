"""Attributes of recurrent cells and sequences, which kernels, passes, bounds and exporters share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from irexec.schema.attributes import Floats, Positive

Names = tuple[str, ...]
Direction = Literal["forward", "reverse", "bidirectional"]


@dataclass(frozen=True, kw_only=True)
class CellAttributes:
    """RNNCell, and the attributes of every cell; alpha and beta are the parameters of the activations, in their order.

    The default activations are written out, as OpenVINO refuses an empty list.

    Attributes:
        gates: of the weights.
    """

    gates: ClassVar[int] = 1

    hidden_size: Positive
    activations: Names = ("tanh",)
    activations_alpha: Floats = ()
    activations_beta: Floats = ()
    clip: float = 0.0

    @property
    def bias_count(self) -> int:
        """The number of biases of each hidden unit."""
        return self.gates

    @property
    def default_activations(self) -> Names:
        """The activations of the operation; a cell has as many."""
        return type(self).activations

    @property
    def functions(self) -> Names:
        """The activations, by default those of the operation; further names are left out."""
        return (self.activations or self.default_activations)[: len(self.default_activations)]


@dataclass(frozen=True, kw_only=True)
class LSTMCellAttributes(CellAttributes):
    """LSTMCell-4."""

    gates: ClassVar[int] = 4

    activations: Names = ("sigmoid", "tanh", "tanh")


@dataclass(frozen=True, kw_only=True)
class LSTMCell1Attributes(LSTMCellAttributes):
    """LSTMCell-1: ``input_forget`` couples the input gate to the forget gate."""

    input_forget: bool = False
    weights_format: Literal["fico", "ifco", "icof", "ifoc", "iofc"] = "fico"


@dataclass(frozen=True, kw_only=True)
class GRUCellAttributes(CellAttributes):
    """GRUCell: with ``linear_before_reset`` the reset gate is applied after the product with R, which has a bias of its
    own."""

    gates: ClassVar[int] = 3

    activations: Names = ("sigmoid", "tanh")
    linear_before_reset: bool = False

    @property
    def bias_count(self) -> int:
        """The number of biases of each hidden unit."""
        return 4 if self.linear_before_reset else 3


@dataclass(frozen=True, kw_only=True)
class SequenceAttributes(CellAttributes):
    """RNNSequence, and the attributes of every sequence."""

    direction: Direction

    @property
    def reversed_directions(self) -> tuple[bool, ...]:
        """Whether each direction reads the sequences backwards."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]


@dataclass(frozen=True, kw_only=True)
class LSTMSequenceAttributes(SequenceAttributes, LSTMCellAttributes):
    """LSTMSequence."""

    activations: Names = LSTMCellAttributes.activations


@dataclass(frozen=True, kw_only=True)
class GRUSequenceAttributes(SequenceAttributes, GRUCellAttributes):
    """GRUSequence."""

    activations: Names = GRUCellAttributes.activations


@dataclass(frozen=True, kw_only=True)
class AUGRUSequenceAttributes(GRUSequenceAttributes):
    """AUGRUSequence, which has one direction."""

    direction: Literal["forward"] = "forward"


def sequence_of(cell: CellAttributes, direction: Direction) -> SequenceAttributes | None:
    """The attributes of the sequence that runs a cell of these attributes; None for a cell that no sequence has."""
    if isinstance(cell, LSTMCell1Attributes) and cell.input_forget:
        return None
    shared = {field.name: getattr(cell, field.name) for field in dataclasses.fields(CellAttributes)}
    if isinstance(cell, GRUCellAttributes):
        return GRUSequenceAttributes(**shared, linear_before_reset=cell.linear_before_reset, direction=direction)
    return SequenceAttributes(**shared, direction=direction)
