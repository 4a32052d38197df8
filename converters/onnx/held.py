"""What ONNX has beside tensors: IR has neither, so that both must be resolved when a model is converted."""

from __future__ import annotations

from dataclasses import dataclass

from irexec.ir.graph import Value


@dataclass(frozen=True)
class Tensors:
    """A sequence of tensors, each of which is a value of its own."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Nothing:
    """An optional that has no element. One that has an element is that element."""


@dataclass(frozen=True)
class Growing:
    """A sequence that a loop makes longer, as the loop's body sees it: the tensors that are put behind it in this iteration."""

    added: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Stacked:
    """What a loop has made of a sequence: first tensors that are values of their own, then as many of one shape as ``rest`` has rows."""

    first: tuple[Value, ...]
    rest: Value


Held = Value | Tensors | Nothing | Growing | Stacked
