"""A drawing as a page that folds, searches and explains itself, or as a part of another page. It needs no other file
and no network.

The browser draws on a canvas, so that 5,000 layers stay quick. Each frame is laid out here (irexec.tools.graph.layout),
with all frames in it folded; the script moves the rest apart where a reader unfolds some.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from irexec.display.markup import Html, element, joined
from irexec.display.page import data, page
from irexec.ir.findings import Finding
from irexec.ir.garbage import collection_paused
from irexec.messages import counted, cut, visible
from irexec.tools.graph.drawing import FAMILIES, WIDTH, Drawing, DrawnFrame, DrawnLayer
from irexec.tools.graph.layout import GAP_Y, lay_out
from irexec.tools.graph.placing import CUT, HEAD, PAD, folded_size
from irexec.tools.inspect.weights import WeightLine

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
        element("style", _file("page.css")),
        element(
            "section",
            _bar(drawing),
            element("div", element("canvas", tabindex=0, aria_label=_HINT), _legend(), class_="view"),
            element("aside", class_="details", hidden=True, aria_label="selected layer", tabindex=-1),
            element("div", class_="prints"),
            element("div", class_="said", aria_live="polite"),
            _help(),
            data(f"{id}-data", document(drawing)),
            id=id,
            class_="irexec-graph whole" if is_whole_page else "irexec-graph",
        ),
        element("script", _script()),
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


def _legend() -> Html:
    return element("details", element("summary", "Colours"), element("ul"), class_="legend")


def _help() -> Html:
    rows = [element("tr", element("th", element("kbd", keys)), element("td", what)) for keys, what in _KEYS]
    return element("dialog", element("table", rows), element("p", _button("close-help", "Close")), aria_label="keys")


@cache
def _script() -> Html:
    """The script; nothing of it is visible to other scripts of the page."""
    sizes = f"const WIDTH = {WIDTH}, GAP_Y = {GAP_Y}, PAD = {PAD}, HEAD = {HEAD}, CUT = {CUT};\n"
    parts = (_file(f"{name}.js") for name in ("graph", "placing", "painting", "panel", "page"))
    return joined(Html('(() => {\n"use strict";\n'), Html(sizes), *parts, Html("})();\n"))


@cache
def _file(name: str) -> Html:
    return Html((files("irexec.tools.graph") / name).read_text("utf-8"))


def document(drawing: Drawing) -> dict[str, Any]:
    """The data of the script; irexec/tools/graph/graph.js explains the short keys."""
    tensors: dict[tuple[int, int], int] = {}
    frames = [_frame(drawing, frame, tensors) for frame in drawing.frames]
    return {
        "families": [[f.name, f.title, f.fill, f.stroke, f.dark_fill, f.dark_stroke] for f in FAMILIES.values()],
        "layers": [_layer(drawing, layer) for layer in drawing.layers],
        "frames": frames,
        "tensors": [[layer, output] for layer, output in tensors],
        "findings": [_finding(finding) for finding in drawing.findings],
        "edges": [[edge.source, edge.output, edge.target, edge.input] for edge in drawing.edges],
    }


def _frame(drawing: Drawing, frame: DrawnFrame, tensors: dict[tuple[int, int], int]) -> dict[str, Any]:
    sizes = [folded_size(drawing, item) for item in frame.items]
    layout = lay_out(frame, sizes)

    def number(tensor: tuple[int, int]) -> int:
        return tensors.setdefault(tensor, len(tensors))

    links = [
        [link.source, link.target, number(link.tensor), None if bends is None else list(chain.from_iterable(bends))]
        for link, bends in zip(frame.links, layout.bends, strict=True)
    ]
    return {
        "kind": frame.kind,
        "name": _short(frame.name),
        "parent": frame.parent,
        "layer": frame.layer,
        "folded": frame.folded,
        "dimmed": frame.is_dimmed,
        "items": list(frame.items),
        "positions": [[x, y, height] for (x, y), (_, height) in zip(layout.centres, sizes, strict=True)],
        "rows": list(layout.rows),
        "links": links,
        "entries": [[number(tensor), x] for tensor, x in layout.entries.items()],
        "exits": [[number(tensor), x] for tensor, x in layout.exits.items()],
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
    texts = {name: f"{value:.6g}" for name, value in numbers.items() if value is not None and math.isfinite(value)}
    return {
        **texts,
        "zeros": f"{line.zeros:.1%}",
        **({"NaN, Inf": str(line.not_finite)} if line.not_finite else {}),
        "bytes": f"{line.bytes:,}",
    }
