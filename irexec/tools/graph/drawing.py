"""The content of a drawing: layers with their texts and colours, the edges between them, the frames that fold."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from irexec.analysis.cost import Cost
from irexec.errors import UnsupportedError
from irexec.ir.findings import Finding
from irexec.messages import counted, visible
from irexec.records import Shown
from irexec.schema.registry import resolve
from irexec.tools.graph.names import SHAPE_ARITHMETIC
from irexec.tools.inspect.summary import LayerLine
from irexec.tools.inspect.weights import WeightLine


class Colours(NamedTuple):
    """The colours of a box on a light page and on a dark one, and what they stand for."""

    title: str
    fill: str
    stroke: str
    dark_fill: str
    dark_stroke: str


FAMILIES = {
    "input": Colours("input, output, state", "#e3e6ea", "#56616e", "#343b44", "#a5b0bd"),
    "convolution": Colours("convolution", "#d3e4fb", "#1f62b5", "#1b3557", "#79b1f5"),
    "product": Colours("matrix product, attention", "#ded9fa", "#5644b8", "#302a5c", "#aa9cf3"),
    "recurrent": Colours("recurrent cell", "#f3d6f2", "#94328f", "#4d2249", "#e08fdb"),
    "activation": Colours("activation", "#fbdcd8", "#b5372a", "#552520", "#f29488"),
    "arithmetic": Colours("element-wise arithmetic", "#fde8c9", "#996000", "#493414", "#e7b45c"),
    "normalization": Colours("normalization", "#d4efd9", "#207a37", "#1c4127", "#74cc8b"),
    "pooling": Colours("pooling, resizing", "#cdeeee", "#12747a", "#164044", "#66c9cf"),
    "movement": Colours("reshaping, moving, gathering", "#eeeacb", "#766b10", "#3b3813", "#cdbf55"),
    "reduction": Colours("reduction, sorting", "#e6dccf", "#76532a", "#40311f", "#cfa879"),
    "detection": Colours("boxes, detection", "#fbd6e4", "#ad2561", "#52203a", "#f08cb6"),
    "quantization": Colours("conversion, quantization", "#e2f0c4", "#567a06", "#333f14", "#aed25a"),
    "control": Colours("control flow, bodies", "#d9d9d9", "#303030", "#3d3d3d", "#dddddd"),
    "constant": Colours("constant", "#f4f4f4", "#7d7d7d", "#262626", "#9a9a9a"),
    "other": Colours("other", "#f0f0f0", "#5f5f5f", "#2e2e2e", "#bababa"),
}
"""The families of operations by name, in the order of legends."""


def _families(of: Mapping[str, str]) -> dict[str, str]:
    """The family of each word."""
    return {word: family for family, words in of.items() for word in words.split()}


OF_FILES = _families({
    "convolution": "convolution",
    "product": "linear_algebra",
    "recurrent": "sequences",
    "activation": "activation",
    "arithmetic": "elementwise",
    "normalization": "normalization",
    "pooling": "resampling roi windows",
    "movement": "broadcasting gather movement shape slicing",
    "reduction": "sorting",
    "detection": "detection_output detectron nms nms_multiclass prior_box proposals",
    "quantization": "conversion",
    "control": "control",
})  # fmt: skip
"""Families by the file that has the kernel; files with several families have the smaller ones in _OF_TYPES."""
_OF_TYPES = _families({
    "input": "Parameter Result ReadValue Assign",
    "constant": "Constant",
    "activation": "HSigmoid HSwish Mish ReLU Relu Sigmoid SoftPlus SoftSign Tanh",
    "product": "ScaledDotProductAttention",
    "reduction": "ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum",
    "movement": "Range BatchToSpace Col2Im ExtractImagePatches SpaceToBatch",
    "other": "BGRtoNV12 I420toBGR I420toRGB NV12toBGR NV12toRGB RGBtoNV12 CTCGreedyDecoder CTCGreedyDecoderSeqLen "
    "CTCLoss ConvertPromoteTypes",
})  # fmt: skip


@functools.lru_cache(maxsize=1024)
def family_of(type: str, version: str) -> str:
    """The name of the family of an operation; "other" for an unknown operation."""
    if type in _OF_TYPES:
        return _OF_TYPES[type]
    try:
        file = resolve(type, version).kernel.__module__.rpartition(".")[2]
    except UnsupportedError:
        return "other"
    return OF_FILES.get(file, "other")


STATES = {
    "differs": ("#fbd0ca", "#c62828", "#5e211c", "#ff8a80"),
    "follows": ("#fde3c0", "#b26a00", "#4d3510", "#e9b45a"),
    "unsure": ("#fdf6b8", "#857500", "#423c12", "#d8c84a"),
    "added": ("#cfe6fb", "#1f63b5", "#16324f", "#86b6f2"),
    "agrees": ("#d0edd4", "#2e7d32", "#1b3a1f", "#7fce86"),
    "blind": ("#e4e0f6", "#6a5fb0", "#2d2947", "#a79df0"),
    "unpaired": ("#f2f4f6", "#98a2ad", "#24292f", "#6b7683"),
}
"""The colours of states of layers in a comparison; a block has the first of those of its layers."""

SEVERITIES = {"error": "#c62828", "warning": "#b26a00", "info": "#1f6fc0"}
"""Colours of severities, the worst first."""


def first_of(order: Iterable[str], names: Collection[str | None]) -> str | None:
    """The first name of an order that is among the names."""
    return next((name for name in order if name in names), None)


FrameKind = Literal["graph", "block", "layer", "body"]


@dataclass(frozen=True)
class DrawnLayer:
    """One layer.

    Attributes:
        index: its position in ``Drawing.layers``.
        line: its entry in the file, with inferred types and shapes.
        family: the name of its family of operations (irexec.tools.graph.drawing).
        cost: None for a layer that computes nothing.
        drawn_in: the index of the layer that shows this constant; None for a layer with a box of its own.
        constants: the indices of the layers that are drawn in this one.
        reads: element type and shape of each input that is a constant.
        statistics: of a constant; None unless requested.
        findings: of validation; empty unless requested.
        milliseconds, share: median time and part of the whole; None unless measured, and for a layer that is computed
            along with another one.
        along_with: the name of the other layer.
        state: its state in a comparison, one of STATES; "" without one.
        badge: a short text at the right of the title in place of the time.
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
    state: str = ""
    badge: str = ""


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


def around(frames: Sequence[DrawnFrame], index: int) -> Iterator[int]:
    """A frame and those around it, the innermost first."""
    here: int | None = index
    while here is not None:
        yield here
        here = frames[here].parent


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
        states: the states of a comparison, by which the layers are coloured, with their titles; empty without one.
    """

    name: str
    layers: tuple[DrawnLayer, ...]
    edges: tuple[DrawnEdge, ...]
    frames: tuple[DrawnFrame, ...]
    total: int
    cut: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    milliseconds: float | None = None
    states: Mapping[str, str] = field(default_factory=dict)

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
        return first_of(SEVERITIES, {finding.severity for finding in self.findings_of(layer)})

    def state(self, layer: DrawnLayer) -> str:
        """The worst state of a layer and of the constants that are drawn in it; "" without a comparison."""
        return first_of(self.states, {self.layers[i].state for i in (layer.index, *layer.constants)}) or ""

    def tensor(self, layer: int, output: int) -> str:
        """The element type and shape of an output; "" where the port does not exist."""
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
            "layers": [
                {
                    "index": layer.index,
                    "id": layer.line.id,
                    "path": layer.line.path,
                    "name": layer.line.name,
                    "type": layer.line.type,
                    "family": layer.family,
                    "line": layer.line.line,
                    "constants": [self.layers[i].line.name for i in layer.constants],
                    "findings": [finding.code for finding in self.findings_of(layer)],
                    "milliseconds": layer.milliseconds,
                }
                for layer in shown
            ],
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


# In units of the font size, somewhat above common sans-serif fonts, so that a letter that is wider than expected still
# fits.
_NARROW, _WIDE, _CAPITAL, _OTHER, _FULL = 0.34, 0.95, 0.73, 0.61, 1.05
_OF = {
    **dict.fromkeys(" !'()*,-./:;I[]`fijlrt{|}", _NARROW),
    **dict.fromkeys("%@MWmw", _WIDE),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ&+<=>~", _CAPITAL),
}
_LONGEST = 1_000


def width(text: str, size: float) -> float:
    """Approximate width of a text in a sans-serif font of that size, in the same unit."""
    return size * sum(_OF.get(letter, _OTHER if letter < "\u0250" else _FULL) for letter in text)


def fitted(text: str, size: float, space: float) -> str:
    """The text as one visible line of at most ``space``. A long path keeps its end, another long text its beginning and
    its end."""
    text = visible(text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}{text[-_LONGEST // 2 :]}")
    if width(text, size) <= space:
        return text

    def shortened(count: int) -> str:
        head = 0 if "/" in text else count // 3
        return f"{text[:head]}…{text[len(text) - (count - head) :]}"

    fit = bisect_right(range(len(text) + 1), space, key=lambda count: width(shortened(count), size))
    return shortened(max(fit - 1, 0))


def listed(texts: Sequence[str], size: float, space: float) -> str:
    """The first texts, joined by commas, that fit into ``space``; at least one."""
    for number in range(len(texts), 1, -1):
        text = ", ".join(texts[:number]) + (", …" if number < len(texts) else "")
        if width(text, size) <= space:
            return text
    return fitted(", ".join(texts[:1]), size, space)


FONTS = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
"""Fonts of images, the first that is installed."""

PNG_SIDE = 16_000
"""Maximum number of pixels of a side of an image."""


WIDTH = 172.0
"""Width of every box in pixels."""
TITLE, TEXT = 12.0, 10.0
"""Sizes of fonts."""
_TOP, _LINE, _BOTTOM = 19.0, 13.0, 7.0
_SPACE = WIDTH - 16


@dataclass(frozen=True)
class Box:
    """The texts of a box.

    Attributes:
        title: the type of a layer, the name of a block.
        lines: smaller texts below the title.
        badge: a time, to the right of the title.
        colour: the family of operations, or the state in a comparison; "" for a block without one.
        severity: severity of the worst finding; None without findings.
        share: share of the time of a run, 0 to 1; None unless measured.
    """

    title: str
    lines: tuple[str, ...]
    badge: str = ""
    colour: str = ""
    severity: str | None = None
    share: float | None = None

    @property
    def height(self) -> float:
        """In pixels."""
        return _TOP + _LINE * len(self.lines) + (_BOTTOM if self.lines else 4.0)


def box_of_item(drawing: Drawing, item: int) -> Box:
    """The box of an item of a frame; a frame is folded."""
    return layer_box(drawing, drawing.layers[item]) if item >= 0 else frame_box(drawing, drawing.frames[~item])


def layer_box(drawing: Drawing, layer: DrawnLayer) -> Box:
    """The box of a layer: type, name, and the constants that it reads."""
    badge = layer.badge if layer.milliseconds is None else _milliseconds(layer.milliseconds)
    lines = [fitted(layer.line.name, TEXT, _SPACE)]
    if layer.reads:
        lines.append(fitted(", ".join(layer.reads), TEXT, _SPACE))
    title, colour = _title(layer.line.type, badge), colour_of(drawing, layer)
    return Box(title, tuple(lines), badge, colour, drawing.severity(layer), layer.share)


def colour_of(drawing: Drawing, layer: DrawnLayer) -> str:
    """The family of a layer, or its state in a comparison."""
    return drawing.state(layer) if drawing.states else layer.family


def frame_box(drawing: Drawing, frame: DrawnFrame) -> Box:
    """The box of a folded frame: its name, the number of layers in it, and their most frequent types."""
    inside = list(drawing.inside(frame))
    folded = f"▸ {counted(len(inside), 'layer')}"
    if frame.layer is not None:
        owner = layer_box(drawing, drawing.layers[frame.layer])
        colour = owner.colour if drawing.states else "control"
        return replace(owner, lines=(*owner.lines[:1], f"{folded} inside"), colour=colour)
    times = [layer.milliseconds for layer in inside if layer.milliseconds is not None]
    badge = _milliseconds(sum(times)) if times else ""
    share = sum(layer.share or 0 for layer in inside) if times else None
    types = Counter(layer.line.type for layer in inside)
    frequent = listed([f"{type} ×{n}" if n > 1 else type for type, n in types.most_common(3)], TEXT, _SPACE)
    severity = first_of(SEVERITIES, {drawing.severity(layer) for layer in inside})
    state = first_of(drawing.states, {drawing.state(layer) for layer in inside})
    return Box(_title(frame.name, badge), (folded, frequent), badge, state or "", severity, share)


def frame_title(drawing: Drawing, frame: DrawnFrame) -> str:
    """Title of an unfolded frame."""
    if frame.layer is None:
        return fitted(f"{frame.name} · {counted(sum(1 for _ in drawing.inside(frame)), 'layer')}", TEXT, 400)
    line = drawing.layers[frame.layer].line
    return fitted(f"{line.type} · {line.name}", TEXT, 400)


def _title(text: str, badge: str) -> str:
    return fitted(text, TITLE, _SPACE - (58 if badge else 14))


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"
