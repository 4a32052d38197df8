"""Files of versions 2 to 7 as tests write them: text of layers, ports numbered through, blobs one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PRECISIONS = {
    "float32": "FP32", "float16": "FP16", "int32": "I32", "int64": "I64", "uint8": "U8", "int8": "I8", "bool": "BOOL",
}  # fmt: skip


def port(number: int, shape: Sequence[int], precision: str | None = None) -> str:
    """The element of a port."""
    dims = "".join(f"<dim>{size}</dim>" for size in shape)
    return f'<port id="{number}"{f" precision={chr(34)}{precision}{chr(34)}" if precision else ""}>{dims}</port>'


@dataclass
class OldFile:
    """A file under construction.

    Attributes:
        version: of the file.
        layers, edges: elements as text.
        data: the .bin.
        after: elements after the edges.
    """

    version: int = 6
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    data: bytes = b""
    after: str = ""

    def layer(
        self,
        type: str,
        name: str,
        inputs: Sequence[tuple[int, int, Sequence[int]]] = (),
        outputs: Sequence[Sequence[int]] = (),
        attributes: Mapping[str, Any] | None = None,
        blobs: Mapping[str, np.ndarray] | None = None,
        precision: str = "FP32",
        precisions: Sequence[str] = (),
        tag: str = "data",
        inside: str = "",
    ) -> int:
        """Add a layer; its id.

        Args:
            type, name: of the layer.
            inputs: layer, port and sizes of what arrives.
            outputs: sizes of the output ports.
            attributes: of ``tag``.
            blobs: by tag.
            precision: of the layer; none in version 7 for ports.
            precisions: of the output ports.
            tag: the element of the attributes.
            inside: further elements as text.
        """
        number = len(self.layers)
        for index, (source, source_port, _) in enumerate(inputs):
            self.edges.append(
                f'<edge from-layer="{source}" from-port="{source_port}" to-layer="{number}" to-port="{index}"/>'
            )
        text = f'<layer id="{number}" name="{name}" type="{type}" precision="{precision}">\n'
        if attributes is not None:
            written = "".join(f' {key}="{value}"' for key, value in attributes.items())
            text += f"<{tag}{written}/>\n"
        if inputs:
            text += f"<input>{''.join(port(i, shape) for i, (_, _, shape) in enumerate(inputs))}</input>\n"
        if outputs:
            first = len(inputs)
            kinds = [*precisions, *[None] * len(outputs)]
            ports = "".join(port(first + i, shape, kinds[i]) for i, shape in enumerate(outputs))
            text += f"<output>{ports}</output>\n"
        self.layers.append(f"{text}{self._blobs(blobs or {})}{inside}</layer>\n")
        return number

    def _blobs(self, blobs: Mapping[str, np.ndarray]) -> str:
        text = ""
        for tag, array in blobs.items():
            text += f'<{tag} offset="{len(self.data)}" size="{array.nbytes}"/>'
            self.data += array.tobytes()
        return text if not text or self.version == 2 else f"<blobs>{text}</blobs>"

    def input(self, name: str, shape: Sequence[int], precision: str = "FP32") -> int:
        """Add an input; its id."""
        return self.layer("Input", name, (), [shape], precision=precision, precisions=[precision])

    def const(self, name: str, array: np.ndarray) -> int:
        """Add a constant; its id."""
        kind = PRECISIONS[array.dtype.name]
        return self.layer("Const", name, (), [array.shape], blobs={"custom": array}, precision=kind, precisions=[kind])

    @property
    def text(self) -> bytes:
        """The .xml."""
        layers, edges = "".join(self.layers), "\n".join(self.edges)
        return (
            f'<?xml version="1.0" ?>\n<net name="old" version="{self.version}" batch="1">\n<layers>\n{layers}</layers>\n'
            f"<edges>\n{edges}\n</edges>\n{self.after}</net>\n"
        ).encode()


def single(
    type: str,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[Sequence[int]],
    attributes: Mapping[str, Any] | None = None,
    *,
    constants: Sequence[int] = (),
    **options: Any,
) -> tuple[OldFile, dict[str, np.ndarray]]:
    """A file of one layer ``y``, and the values of its inputs ``x0``, ``x1``, ...

    Args:
        type, attributes: of the layer.
        inputs: values of its inputs.
        outputs: sizes of its outputs.
        constants: indices of the inputs that are constants.
        options: ``version``, and arguments of OldFile.layer.
    """
    file = OldFile(options.pop("version", 6))
    sources = []
    for index, array in enumerate(inputs):
        kind = PRECISIONS[array.dtype.name]
        number = file.const(f"x{index}", array) if index in constants else file.input(f"x{index}", array.shape, kind)
        sources.append((number, 0, array.shape))
    file.layer(type, "y", sources, outputs, attributes, **options)
    given = {f"x{index}": array for index, array in enumerate(inputs) if index not in constants}
    return file, given
