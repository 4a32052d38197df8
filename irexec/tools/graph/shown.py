"""A drawing that displays in a notebook."""

from __future__ import annotations

from irexec.errors import UnsupportedError
from irexec.html import Html, display, element
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.svg import svg

_MAX_BOXES = 500
"""Boxes of an image in a notebook."""


class ShownDrawing(Drawing):
    """A drawing. In a notebook it is an image, or a sentence where that would be too large or igraph is not installed."""

    def _repr_html_(self) -> str:
        title = f"{self.name}: {self.boxes} of {self.total} layers"
        if self.boxes > _MAX_BOXES:
            return display(
                title,
                element(
                    "p", f"more than {_MAX_BOXES} boxes: write_graph makes a page of them, or cluster=True folds blocks"
                ),
            )
        try:
            image = svg(self)
        except UnsupportedError as error:
            return display(title, element("p", error))
        # A declaration of XML is not HTML.
        return display(title, element("div", Html(image.partition("\n")[2]), class_="scroll"))
