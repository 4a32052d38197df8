"""HTML for notebooks and pages: what ``_repr_html_`` of any class and the files that commands write are made of."""

from irexec.html.charts import area, bar, bars, histogram
from irexec.html.markup import Content, Html, element, escaped, joined
from irexec.html.page import data, display, page
from irexec.html.records import ROWS, Record, Records, record, records
from irexec.html.tables import Amount, Column, Row, definitions, sections, table

__all__ = [
    "ROWS",
    "Amount",
    "Column",
    "Content",
    "Html",
    "Record",
    "Records",
    "Row",
    "area",
    "bar",
    "bars",
    "data",
    "definitions",
    "display",
    "element",
    "escaped",
    "histogram",
    "joined",
    "page",
    "record",
    "records",
    "sections",
    "table",
]
