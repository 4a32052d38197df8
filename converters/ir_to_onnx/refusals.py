"""Written layers, refused layers, and the error that lists all refused ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.records import Record


@dataclass(frozen=True)
class RefusedLayer(Record):
    """A layer that cannot be written.

    Attributes:
        name, type, version: of the layer.
        line: of the .xml; None for a layer that was not read from a file.
        reason: why, as a sentence.
    """

    name: str
    type: str
    version: str
    line: int | None
    reason: str

    @staticmethod
    def of(node: Node, reason: str) -> RefusedLayer:
        """A layer, and why it cannot be written."""
        return RefusedLayer(node.name, node.type, node.version, node.line, reason)

    def __str__(self) -> str:
        where = "" if self.line is None else f", line {self.line}"
        return f"layer {self.name!r} ({self.type}{where}): {self.reason}"


@dataclass(frozen=True)
class WrittenLayer(Record):
    """A layer that is written.

    Attributes:
        name, type, version: of the layer.
        line: of the .xml; None for a layer that was not read from a file.
        operators: the operators of its nodes, in order; one is exact.
    """

    name: str
    type: str
    version: str
    line: int | None
    operators: tuple[str, ...]

    @staticmethod
    def of(node: Node, operators: Sequence[str]) -> WrittenLayer:
        """A layer and the operators of its nodes."""
        return WrittenLayer(node.name, node.type, node.version, node.line, tuple(operators))


class RefusedBody(OpError):
    """A body with layers that cannot be written, each of which is in the list of refused layers."""


class ExportError(ConversionError):
    """A model that cannot be written as ONNX.

    Attributes:
        layers: every layer that cannot be written, in the order of the model.
    """

    def __init__(self, layers: Sequence[RefusedLayer]) -> None:
        noun = counted(len(layers), "layer")
        super().__init__(f"{noun} cannot be written as ONNX: {'; '.join(map(str, layers))}", unsupported=True)
        self.layers = tuple(layers)
