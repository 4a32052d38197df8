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


Held = Value | Tensors | Nothing
