"""A drawing as a graph of Google's Model Explorer, in its JSON.

Source: graph_builder.py of google-ai-edge/model-explorer. A namespace is a path of groups with slashes; here it is
that of the frames around a layer. Constants that are drawn in other layers are attributes of these.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from irexec.ir.order import grouped
from irexec.tools.graph.drawing import Drawing, DrawnLayer


def explorer_collection(drawing: Drawing) -> dict[str, Any]:
    """The document of a file: a collection with one graph."""
    return {"label": drawing.name or "model", "graphs": [explorer_graph(drawing)]}


def explorer_graph(drawing: Drawing) -> dict[str, Any]:
    """The graph; the id of a node is the path and the name of its layer, and ``#id`` where another has it too."""
    names = [f"{layer.line.path}{layer.line.name}" for layer in drawing.layers]
    counts = Counter(names)
    boxes = {
        layer.index: name if counts[name] == 1 else f"{name}#{layer.line.id}"
        for name, layer in zip(names, drawing.layers, strict=True)
        if layer.drawn_in is None
    }
    spaces = _namespaces(drawing)
    edges = grouped((edge.target, edge) for edge in drawing.edges if edge.source in boxes)
    nodes = [
        {
            "id": id,
            "label": drawing.layers[i].line.type,
            "namespace": spaces.get(i, ""),
            "attrs": _attributes(drawing, drawing.layers[i]),
            "incomingEdges": [
                {
                    "sourceNodeId": boxes[edge.source],
                    "sourceNodeOutputId": str(edge.output),
                    "targetNodeInputId": str(edge.input),
                }
                for edge in edges.get(i, ())
            ],
            "outputsMetadata": _outputs(drawing.layers[i]),
        }
        for i, id in boxes.items()
    ]
    totals = {"layers": f"{drawing.total:,}", **({"findings": _texts(drawing.findings)} if drawing.findings else {})}
    return {"id": drawing.name or "model", "nodes": nodes, "groupNodeAttributes": {"": totals}}


def _namespaces(drawing: Drawing) -> dict[int, str]:
    """The namespace of each layer with a box."""
    paths, found, counts = {0: ""}, dict[int, str](), Counter[str]()
    # In the order of their first layers, and a frame before those in it.
    firsts = {
        f.index: min((layer.index for layer in drawing.inside(f)), default=len(drawing.layers)) for f in drawing.frames
    }
    for frame in sorted(drawing.frames, key=lambda one: (firsts[one.index], one.index)):
        if frame.parent is not None:
            # The bodies of a layer are beside it, in a group of its name.
            name = frame.name if frame.kind == "block" else frame.name.replace("/", ".")
            around = paths[frame.parent]
            # The viewer's font has no ellipsis, and groups of one path are one group there.
            path = (f"{around}/{name}" if around else name).replace("…", "..")
            counts[path] += 1
            paths[frame.index] = path if counts[path] == 1 else f"{path} ({counts[path]})"
            if frame.layer is not None:
                found[frame.layer] = around
        found |= {item: paths[frame.index] for item in frame.items if item >= 0}
    return found


def _attributes(drawing: Drawing, layer: DrawnLayer) -> list[dict[str, str]]:
    line, cost = layer.line, layer.cost
    found = {"version": line.version, **line.attributes}
    found |= {f"constant {i}": text for i, text in enumerate(layer.reads)}
    if line.line is not None:
        found["line"] = str(line.line)
    if cost is not None:
        numbers = {"MACs": cost.macs, "parameters": cost.parameters, "bytes": cost.bytes}
        found |= {name: f"{number:,}" for name, number in numbers.items() if number}
    if layer.milliseconds is not None:
        found["milliseconds"] = f"{layer.milliseconds:.4g}"
    if findings := drawing.findings_of(layer):
        found["findings"] = _texts(findings)
    return [{"key": key, "value": value} for key, value in found.items() if value]


def _texts(findings: Any) -> str:
    return "\n".join(f"{one.code} {one.severity}: {one.message}" for one in findings)


def _outputs(layer: DrawnLayer) -> list[dict[str, Any]]:
    """Names, types and shapes of the outputs; an edge shows the value of ``shape``."""
    line = layer.line
    return [
        {
            "id": str(i),
            "attrs": [
                {"key": "tensor_name", "value": names[0] if names else f"{line.name}:{i}"},
                {"key": "shape", "value": text},
            ],
        }
        for i, (names, text) in enumerate(zip(line.tensor_names, line.outputs, strict=True))
    ]
