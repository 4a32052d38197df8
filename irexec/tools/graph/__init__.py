"""Graphs of models: images, a page to search and fold, Mermaid and Graphviz.

    drawing = draw(irexec.read_model("model.xml"), cluster=True)
    write_graph(drawing, "model.html")

``draw`` (draw.py) selects layers (content.py) and makes a ``Drawing`` (drawing.py): layers, and frames that fold
(content.py, names.py). Each frame is laid out in pixels (layout.py); placing.py joins the unfolded frames for an SVG,
and a script does so in the browser for a page (svg.py). text_formats.py leaves the layout to the readers of its
formats.
"""

from irexec.tools.graph.draw import FORMATS, GraphFile, draw, write_graph
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.svg import graph_fragment, graph_page

__all__ = ["FORMATS", "Drawing", "GraphFile", "draw", "graph_fragment", "graph_page", "write_graph"]
