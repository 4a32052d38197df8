"""A drawing that displays in a notebook."""

from __future__ import annotations

from irexec.display import Content, Text
from irexec.display.markup import Html, element
from irexec.records import Shown
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.svg import svg

_MAX_BOXES = 500
"""Boxes of an image in a notebook."""


class ShownDrawing(Shown, Drawing):
    """A drawing that a notebook displays as an image, or as a sentence if the image would be too large."""

    def sections(self) -> list[Content]:
        """The title and the image."""
        title = Text(f"{self.name}: {self.boxes} of {self.total} layers", "title")
        if self.boxes > _MAX_BOXES:
            return [
                title,
                f"more than {_MAX_BOXES} boxes: write_graph makes a page of them, or cluster=True folds blocks",
            ]
        # A declaration of XML is not HTML.
        return [title, element("div", Html(svg(self).partition("\n")[2]), class_="scroll")]
