"""Sphinx extension that generates pages from the registry of operations, the table of codes and the element types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = "generated"


def write_pages(source: Path) -> list[Path]:
    """Write every generated page below ``source``/generated. Unchanged pages keep their time, so that no build repeats.

    Returns their paths. Pages of an earlier build that are no longer generated are removed.
    """
    from irexec_reference import codes, elements, onnx_table, operations, portability

    folder = source / FOLDER
    written = []
    every = (operations, codes, elements, portability, onnx_table)
    for name, text in (page for module in every for page in module.pages().items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Hundreds of entries in the sidebar would dominate the time of the build and the size of every page.
        text = text if path.name == "index.md" or path.suffix != ".md" else f"---\norphan: true\n---\n\n{text}"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    for path in set(folder.rglob("*.md")) - set(written):
        path.unlink()
    return written


def use_dashes(app: Any, doctree: Any, name: str) -> None:
    """The dash that Sphinx writes as ``--`` after a parameter; smartquotes would change other texts too."""
    from docutils import nodes

    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def keep_stars(app: Any, context: Any, lines: list[str]) -> None:
    """The help of a command is text: a pattern of files, such as ``*.png``, is not emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def break_titles(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The titles of an operation may be broken before a capital, and nowhere else within a word."""
    if name.startswith(f"{FOLDER}/operations/") and context.get("body"):
        context["body"] = re.sub(r"(?<=<h[12]>)[\w-]+", _with_breaks, context["body"])


def _with_breaks(title: re.Match[str]) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "<wbr>", title[0])


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    app.connect("html-page-context", break_titles)
    app.connect("doctree-resolved", use_dashes)
    app.connect("sphinx-click-process-description", keep_stars)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
