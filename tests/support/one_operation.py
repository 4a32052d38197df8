"""The IR of one operation as text, for OpenVINO and for readers: nothing of irexec.io is used, so that an error there cannot hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from irexec.dtypes.elements import F32, I32, Element, pack
from irexec.errors import OpError
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.shape_text import write_shape
from irexec.testing import Case, Typed
from irexec.testing.laws import infer
from irexec.testing.rows import exact_facts


@dataclass
class Text:
    """A growing IR: layers, edges and the bytes of constants."""

    layers: list[str]
    edges: list[str]
    blob: bytearray

    def layer(
        self,
        type: str,
        version: str,
        attributes: dict[str, str],
        inputs: Sequence[tuple[int, int]],
        outputs: Sequence[Element | None],
    ) -> int:
        number = len(self.layers)
        data = " ".join(f"{name}={quoteattr(text)}" for name, text in attributes.items())
        ports = "".join(f'<port id="{i}"/>' for i in range(len(inputs)))
        gives = "".join(
            f'<port id="{len(inputs) + i}" precision="{(kind or F32).precision}"/>' for i, kind in enumerate(outputs)
        )
        body = (
            f"<data {data}/>"
            + (f"<input>{ports}</input>" if inputs else "")
            + (f"<output>{gives}</output>" if outputs else "")
        )
        self.layers.append(f'<layer id="{number}" name="n{number}" type="{type}" version="{version}">{body}</layer>')
        for i, (source, port) in enumerate(inputs):
            self.edges.append(f'<edge from-layer="{source}" from-port="{port}" to-layer="{number}" to-port="{i}"/>')
        return number

    def constant(self, element: Element, array: np.ndarray) -> int:
        raw = pack(element, array).tobytes()
        location = {"offset": str(len(self.blob)), "size": str(len(raw))}
        self.blob += raw
        shape = ", ".join(map(str, array.shape))
        return self.layer("Const", "opset1", {"element_type": element.name, "shape": shape} | location, [], [element])

    def parameter(self, element: Element, shape: str) -> int:
        return self.layer("Parameter", "opset1", {"shape": shape, "element_type": element.name}, [], [element])

    def convert(self, source: tuple[int, int], to: Element) -> tuple[int, int]:
        return self.layer("Convert", "opset1", {"destination_type": to.name}, [source], [to]), 1

    def as_gathered(self, source: tuple[int, int], x: Typed) -> tuple[int, int]:
        """The same values as a GatherElements of constants."""
        indices = np.broadcast_to(
            np.arange(len(x.array)).reshape(-1, *(1,) * (x.array.ndim - 1)), x.array.shape
        ).astype(np.int32)
        inputs = [source, (self.constant(I32, indices), 0)]
        return self.layer("GatherElements", "opset6", {"axis": "0"}, inputs, [x.element]), 2

    def xml(self) -> str:
        return f'<net name="one" version="11"><layers>{"".join(self.layers)}</layers><edges>{"".join(self.edges)}</edges></net>'

    def write(self, path: Path) -> None:
        """The .xml of this path, and the .bin beside it."""
        path.write_text(self.xml(), "utf-8")
        path.with_suffix(".bin").write_bytes(bytes(self.blob) or b"\0")


_SPELLED = {"Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}


def spelled(type: str) -> str:
    """The type as IR has it."""
    return _SPELLED.get(type, type)


def version_of(since: int | str) -> str:
    """The version of a layer."""
    return f"opset{since}" if isinstance(since, int) else since


def carried(element: Element) -> Element:
    """A type that NumPy has, to bring values of ``element`` in and out."""
    if element.native:
        return element
    return F32 if element.is_float else I32


@dataclass
class One:
    """One operation on its inputs.

    Attributes:
        text: the IR.
        node: the name of its layer.
        fed: what to feed the Parameters, by name.
        results: the names of the Results.
    """

    text: Text
    node: str
    fed: dict[str, np.ndarray]
    results: list[str]


def one_operation(row: Case, shapes: Mapping[int, PartialShape], gathered: Sequence[int] = ()) -> One:
    """The inputs in ``shapes`` are Parameters of these shapes, the others constants, those of ``gathered`` after a GatherElements."""
    text = Text([], [], bytearray())
    sources, fed = [], {}
    for i, x in enumerate(row.inputs):
        if i in shapes:
            kind = carried(x.element)
            source = (text.parameter(kind, write_shape(shapes[i])), 0)
            fed[f"n{source[0]}"] = x.array.astype(kind.carrier)
            sources.append(source if x.element.native else text.convert(source, x.element))
        else:
            source = (text.constant(x.element, x.array), 0)
            sources.append(text.as_gathered(source, x) if i in gathered else source)
    facts = _facts(row)
    node = text.layer(
        spelled(row.type), version_of(row.since), row.attributes, sources, [fact.element for fact in facts]
    )
    results = []
    for i, fact in enumerate(facts):
        out = (node, len(sources) + i)
        if fact.element is not None and not fact.element.native:
            out = text.convert(out, carried(fact.element))
        results.append(f"n{text.layer('Result', 'opset1', {}, [out], [])}")
    return One(text, f"n{node}", fed, results)


def _facts(row: Case) -> tuple[Fact, ...]:
    """What is inferred of the outputs; of a row that is refused, at least the first is there."""
    try:
        return infer(row, exact_facts(row))
    except OpError:
        return (Fact(None, None),)
