"""A drawing as SVG 1.1, as a page that folds, searches and explains itself, and as a part of another page.

Shapes and texts of the SVG have attributes of their own, which browsers, viewers and rasterisers read alike: there is
no script, style sheet, foreign element or reference in it. The text at the pointer is a ``title``.

A page needs no other file and no network. The browser draws on a canvas, so that 5,000 layers stay quick. Each frame is
laid out here (irexec.tools.graph.layout), with all frames in it folded; the script moves the rest apart where a reader
unfolds some.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from irexec.display import Content, Text, sections_of
from irexec.display.hypertext import Attribute, Html, Markup, data, element, joined, page
from irexec.ir.findings import Finding
from irexec.ir.order import grouped
from irexec.ir.process import collection_paused
from irexec.messages import counted, cut, visible
from irexec.tools.graph.drawing import (
    FAMILIES,
    FONTS,
    SEVERITIES,
    STATES,
    TEXT,
    TITLE,
    WIDTH,
    Box,
    Colours,
    Drawing,
    DrawnFrame,
    DrawnLayer,
    around,
    colour_of,
    fitted,
    width,
)
from irexec.tools.graph.layout import GAP_Y, Point, lay_out
from irexec.tools.graph.placing import (
    CUT,
    HEAD,
    PAD,
    Placed,
    PlacedBox,
    PlacedLine,
    folded_size,
    place,
    wrapped,
)
from irexec.tools.inspect.weights import WeightLine

_BLOCK_FILL, _BLOCK_STROKE, _LINE, _FAR, _LABEL = "#ffffff", "#6b7683", "#7c8792", "#c3cad1", "#4c5661"
_FRAME_FILLS = ("#fdfdfe", "#f5f7f9")
_LABEL_SIZE, _LONGEST_LABEL = 9.5, 190.0
_LONGEST_TITLE = 400
_MAX_BOXES = 500
"""Boxes of an image in a notebook."""


@sections_of.register
def _(drawing: Drawing) -> list[Content]:
    """The title and the image; a sentence if the image would be too large."""
    title = Text(f"{drawing.name}: {drawing.boxes} of {drawing.total} layers", "title")
    if drawing.boxes > _MAX_BOXES:
        return [title, f"more than {_MAX_BOXES} boxes: write_graph makes a page of them, or cluster=True folds blocks"]
    # A declaration of XML is not HTML.
    return [title, element("div", Html(svg(drawing).partition("\n")[2]), class_="scroll")]


def svg(drawing: Drawing) -> str:
    """The document."""
    return svg_and_size(drawing)[0]


def svg_and_size(drawing: Drawing, columns: int | None = None) -> tuple[str, tuple[float, float]]:
    """The document, and its width and height in pixels.

    Args:
        drawing: of a model.
        columns: as for ``wrapped``.
    """
    placed = wrapped(place(drawing), columns)
    labels = list(_labels(drawing, placed.lines))
    right = max((x + width(text, _LABEL_SIZE) for text, x, _ in labels), default=0.0)
    across = max(placed.width, right + 4, 200.0)
    legend, legend_height = _legend(drawing, across)
    height = placed.height + legend_height
    name = drawing.name or "model"
    content: list[object] = [
        element("title", cut(name, _LONGEST_TITLE)),
        _element("rect", width=across, height=height, fill="#ffffff"),
        element("g", [(Html("\n"), part) for part in _parts(drawing, placed)]),
        element("g", [(Html("\n"), _label(text, x, y)) for text, x, y in labels]),
        element("g", legend, transform=f"translate(0 {_n(placed.height)})"),
    ]
    return svg_document(content, _n(across), _n(height), font_size=_n(TEXT)), (across, height)


def svg_document(content: Markup, width: str, height: str, **attributes: Attribute) -> str:
    """An SVG of this size in pixels."""
    root = element(
        "svg", content, xmlns="http://www.w3.org/2000/svg", width=width, height=height,
        viewBox=f"0 0 {width} {height}", font_family=FONTS, **attributes, role="img",
    )  # fmt: skip
    text = joined(Html('<?xml version="1.0" encoding="UTF-8"?>\n'), root, Html("\n"))
    # XML lacks these two code points, and no earlier step escapes them.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _parts(drawing: Drawing, placed: Placed) -> Iterator[Html]:
    """Unfolded frames at the back, then lines, titles of frames and boxes."""
    # Frames within each other alternate in colour.
    depths = [(one, len(list(around(drawing.frames, ~one.item)))) for one in placed.boxes if one.box is None]
    frames = [(one, _FRAME_FILLS[depth % 2]) for one, depth in depths]
    boxes = [one for one in placed.boxes if one.box is not None]
    yield from (_rectangle(one, fill, "#a9b3bd", rx=8) for one, fill in frames)
    yield from _lines(placed.lines)
    for one, fill in frames:
        # With a margin in the colour of the frame: a line may pass behind the title.
        margin = {"stroke": fill, "stroke_width": 4, "stroke_linejoin": "round", "paint_order": "stroke"}
        yield _text(one.title, one.x + 10, one.y + 16, _LABEL, font_weight="bold", **margin)
    yield from (_box(drawing, one, one.box) for one in boxes if one.box is not None)
    yield from _cut_ends(drawing, boxes)
    for end in placed.connectors:
        circle = _element("circle", cx=end.x, cy=end.y, r=8, fill="#ffffff", stroke=_LINE)
        yield element("g", circle, _text(end.text, end.x, end.y + 3.3, _LABEL, text_anchor="middle"))


def _box(drawing: Drawing, one: PlacedBox, box: Box) -> Html:
    colours = _palette(drawing).get(box.colour)
    fill, stroke = (colours.fill, colours.stroke) if colours else (_BLOCK_FILL, _BLOCK_STROKE)
    text = _tooltip(drawing.layers[one.item]) if one.item >= 0 else drawing.frames[~one.item].name
    parts = [element("title", cut(text, _LONGEST_TITLE))]
    # Two more edges below the box show that it stands for several layers.
    parts += [_rectangle(one, fill, stroke, shift=shift) for shift in ((3, 0) if one.item < 0 else (0,))]
    if box.share:
        width, y = max(1, (one.width - 2) * box.share), one.y + one.height - 4
        parts.append(_element("rect", x=one.x + 1, y=y, width=width, height=3, fill="#d5482f"))
    parts.append(_text(box.title, one.x + 8, one.y + 14.5, "#15191e", font_size=TITLE, font_weight="bold"))
    for i, line in enumerate(box.lines):
        parts.append(_text(line, one.x + 8, one.y + 28 + 13 * i, "#56606b" if i else "#2c343c"))
    right = one.x + one.width - 8 - (12 if box.severity else 0)
    if box.badge:
        parts.append(_text(box.badge, right, one.y + 14, "#8f2714", text_anchor="end"))
    if box.severity:
        x, y, sign = one.x + one.width - 10, one.y + 10, "i" if box.severity == "info" else "!"
        parts.append(_element("circle", cx=x, cy=y, r=6.5, fill=SEVERITIES[box.severity]))
        parts.append(_text(sign, x, y + 3.5, "#ffffff", text_anchor="middle", font_weight="bold"))
    return element("g", parts, opacity=0.6 if one.item < 0 and drawing.frames[~one.item].is_dimmed else None)


def _palette(drawing: Drawing) -> Mapping[str, Colours]:
    """The colours by family, or by state in a comparison."""
    return {name: Colours(title, *STATES[name]) for name, title in drawing.states.items()} or FAMILIES


def _cut_ends(drawing: Drawing, boxes: Iterable[PlacedBox]) -> Iterator[Html]:
    """Short dashed lines for edges to layers outside of the drawing, with the name of the first."""
    for one in boxes:
        before, after = drawing.cut.get(one.item, ((), ()))
        for names, y, step in ((before, one.y, -14), (after, one.y + one.height, 14)):
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                x = one.x + 14
                text = fitted(names[0], _LABEL_SIZE, WIDTH - 40 - width(more, _LABEL_SIZE)) + more
                yield element("path", d=f"M{_n(x)} {_n(y)}v{step}", stroke=_LINE, stroke_dasharray="3 3")
                yield _label(text, x + 4, y + step + (6 if step < 0 else 0))


def _rectangle(one: PlacedBox, fill: str, stroke: str, *, rx: int = 5, shift: int = 0) -> Html:
    x, y = one.x + shift, one.y + shift
    return _element("rect", x=x, y=y, width=one.width, height=one.height, rx=rx, fill=fill, stroke=stroke)


def _text(text: str, x: float, y: float, fill: str, **attributes: Any) -> Html:
    return _element("text", text, x=x, y=y, fill=fill, **attributes)


def _tooltip(layer: DrawnLayer) -> str:
    line = layer.line
    outputs = ", ".join(line.outputs)
    findings = "".join(f"; {finding.code}: {finding.message}" for finding in layer.findings)
    return f"{line.type} {line.path}{line.name}{f' -> {outputs}' if outputs else ''}{findings}"


def _lines(lines: Iterable[PlacedLine]) -> Iterator[Html]:
    for line in sorted(lines, key=lambda line: not line.straight):
        end = line.points[-1]
        colour = _FAR if line.straight else _LINE
        arrow = f"M{_n(end[0] - 3.5)} {_n(end[1] - 6)}h7l-3.5 6z"
        yield element(
            "path", d=path(line.points), fill="none", stroke=colour, stroke_dasharray="5 4" if line.straight else None
        )
        yield element("path", d=arrow, fill=colour)


def path(points: Sequence[Point]) -> str:
    """A curve through the points, vertical in each of them."""
    x, y = points[0]
    parts = [f"M{_n(x)} {_n(y)}"]
    for next_x, next_y in points[1:]:
        if abs(next_x - x) < 0.05:
            parts.append(f"V{_n(next_y)}")
        else:
            middle = (y + next_y) / 2
            parts.append(f"C{_n(x)} {_n(middle)} {_n(next_x)} {_n(middle)} {_n(next_x)} {_n(next_y)}")
        x, y = next_x, next_y
    return "".join(parts)


def _labels(drawing: Drawing, lines: Iterable[PlacedLine]) -> Iterator[tuple[str, float, float]]:
    """Types and shapes with their positions: below the producer; above the readers if it has several tensors."""
    # The label of a tensor that leaves an unfolded frame is at the layer in the frame.
    listed = [
        line
        for line in lines
        if line.link.source is not None
        and not line.is_continued
        and (line.link.source >= 0 or drawing.frames[~line.link.source].folded)
    ]
    tensors = grouped({(line.link.source, line.link.tensor): None for line in listed})
    done: set[tuple[Point, tuple[int, int]]] = set()
    for line in listed:
        text = drawing.tensor(*line.link.tensor)
        at_end = line.straight or len(tensors[line.link.source]) > 1
        x, y = line.points[-1] if at_end else line.points[0]
        if text and ((x, y), line.link.tensor) not in done:
            done.add(((x, y), line.link.tensor))
            yield fitted(text, _LABEL_SIZE, _LONGEST_LABEL), x + 5, y - 8 if at_end else y + 12


def _label(text: str, x: float, y: float) -> Html:
    """A text on a white ground, so that lines that it crosses do not make it unreadable."""
    across = width(text, _LABEL_SIZE) * 0.95
    ground = _element("rect", x=x - 1, y=y - 8, width=across, height=10, fill="#ffffff", fill_opacity="0.75")
    return joined(ground, _text(text, x, y, _LABEL, font_size=_LABEL_SIZE))


def _legend(drawing: Drawing, space: float) -> tuple[list[Html], float]:
    """The colours in use, in lines of at most ``space`` pixels, and the height of all lines."""
    boxes = [layer for layer in drawing.layers if layer.drawn_in is None]
    used = {colour_of(drawing, layer) for layer in boxes}
    parts: list[Html] = []
    x, y = 14.0, 14.0
    for one in (colours for name, colours in _palette(drawing).items() if name in used):
        needed = width(one.title, TEXT) + 30
        if x > 14 and x + needed > max(space, 200.0):
            x, y = 14.0, y + 18
        parts.append(_element("rect", x=x, y=y - 9, width=11, height=11, rx=2, fill=one.fill, stroke=one.stroke))
        parts.append(_text(one.title, x + 16, y, _LABEL))
        x += needed
    return parts, y + 12 if parts else 0.0


def _element(tag: str, *content: Markup, **attributes: Attribute) -> Html:
    """An element whose floats have at most one digit after the point."""
    written = {name: _n(value) if isinstance(value, float) else value for name, value in attributes.items()}
    return element(tag, *content, **written)


def _n(value: float) -> str:
    """A number with at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")


_NAME, _TEXT, _LISTED = 600, 2_000, 200
"""Characters of names and of attributes, and how many tensor names or layers are listed at once."""


def graph_page(drawing: Drawing) -> str:
    """A whole document."""
    return page(visible(cut(drawing.name or "model", 200)), graph_fragment(drawing, is_whole_page=True))


@collection_paused()
def graph_fragment(drawing: Drawing, *, id: str = "graph", is_whole_page: bool = False) -> Html:
    """The graph as a part of a page, with its style sheet and script; several may be in one page under different ids.

    Args:
        drawing: the drawing to show.
        id: of the element, unique in the page.
        is_whole_page: True if there is nothing else in the page: it then has the height of the window, and the wheel
            moves it at once.
    """
    return joined(
        element("style", page_file("page.css")),
        graph_section(drawing, id=id, is_whole_page=is_whole_page),
        element("script", script()),
    )


def graph_section(drawing: Drawing, *, id: str, is_whole_page: bool = False) -> Html:
    """The graph without style sheet and script; see ``graph_fragment``."""
    rows = [element("tr", element("th", element("kbd", keys)), element("td", what)) for keys, what in _KEYS]
    legend = element("details", element("summary", "Colours"), element("ul"), class_="legend")
    return element(
        "section",
        _bar(drawing),
        element("div", element("canvas", tabindex=0, aria_label=_HINT), legend, class_="view"),
        element("aside", class_="details", hidden=True, aria_label="selected layer", tabindex=-1),
        element("div", class_="prints"),
        element("div", class_="said", aria_live="polite"),
        element("dialog", element("table", rows), element("p", _button("close-help", "Close")), aria_label="keys"),
        data(f"{id}-data", document(drawing)),
        id=id,
        class_="irexec-graph whole" if is_whole_page else "irexec-graph",
    )


_HINT = "graph of the model: arrow keys go from layer to layer, Enter folds and unfolds, / searches, ? lists the keys"
_KEYS = (
    ("drag, wheel, two fingers", "move"),
    ("Ctrl and wheel, pinch, + and -", "zoom"),
    ("0", "all of the graph"),
    ("click, tap", "show a layer"),
    ("double click, Enter, Space", "fold or unfold a block"),
    ("up, down", "the layer before, the layer after"),
    ("left, right", "the layer beside"),
    ("Shift and arrows", "move"),
    ("/", "search"),
    ("Escape", "close what is open"),
)


def _bar(drawing: Drawing) -> Html:
    shown = (
        counted(drawing.boxes, "layer")
        if len(drawing.layers) == drawing.total
        else f"{len(drawing.layers):,} of {counted(drawing.total, 'layer')}"
    )
    time = "" if drawing.milliseconds is None else f", {drawing.milliseconds:.3g} ms"
    title = element(
        "p", visible(cut(drawing.name or "model", _NAME)), element("small", f"{shown}{time}"), class_="name"
    )
    field = element(
        "input", type="search", placeholder="Search layers, types, tensors", aria_label="search", role="combobox",
        aria_expanded="false", aria_autocomplete="list", autocomplete="off", spellcheck="false",
    )  # fmt: skip
    search = element("div", field, element("ul", class_="results", role="listbox", hidden=True), class_="search")
    folds = [_button("fold", "Fold all"), _button("unfold", "Unfold all")] if len(drawing.frames) > 1 else None
    zoom = [
        _button("out", "−", "zoom out"),
        _button("in", "+", "zoom in"),
        _button("fit", "Fit", "show all"),
        _button("help", "?", "keys"),
    ]
    found = sum(len(layer.findings) for layer in drawing.layers) + len(drawing.findings)
    lists = [_button("findings", counted(found, "finding"))] if found else []
    lists += [_button("times", "Times", "the slowest layers")] if drawing.milliseconds is not None else []
    return element("div", title, lists, folds, zoom, search, class_="bar")


def _button(name: str, text: str, label: str | None = None) -> Html:
    return element("button", text, type="button", data_do=name, aria_label=label, title=label)


@cache
def script(*more: str) -> Html:
    """The script, with further files of it; nothing of it is visible to other scripts of the page."""
    sizes = f"const WIDTH = {WIDTH}, GAP_Y = {GAP_Y}, PAD = {PAD}, HEAD = {HEAD}, CUT = {CUT};\n"
    parts = (page_file(f"{name}.js") for name in ("graph", "placing", "painting", "panel", "page", *more))
    return joined(Html('(() => {\n"use strict";\n'), Html(sizes), *parts, Html("})();\n"))


@cache
def page_file(name: str) -> Html:
    """The text of a style sheet or script of this package."""
    return Html((files("irexec.tools.graph") / name).read_text("utf-8"))


def document(drawing: Drawing) -> dict[str, Any]:
    """The data of the script; irexec/tools/graph/graph.js explains the short keys."""
    tensors = dict.fromkeys(link.tensor for frame in drawing.frames for link in frame.links)
    numbers = {tensor: i for i, tensor in enumerate(tensors)}
    return {
        "families": [[name, *colours] for name, colours in FAMILIES.items()],
        "layers": [_layer(drawing, layer) for layer in drawing.layers],
        "frames": [_frame(drawing, frame, numbers) for frame in drawing.frames],
        "tensors": list(tensors),
        "findings": [_finding(finding) for finding in drawing.findings],
        "edges": [(edge.source, edge.output, edge.target, edge.input) for edge in drawing.edges],
        "states": [[title, *STATES[name]] for name, title in drawing.states.items()],
    }


def _frame(drawing: Drawing, frame: DrawnFrame, numbers: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    sizes = [folded_size(drawing, item) for item in frame.items]
    layout = lay_out(frame, sizes)
    links = [
        (link.source, link.target, numbers[link.tensor], None if bends is None else list(chain.from_iterable(bends)))
        for link, bends in zip(frame.links, layout.bends, strict=True)
    ]
    return {
        "kind": frame.kind,
        "name": _short(frame.name),
        "parent": frame.parent,
        "layer": frame.layer,
        "folded": frame.folded,
        "dimmed": frame.is_dimmed,
        "items": frame.items,
        "positions": [(x, y, height) for (x, y), (_, height) in zip(layout.centres, sizes, strict=True)],
        "rows": layout.rows,
        "links": links,
        "entries": [(numbers[tensor], x) for tensor, x in layout.entries.items()],
        "exits": [(numbers[tensor], x) for tensor, x in layout.exits.items()],
        "width": layout.width,
        "height": layout.height,
    }


def _layer(drawing: Drawing, layer: DrawnLayer) -> dict[str, Any]:
    line, cost = layer.line, layer.cost
    before, after = drawing.cut.get(layer.index, ((), ()))
    found = {
        "n": _short(line.name),
        "t": _short(line.type),
        "v": _short(line.version),
        "p": _short(line.path),
        "i": line.id,
        "f": list(FAMILIES).index(layer.family),
        "l": line.line,
        "in": [
            [port, fact, _short(source)]
            for port, fact, source in zip(line.input_ports, line.inputs, line.sources, strict=True)
        ],
        "out": [
            [port, fact, [_short(name) for name in names[:_LISTED]]]
            for port, fact, names in zip(line.output_ports, line.outputs, line.tensor_names, strict=True)
        ],
        "a": [[_short(name), visible(cut(text, _TEXT))] for name, text in line.attributes.items()],
        "h": layer.drawn_in,
        "k": list(layer.constants),
        "r": ", ".join(layer.reads)[:_NAME],
        "s": _statistics(layer.statistics),
        "w": [_finding(finding) for finding in layer.findings],
        "ms": layer.milliseconds,
        "sh": layer.share,
        "al": _short(layer.along_with),
        "c": None if cost is None else [cost.macs, cost.parameters, cost.bytes],
        "b": [_short(name) for name in before[:_LISTED]],
        "z": [_short(name) for name in after[:_LISTED]],
        "st": list(drawing.states).index(layer.state) if layer.state in drawing.states else None,
        "bd": layer.badge,
    }
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _short(text: str | None) -> str | None:
    return None if text is None else visible(cut(text, _NAME))


def _finding(finding: Finding) -> list[Any]:
    return [finding.severity, finding.code, finding.message, finding.line, finding.at()]


def _statistics(line: WeightLine | None) -> dict[str, Any] | None:
    if line is None:
        return None
    numbers = {"min": line.min, "max": line.max, "mean": line.mean, "std": line.std}
    found = {name: f"{value:.6g}" for name, value in numbers.items() if value is not None and math.isfinite(value)}
    found["zeros"] = f"{line.zeros:.1%}"
    if line.not_finite:
        found["NaN, Inf"] = str(line.not_finite)
    return {**found, "bytes": f"{line.bytes:,}"}
