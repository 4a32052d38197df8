"""A drawing in languages whose readers lay out graphs: Graphviz's, and Mermaid, which GitHub and GitLab show.

Sources: "DOT Language" of the Graphviz project; "Flowcharts - Basic Syntax" of Mermaid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from irexec.messages import counted, cut, visible
from irexec.tools.graph.drawing import FAMILIES, SEVERITIES, Drawing, DrawnFrame, around

_LONGEST = 60


def box_name(item: int) -> str:
    """Name of a box in a text; the box is a layer, or a frame as ``~index``."""
    return f"n{item}" if item >= 0 else f"f{~item}"


def flat_edges(drawing: Drawing) -> list[tuple[int, int, str]]:
    """The edges between boxes that are visible, each tensor once between two of them.

    Returns:
        Source and target, which are layers, or frames as ``~index``, and the type and shape of the tensor.
    """
    box = visible_boxes(drawing)
    found: dict[tuple[int, int, str], None] = {}
    for edge in drawing.edges:
        source, target = box.get(edge.source), box.get(edge.target)
        if source is None or target is None or (source == target and source < 0):
            continue
        found[source, target, drawing.tensor(edge.source, edge.output)] = None
    return list(found)


def visible_boxes(drawing: Drawing) -> dict[int, int]:
    """The visible box of each layer: the layer itself, or ``~index`` of the outermost folded frame around it."""
    found: dict[int, int] = {}
    for frame in drawing.frames:
        folded = [~k for k in around(drawing.frames, frame.index) if drawing.frames[k].folded]
        # An unfolded frame has the layer that it belongs to as a box in it.
        own = [] if frame.layer is None else [frame.layer]
        found |= {item: folded[-1] if folded else item for item in (*frame.items, *own) if item >= 0}
    return found


def label_lines(drawing: Drawing, item: int) -> list[str]:
    """Lines of a box: type, name, constants, time and findings of a layer; name and size of a frame."""
    if item < 0:
        frame = drawing.frames[~item]
        return [frame_label(drawing, frame), counted(sum(1 for _ in drawing.inside(frame)), "layer")]
    layer = drawing.layers[item]
    lines = [_short(layer.line.type), _short(layer.line.name)]
    if layer.reads:
        lines.append(_short(", ".join(layer.reads)))
    if layer.milliseconds is not None:
        lines.append(f"{layer.milliseconds:.3g} ms" + ("" if layer.share is None else f" ({layer.share:.0%})"))
    if found := drawing.findings_of(layer):
        lines.append(", ".join(dict.fromkeys(f"{finding.severity} {finding.code}" for finding in found)))
    return lines


def frame_label(drawing: Drawing, frame: DrawnFrame) -> str:
    """Title of a frame."""
    return _short(frame.name if frame.layer is None else f"{drawing.layers[frame.layer].line.type} {frame.name}")


def _short(text: str) -> str:
    return visible(cut(text, _LONGEST))


def nested_lines(
    drawing: Drawing, node: Callable[[int], str], begin: Callable[[DrawnFrame], Sequence[str]], end: str
) -> Iterator[str]:
    """The boxes of a drawing, and of the unfolded frames in it, as lines of text.

    Args:
        drawing: any drawing.
        node: the line of an item.
        begin: the first lines of a frame; only the first is outside of it.
        end: the last line of a frame.
    """

    def lines(frame: DrawnFrame, indent: str) -> Iterator[str]:
        if frame.layer is not None:
            yield f"{indent}{node(frame.layer)}"
        for item in frame.items:
            inner = None if item >= 0 else drawing.frames[~item]
            if inner is None or inner.folded:
                yield f"{indent}{node(item)}"
                continue
            first, *more = begin(inner)
            yield f"{indent}{first}"
            yield from (f"{indent}  {line}" for line in more)
            yield from lines(inner, f"{indent}  ")
            yield f"{indent}{end}"

    return lines(drawing.frames[0], "  ")


def dot(drawing: Drawing) -> str:
    """The text of a .dot file."""

    def begin(frame: DrawnFrame) -> tuple[str, str]:
        style = 'style="rounded,filled"; color="#a9b3bd"; fillcolor="#f5f7f9";'
        return f"subgraph cluster_{frame.index} {{", f"label={_quoted(frame_label(drawing, frame))}; {style}"

    lines = [f"digraph {_quoted(drawing.name)} {{", '  graph [fontname="Helvetica", newrank=true];']
    lines.append('  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, height=0.3];')
    lines.append('  edge [color="#7c8792", fontname="Helvetica", fontsize=9, arrowsize=0.6];')
    lines += nested_lines(drawing, partial(_node, drawing), begin, "}")
    for source, target, label in flat_edges(drawing):
        lines.append(f"  {box_name(source)} -> {box_name(target)} [label={_quoted(label)}];")
    return "\n".join([*lines, "}", ""])


def _node(drawing: Drawing, item: int) -> str:
    attributes = {"label": "\\n".join(_escaped(line) for line in label_lines(drawing, item))}
    if item >= 0:
        layer = drawing.layers[item]
        family = FAMILIES[layer.family]
        attributes |= {
            "fillcolor": family.fill,
            "color": family.stroke,
            "tooltip": _escaped(f"{layer.line.path}{layer.line.name}"[:400]),
        }
        severity = drawing.severity(layer)
        if severity:
            attributes |= {"color": SEVERITIES[severity], "penwidth": "2.5"}
    else:
        attributes |= {"fillcolor": "#ffffff", "peripheries": "2"}
    written = ", ".join(f'{key}="{text}"' for key, text in attributes.items())
    return f"{box_name(item)} [{written}];"


def _escaped(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


MAX_TEXT, MAX_EDGES = 50_000, 500
"""Characters and edges that Mermaid shows unless it is configured otherwise (``maxTextSize``, ``maxEdges``)."""

_PLAIN = frozenset(" _-+.,:=?!/()[]*×·%")


def mermaid(drawing: Drawing) -> str:
    """The text of a .mmd file."""

    def begin(frame: DrawnFrame) -> list[str]:
        return [f'subgraph {box_name(~frame.index)} ["{escaped(frame_label(drawing, frame))}"]']

    lines = ["flowchart TD", *nested_lines(drawing, partial(_mermaid_node, drawing), begin, "end")]
    for source, target, label in flat_edges(drawing):
        arrow = f'-->|"{escaped(label)}"|' if label else "-->"
        lines.append(f"  {box_name(source)} {arrow} {box_name(target)}")
    used = {layer.family for layer in drawing.layers if layer.drawn_in is None}
    for name, family in FAMILIES.items():
        if name in used:
            lines.append(f"  classDef is_{name} fill:{family.fill},stroke:{family.stroke},color:#15191e")
    severities = {drawing.severity(layer) for layer in drawing.layers}
    if severities & {"error", "warning"}:
        lines.append("  classDef marked stroke:#c62828,stroke-width:3px")
    return "\n".join([*lines, ""])


def _mermaid_node(drawing: Drawing, item: int) -> str:
    label = "<br/>".join(escaped(line) for line in label_lines(drawing, item))
    if item < 0:
        return f'{box_name(item)}[["{label}"]]'
    layer = drawing.layers[item]
    marked = drawing.severity(layer) in ("error", "warning")
    return f'{box_name(item)}["{label}"]:::is_{layer.family}' + (f"\n  class {box_name(item)} marked" if marked else "")


def escaped(text: str) -> str:
    """A text in quotes: letters of any script stay, what Mermaid, Markdown or HTML could obey is written as its code
    point."""
    return "".join(letter if letter in _PLAIN or letter.isalnum() else f"#{ord(letter)};" for letter in text)
