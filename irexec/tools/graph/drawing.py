"""What a graph shows: layers, the edges between them, and the frames that fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from irexec.analysis.cost import Cost
from irexec.ir.findings import Finding
from irexec.tools.graph.names import SHAPE_ARITHMETIC
from irexec.tools.inspect.summary import LayerLine
from irexec.tools.inspect.weights import WeightLine

SEVERITIES = ("error", "warning", "info")
"""The worst first."""

FrameKind = Literal["graph", "block", "layer", "body"]


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        index: its position in ``Drawing.layers``.
        line: what the file says of it, with inferred types and shapes.
        family: the name of its family of operations (irexec.tools.graph.families).
        cost: what it costs; None for one that computes nothing.
        drawn_in: the index of the layer that shows it as one of its inputs, for a constant; None for one with a box of its own.
        constants: the indices of the layers that are drawn in this one.
        reads: element type and shape of each input that is a constant, wherever that is drawn.
        statistics: of a constant, where they were asked for.
        findings: of validation, where they were asked for.
        milliseconds, share: median time and part of the whole, where they were measured; a layer that is computed along with
            another one has None.
        along_with: the name of the layer that it is computed along with, where times were measured.
    """

    index: int
    line: LayerLine
    family: str
    cost: Cost | None = None
    drawn_in: int | None = None
    constants: tuple[int, ...] = ()
    reads: tuple[str, ...] = ()
    statistics: WeightLine | None = None
    findings: tuple[Finding, ...] = ()
    milliseconds: float | None = None
    share: float | None = None
    along_with: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge: output ``output`` of layer ``source`` arrives at input ``input`` of layer ``target``; layers by index."""

    source: int
    output: int
    target: int
    input: int


@dataclass(frozen=True, slots=True)
class Link:
    """What is drawn as one line in a frame.

    Attributes:
        source, target: items of the frame; None for what comes from outside of it, or goes there.
        tensor: the layer and the output that it carries.
    """

    source: int | None
    target: int | None
    tensor: tuple[int, int]


@dataclass(frozen=True)
class Frame:
    """A part of a graph that is drawn as one box, or, unfolded, with what is in it.

    Attributes:
        index: its position in ``Drawing.frames``.
        kind: "graph" for the whole, "block" for layers of a common name, "layer" for one with bodies, "body" for one of several bodies.
        name: for people.
        parent: the frame that it is in; None for the whole.
        layer: the layer with the bodies, for the kind "layer".
        items: what is in it: the index of a layer, or for a frame ``~index``, which is negative.
        links: the lines in it.
        folded: whether it is drawn as one box, unless a reader unfolds it.
    """

    index: int
    kind: FrameKind
    name: str
    parent: int | None
    layer: int | None
    items: tuple[int, ...]
    links: tuple[Link, ...]
    folded: bool = False

    @property
    def is_dimmed(self) -> bool:
        """True for a block of shape arithmetic, which is drawn paler than the rest."""
        return self.kind == "block" and self.name == SHAPE_ARITHMETIC


@dataclass(frozen=True, repr=False)
class Drawing:
    """A graph, ready to be laid out and written.

    Attributes:
        name: of the model.
        layers: every layer that is drawn or drawn in another one.
        edges: those between them.
        frames: the first is the whole graph; a frame comes after the one that it is in.
        total: how many layers the model has, those of bodies included.
        cut: for a layer with edges to layers that are not part of the drawing, the names of these: those before it and those after it.
        findings: those that belong to no layer of the drawing.
        milliseconds: of a run, where it was measured.
    """

    name: str
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    frames: tuple[Frame, ...]
    total: int
    cut: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    milliseconds: float | None = None

    @property
    def boxes(self) -> int:
        """How many layers have a box of their own."""
        return sum(layer.drawn_in is None for layer in self.layers)

    @property
    def constants(self) -> int:
        """How many layers are drawn in others."""
        return len(self.layers) - self.boxes

    def inside(self, frame: Frame) -> Iterator[Layer]:
        """The layers with a box of their own in a frame and in the frames in it."""
        waiting = list(frame.items)
        while waiting:
            item = waiting.pop()
            if item >= 0:
                yield self.layers[item]
                continue
            inner = self.frames[~item]
            if inner.layer is not None:
                yield self.layers[inner.layer]
            waiting += inner.items

    def findings_of(self, layer: Layer) -> list[Finding]:
        """The findings of a layer and of the constants that are drawn in it."""
        return [finding for i in (layer.index, *layer.constants) for finding in self.layers[i].findings]

    def severity(self, layer: Layer) -> str | None:
        """The worst of these findings; None if there is none."""
        severities = {finding.severity for finding in self.findings_of(layer)}
        return next((name for name in SEVERITIES if name in severities), None)

    def tensor(self, layer: int, output: int) -> str:
        """The element type and shape of an output; "" where there is no such port."""
        outputs = self.layers[layer].line.outputs
        return outputs[output] if output < len(outputs) else ""

    def __repr__(self) -> str:
        folds = f", {len(self.frames) - 1} parts that fold" if len(self.frames) > 1 else ""
        return f"<Drawing of {self.name!r}: {self.boxes} of {self.total} layers{folds}>"

    def as_dict(self) -> dict[str, Any]:
        """What is drawn, for programs."""
        shown = [layer for layer in self.layers if layer.drawn_in is None]
        boxes = {layer.index for layer in shown}
        return {
            "layers": [self._row(layer) for layer in shown],
            "edges": [
                {"from": edge.source, "output": edge.output, "to": edge.target, "input": edge.input}
                for edge in self.edges
                if edge.source in boxes and edge.target in boxes
            ],
            "blocks": [
                {
                    "name": frame.name,
                    "kind": frame.kind,
                    "folded": frame.folded,
                    "layers": sorted(one.index for one in self.inside(frame)),
                }
                for frame in self.frames[1:]
            ],
        }

    def _row(self, layer: Layer) -> dict[str, Any]:
        line = layer.line
        return {
            "index": layer.index,
            "id": line.id,
            "path": line.path,
            "name": line.name,
            "type": line.type,
            "family": layer.family,
            "line": line.line,
            "constants": [self.layers[i].line.name for i in layer.constants],
            "findings": [finding.code for finding in self.findings_of(layer)],
            "milliseconds": layer.milliseconds,
        }
