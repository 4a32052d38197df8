"""Networks of IR versions 2 to 7, written as text; nothing of irexec is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

Shape = tuple[int, ...]

KINDS = {
    "FP32": np.float32, "FP16": np.float16, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "I8": np.int8,
    "BIN": np.uint8, "I16": np.int16, "U16": np.uint16,
}  # fmt: skip
"""The NumPy type of each precision; BIN in bytes of 8 elements."""

V2_ELEMENTS = {
    "Convolution": "convolution_data", "Deconvolution": "deconvolution_data", "Pooling": "pooling_data",
    "FullyConnected": "fc_data", "InnerProduct": "fc_data", "ReLU": "relu_data", "Power": "power_data",
    "Concat": "concat_data", "Norm": "norm_data", "LRN": "norm_data", "Eltwise": "elementwise_data",
    "BatchNormalization": "batch_norm_data",
}  # fmt: skip
"""The element that holds the attributes of a layer in version 2, for the types where it is not <data>."""


@dataclass(frozen=True)
class Port:
    """An output port of a layer."""

    layer: int
    id: int
    shape: Shape
    precision: str


@dataclass
class Layer:
    """A layer as it is written.

    Attributes:
        inputs: None is an input port of a body that the loop feeds.
        blobs: offset and size in bytes by name: weights, biases, custom.
        inner: further elements, as text.
    """

    id: int
    name: str
    type: str
    precision: str
    data: Mapping[str, Any]
    inputs: Sequence[Port | None]
    input_shapes: Sequence[tuple[Shape, str]]
    outputs: Sequence[Port]
    blobs: dict[str, tuple[int, int, str]]
    inner: str = ""


@dataclass
class Network:
    """A network under construction.

    Attributes:
        version: of the IR, 2 to 7.
        precision: of floating-point layers.
        type: the layer type that the network is to use.
        blob: the .bin.
        feeds: the arrays of the inputs by name, for each run.
        only: the releases that run it, if not both.
        first_run: the first run whose results count.
        rtol, atol: tolerances of the comparison; ``atol`` is relative to the largest value of the output.
        rng: the source of everything random.
    """

    version: int
    rng: np.random.Generator
    precision: str = "FP32"
    type: str = ""
    name: str = "net"
    blob: bytearray = field(default_factory=bytearray)
    layers: list[Layer] = field(default_factory=list)
    edges: list[tuple[Port, int, int]] = field(default_factory=list)
    feeds: list[dict[str, np.ndarray]] = field(default_factory=lambda: [{}])
    only: tuple[str, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    head: str = ""
    first_run: int = 0

    def input(self, value: np.ndarray, precision: str | None = None, name: str | None = None) -> Port:
        """An Input layer that gets this array in the first run."""
        precision = precision or (self.precision if value.dtype.kind == "f" else _precision(value))
        (port,) = self.layer("Input", [], [value.shape], precision=precision, name=name)
        self.feeds[0][self.layers[-1].name] = value
        return port

    def const(self, value: np.ndarray, precision: str | None = None) -> Port:
        """A Const layer."""
        precision = precision or (self.precision if value.dtype.kind == "f" else _precision(value))
        (port,) = self.layer("Const", [], [value.shape], blobs={"custom": value}, precision=precision)
        return port

    def layer(
        self,
        type: str,
        inputs: Sequence[Port | None],
        outputs: Sequence[Shape],
        data: Mapping[str, Any] | None = None,
        blobs: Mapping[str, np.ndarray | None] | None = None,
        *,
        precision: str | None = None,
        precisions: Sequence[str] | None = None,
        shapes: Sequence[tuple[Shape, str]] = (),
        name: str | None = None,
        gap: int = 0,
        inner: str = "",
    ) -> list[Port]:
        """A layer with its edges.

        Args:
            type: its type.
            inputs: the ports that it reads; None in a body, with its shape and precision in ``shapes``.
            outputs: the shapes of its outputs.
            data: its attributes.
            blobs: arrays by name; None is absent.
            precision: of the layer; the network's unless given.
            precisions: of the output ports; the layer's unless given. Written in version 7 only.
            shapes: of inputs that are None.
            name: its name.
            gap: ids that are left out between inputs and outputs.
            inner: further elements, as text.

        Returns: its output ports.
        """
        index = len(self.layers)
        precision = precision or self.precision
        written = {key: self._store(array, precision) for key, array in (blobs or {}).items() if array is not None}
        first = len(inputs) + gap
        kinds = precisions or [precision] * len(outputs)
        ports = [Port(index, first + i, tuple(s), kinds[i]) for i, s in enumerate(outputs)]
        given = iter(shapes)
        facts = [next(given) if p is None else (p.shape, p.precision) for p in inputs]
        name = name or f"{type.lower()}{index}"
        self.layers.append(Layer(index, name, type, precision, data or {}, inputs, facts, ports, written, inner))
        self.edges += [(port, index, i) for i, port in enumerate(inputs) if port is not None]
        return ports

    def _store(self, array: np.ndarray, precision: str) -> tuple[int, int, str]:
        """Append an array to the .bin: its offset, its size, and its precision."""
        kind = precision if array.dtype.kind == "f" or precision == "BIN" else _precision(array)
        data = np.ascontiguousarray(array.astype(KINDS[kind])).tobytes()
        # Blobs need no order and no alignment but that of their elements; gaps are allowed.
        self.blob.extend(b"\xab" * (-len(self.blob) % 8 + 8 * int(self.rng.integers(2))))
        offset = len(self.blob)
        self.blob.extend(data)
        return offset, len(data), kind

    def xml(self) -> str:
        """The .xml."""
        layers, edges = self.body_text()
        return (
            f'<?xml version="1.0" ?>\n<net batch="1" name={quoteattr(self.name)} version="{self.version}">\n{self.head}'
            f"<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n</net>\n"
        )

    def body_text(self) -> tuple[str, str]:
        """The layers and the edges."""
        edges = "".join(
            f'<edge from-layer="{source.layer}" from-port="{source.id}" to-layer="{layer}" to-port="{port}"/>\n'
            for source, layer, port in self.edges
        )
        return "".join(map(self._layer_text, self.layers)), edges

    def _layer_text(self, layer: Layer) -> str:
        data = "".join(f" {key}={quoteattr(_text(value))}" for key, value in layer.data.items())
        element = V2_ELEMENTS.get(layer.type, "data") if self.version == 2 else "data"
        parts = [f"<{element}{data}/>\n" if layer.data else ""]
        for tag, ports in (
            ("input", [(i, *fact) for i, fact in enumerate(layer.input_shapes)]),
            ("output", [(port.id, port.shape, port.precision) for port in layer.outputs]),
        ):
            if ports:
                parts.append(f"<{tag}>\n{''.join(self._port_text(*port, tag) for port in ports)}</{tag}>\n")
        parts.append(layer.inner)
        blobs = "".join(
            f'<{key} offset="{offset}" size="{size}"{self._blob_precision(layer, kind)}/>\n'
            for key, (offset, size, kind) in layer.blobs.items()
        )
        if blobs:
            parts.append(blobs if self.version == 2 else f"<blobs>\n{blobs}</blobs>\n")
        head = f'id="{layer.id}" name={quoteattr(layer.name)} precision="{layer.precision}" type="{layer.type}"'
        return f"<layer {head}>\n{''.join(parts)}</layer>\n"

    def _blob_precision(self, layer: Layer, kind: str) -> str:
        return "" if kind == layer.precision else f' precision="{kind}"'

    def _port_text(self, id: int, shape: Shape, precision: str, tag: str) -> str:
        dims = "".join(f"<dim>{size}</dim>" for size in shape)
        kind = f' precision="{precision}"' if self.version >= 7 and tag == "output" else ""
        return f'<port id="{id}"{kind}>{dims}</port>\n'


def _precision(array: np.ndarray) -> str:
    """The precision of an array of integers."""
    return next(name for name, kind in KINDS.items() if name != "BIN" and array.dtype == kind)


def _text(value: Any) -> str:
    """An attribute as Model Optimizer writes it."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(map(_text, value))
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return str(value)
