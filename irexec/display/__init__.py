"""How results look: a small model of a document, and its renderers for text and, in ``hypertext``, for HTML.

A result says its ``sections()`` once; nothing below the tools knows how anything looks.
"""

from irexec.display.document import (
    Amount,
    Bar,
    Column,
    Content,
    Curve,
    Definitions,
    Guided,
    HistogramChart,
    Section,
    Table,
    Text,
    bars,
    records,
    sections_of,
)
from irexec.display.text import TextFormat, lines, plain

__all__ = [
    "Amount",
    "Bar",
    "Column",
    "Content",
    "Curve",
    "Definitions",
    "Guided",
    "HistogramChart",
    "Section",
    "Table",
    "Text",
    "TextFormat",
    "bars",
    "lines",
    "plain",
    "records",
    "sections_of",
]
