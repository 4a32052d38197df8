"""The content of a drawing: layers, the edges between them, and the frames that fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from irexec.analysis.cost import Cost
from irexec.ir.findings import Finding
from irexec.messages import counted
from irexec.records import Shown
from irexec.tools.graph.names import SHAPE_ARITHMETIC
from irexec.tools.inspect.summary import LayerLine
from irexec.tools.inspect.weights import WeightLine

SEVERITIES = ("error", "warning", "info")
"""Severities, the worst first."""

FrameKind = Literal["graph", "block", "layer", "body"]


@dataclass(frozen=True)
class DrawnLayer:
    """One layer.

    Attributes:
        index: its position in ``Drawing.layers``.
        line: its entry in the file, with inferred types and shapes.
        family: the name of its family of operations (irexec.tools.graph.families).
        cost: None for a layer that computes nothing.
        drawn_in: the index of the layer that shows this constant; None for a layer with a box of its own.
        constants: the indices of the layers that are drawn in this one.
        reads: element type and shape of each input that is a constant.
        statistics: of a constant; None unless requested.
        findings: of validation; empty unless requested.
        milliseconds, share: median time and part of the whole; None unless measured, and for a layer that is computed
            along with another one.
        along_with: the name of the other layer.
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
class DrawnEdge:
    """An edge: output ``output`` of layer ``source`` arrives at input ``input`` of layer ``target``; layers by
    index."""

    source: int
    output: int
    target: int
    input: int


@dataclass(frozen=True, slots=True)
class Link:
    """A line in a frame.

    Attributes:
        source, target: items of the frame; None for the outside.
        tensor: the layer and the output.
    """

    source: int | None
    target: int | None
    tensor: tuple[int, int]


@dataclass(frozen=True)
class DrawnFrame:
    """A part of a graph that is drawn as one box, or unfolded with its content.

    Attributes:
        index: its position in ``Drawing.frames``.
        kind: "graph" for the whole, "block" for layers of a common name, "layer" for a layer with bodies, "body" for
            one of several bodies.
        name: for people.
        parent: the frame around it; None for the whole.
        layer: the layer with the bodies, for the kind "layer".
        items: the content: the index of a layer, or the negative number ``~index`` of a frame.
        links: the lines in it.
        folded: True if it is drawn as one box until a reader unfolds it.
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
        """True for a block of shape arithmetic, which is drawn in pale colours."""
        return self.kind == "block" and self.name == SHAPE_ARITHMETIC


@dataclass(frozen=True, repr=False)
class Drawing(Shown):
    """A graph, ready to be laid out and written.

    Attributes:
        name: of the model.
        layers: every layer with a box, and every layer that is drawn in another one.
        edges: between these layers.
        frames: the first is the whole graph; a frame comes after the frame around it.
        total: number of layers of the model, bodies included.
        cut: the neighbours outside of the drawing, before and after each layer that has some, by name.
        findings: findings that belong to no layer of the drawing.
        milliseconds: the time of a run; None unless measured.
    """

    name: str
    layers: tuple[DrawnLayer, ...]
    edges: tuple[DrawnEdge, ...]
    frames: tuple[DrawnFrame, ...]
    total: int
    cut: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    milliseconds: float | None = None

    @property
    def boxes(self) -> int:
        """Number of layers with a box of their own."""
        return sum(layer.drawn_in is None for layer in self.layers)

    @property
    def constants(self) -> int:
        """Number of layers that are drawn in others."""
        return len(self.layers) - self.boxes

    def inside(self, frame: DrawnFrame) -> Iterator[DrawnLayer]:
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

    def findings_of(self, layer: DrawnLayer) -> list[Finding]:
        """The findings of a layer and of the constants that are drawn in it."""
        return [finding for i in (layer.index, *layer.constants) for finding in self.layers[i].findings]

    def severity(self, layer: DrawnLayer) -> str | None:
        """The worst of these findings; None without findings."""
        severities = {finding.severity for finding in self.findings_of(layer)}
        return next((name for name in SEVERITIES if name in severities), None)

    def tensor(self, layer: int, output: int) -> str:
        """The element type and shape of an output; "" where there is no such port."""
        outputs = self.layers[layer].line.outputs
        return outputs[output] if output < len(outputs) else ""

    def counts(self) -> str:
        """Numbers of layers, of constants drawn in others, and of blocks that fold."""
        total, folds = counted(self.total, "layer"), len(self.frames) - 1
        drawn = total if len(self.layers) == self.total else f"{len(self.layers):,} of {total}"
        blocks = f", {counted(folds, 'block')} that {'folds' if folds == 1 else 'fold'}" if folds else ""
        return f"{drawn}, {counted(self.constants, 'constant')} drawn in others{blocks}"

    def __repr__(self) -> str:
        folds = f", {len(self.frames) - 1} parts that fold" if len(self.frames) > 1 else ""
        return f"<Drawing of {self.name!r}: {self.boxes} of {self.total} layers{folds}>"

    def as_dict(self) -> dict[str, Any]:
        """The drawing as a dictionary of plain values."""
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

    def _row(self, layer: DrawnLayer) -> dict[str, Any]:
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
