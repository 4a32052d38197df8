"""Where markup is shown: in the output of a notebook's cell, or as a page of its own."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from irexec.display.document import Text, sections_of
from irexec.display.hypertext import html
from irexec.display.markup import Content, Html, element, joined
from irexec.records import ROWS, Report

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""A page loads nothing, from the network or from a file."""


def notebook(value: object) -> str:
    """The return value of ``_repr_html_``: the sections of a value, with the style sheet.

    The style sheet applies to this output alone, and takes the colours of the notebook. Where a viewer drops it, all is
    still readable. A report whose sections begin without a title gets its repr as one.
    """
    contents = list(sections_of(value))
    if isinstance(value, Report) and not (contents and isinstance(contents[0], Text) and contents[0].style == "title"):
        contents.insert(0, Text(repr(value).strip("<>"), "title"))
    return str(element("div", element("style", style("base")), html(contents, ROWS), class_="irexec"))


def page(title: str, *content: Content, style_sheet: str = "", script: str = "") -> str:
    """A whole document that needs no other file: light or dark as the reader's system is, for screens of any width and
    for print.

    Args:
        title: of the window.
        content: of the body.
        style_sheet: CSS after that of every page.
        script: JavaScript that runs when the page is complete.
    """
    css = Html(style("base") + style("page") + style_sheet)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("style", css),
    )
    body = element("body", *content, element("script", Html(script)) if script else None, class_="irexec")
    return joined(Html("<!DOCTYPE html>\n"), element("html", head, Html("\n"), body, lang="en"), Html("\n"))


def data(id: str, document: Any) -> Html:
    """A JSON document inside of a page, for its script: ``JSON.parse(document.getElementById(id).textContent)``.

    NaN and infinities are not JSON: who calls this writes them as something else.
    """
    # Nothing in a string may end the element or begin a comment.
    text = json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
    return element("script", Html(text), type="application/json", id=id)


@cache
def style(name: str) -> Html:
    """A style sheet of this package: "base" for what is shown anywhere, "page" for pages."""
    # Imported here since most programs show nothing.
    from importlib.resources import files

    return Html((files("irexec.display") / f"{name}.css").read_text("utf-8"))
