"""A report as one page that needs no other file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from irexec.display.markup import Content, element, joined
from irexec.display.page import page
from irexec.ir.garbage import collection_paused
from irexec.tools.report.contents import Contents
from irexec.tools.report.overview import overview
from irexec.tools.report.sections import page_sections


@dataclass(frozen=True)
class Page:
    """A page, and the ids of its sections in their order."""

    text: str
    sections: tuple[str, ...]


@collection_paused()
def report_page(found: Contents, title: str, origin: str, graph: Content = None) -> Page:
    """The page.

    Args:
        found: the contents of the report.
        title: the heading.
        origin: by what, and when, the report was made.
        graph: the drawing of the graph, or why there is none.
    """
    parts = page_sections(found, graph)
    links = [element("a", part.title, href=f"#{part.id}") for part in parts]
    content = joined(
        element(
            "header",
            element("h1", title),
            element("p", origin, class_="note"),
            overview(found),
        ),
        element("nav", links, aria_label="contents"),
        element("main", [part.html() for part in parts]),
    )
    text = page(title, content, style_sheet=_file("report.css"), script=_file("report.js"))
    return Page(text, tuple(part.id for part in parts))


def _file(name: str) -> str:
    return (files("irexec.tools.report") / name).read_text("utf-8")
