"""Graphs of models: images, a page to search and fold, Mermaid and Graphviz.

    drawing = draw(irexec.read_model("model.xml"), cluster=True)
    write_graph(drawing, "model.html")

``draw`` (draw.py) selects layers (content.py) and makes a ``Drawing`` (drawing.py): layers, and frames that fold
(frames.py, names.py). Each frame is laid out in pixels (layout.py); placing.py joins the unfolded frames
for svg.py, and a script does so in the browser for html.py. text_formats.py leaves the layout to the readers of its
formats.
"""

from irexec.tools.graph.draw import draw
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.files import FORMATS, GraphFile, write_graph
from irexec.tools.graph.html import graph_fragment, graph_page

__all__ = ["FORMATS", "Drawing", "GraphFile", "draw", "graph_fragment", "graph_page", "write_graph"]
