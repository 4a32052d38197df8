"""Markup as a browser would read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

from lxml import etree

_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}
_BLOCKS = {"details", "div", "dl", "h1", "h2", "h3", "nav", "p", "pre", "section", "table", "ul"}


@dataclass
class Element:
    """An element with what it contains."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    content: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, that of scripts and style sheets left out."""
        return "".join(
            c if isinstance(c, str) else "" if c.tag in ("script", "style") else c.text for c in self.content
        )

    def all(self, tag: str | None = None, where: Callable[[Element], bool] = lambda found: True) -> list[Element]:
        """The elements in it of a tag, in the order of the document."""
        found = []
        for inner in self.content:
            if isinstance(inner, Element):
                found += [inner] if tag in (None, inner.tag) and where(inner) else []
                found += inner.all(tag, where)
        return found

    def rows(self) -> list[list[str]]:
        """The texts of the cells of all rows in it."""
        return [[cell.text for cell in row.all() if cell.tag in ("td", "th")] for row in self.all("tr")]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("document")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        assert tag not in _BLOCKS or not any(outer.tag == "p" for outer in self.open), (
            f"<{tag}> ends the <p> that it is in"
        )
        found = Element(tag, dict(attrs))
        self.open[-1].content.append(found)
        if tag not in _VOID:
            self.open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].content.append(data)


def parse(markup: str) -> Element:
    """The document; AssertionError for elements that are not nested or not closed."""
    parser = _Parser()
    parser.feed(markup)
    parser.close()
    assert len(parser.open) == 1, f"<{parser.open[-1].tag}> is not closed"
    return parser.open[0]


# XML compared by what it says.


def canonical(element: etree._Element) -> object:
    """What an element says, ignoring white space."""
    return (
        element.tag,
        list(element.attrib.items()),
        (element.text or "").strip(),
        [canonical(child) for child in element],
    )
