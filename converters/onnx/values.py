"""The values of ONNX. IR has tensors only: the others must be resolved when a model is converted."""

from __future__ import annotations

from dataclasses import dataclass

from irexec.ir.graph import Value


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors, each of which is a value of its own."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without an element. One that has an element is represented by that element."""


@dataclass(frozen=True)
class LoopSequence:
    """A sequence that a loop appends to, as the loop's body sees it: the tensors that this iteration has appended so
    far."""

    added: tuple[Value, ...] = ()


@dataclass(frozen=True)
class StackedSequence:
    """The sequence after such a loop: tensors that are values of their own, then the rows of ``rest``, all of one
    shape."""

    first: tuple[Value, ...]
    rest: Value


OnnxValue = Value | TensorSequence | EmptyOptional | LoopSequence | StackedSequence
