"""Values of ONNX. IR has tensors only: other values must be resolved when a model is converted."""

from __future__ import annotations

from dataclasses import dataclass

from irexec.ir.graph import Value


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors, each a value of its own."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without an element. An optional with an element is represented by that element."""


@dataclass(frozen=True)
class LoopSequence:
    """A sequence that a loop appends to, as seen in the loop's body: the tensors that this iteration has appended."""

    added: tuple[Value, ...] = ()


@dataclass(frozen=True)
class StackedSequence:
    """A sequence after the loop that appended to it: the tensors ``first``, then the rows of ``rest``."""

    first: tuple[Value, ...]
    rest: Value


@dataclass(frozen=True)
class ScoresByLabel:
    """A sequence of maps, one for each row of ``scores``: the score of each label, in the order of the last axis."""

    labels: tuple[str, ...]
    scores: Value


OnnxValue = Value | TensorSequence | EmptyOptional | LoopSequence | StackedSequence | ScoresByLabel
