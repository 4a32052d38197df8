"""Sphinx extension that makes the tree of all pages in the sidebar of each page from their titles alone.

Sphinx copies the sections and functions of all pages for each page, and then drops them: half the time of a build.
"""

from __future__ import annotations

from typing import Any


def use_titles(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the theme a ``toctree`` that reads titles."""
    toctree = context.get("toctree")
    if toctree is None:
        return
    if not _titles:
        _titles.update({page: _title(toc) for page, toc in app.env.tocs.items()})

    def of_titles(**options: Any) -> Any:
        sections, app.env.tocs = app.env.tocs, _titles
        try:
            return toctree(**options)
        finally:
            app.env.tocs = sections

    context["toctree"] = of_titles


_titles: dict[str, Any] = {}
"""The title of each page, with everything below it where pages are; empty until the first page is written."""


def _title(toc: Any) -> Any:
    from sphinx import addnodes

    short = toc.deepcopy()
    for entry in short:
        if not any(entry.findall(addnodes.toctree)):
            del entry[1:]
    return short


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: _titles.clear())
    # Before the theme, which makes the tree at the usual priority of 500.
    app.connect("html-page-context", use_titles, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
