"""A Sphinx extension: before the build, pages are written from the registry of operations, the table of codes and the element types."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

FOLDER = "generated"


def write_pages(source: Path) -> list[Path]:
    """Write every generated page below ``source``/generated, in place of those of an earlier build; returns their paths."""
    from irexec_reference import codes, elements, operations, portability

    folder = source / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    written = []
    for name, text in {**operations.pages(), **codes.pages(), **elements.pages(), **portability.pages()}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written


def use_dashes(app: Any, doctree: Any, name: str) -> None:
    """The dash that Sphinx writes as ``--`` between a parameter and its description, which smartquotes would change elsewhere too."""
    from docutils import nodes

    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def keep_stars(app: Any, context: Any, lines: list[str]) -> None:
    """The help of a command is text: a pattern of files, such as ``*.png``, is not emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    app.connect("doctree-resolved", use_dashes)
    app.connect("sphinx-click-process-description", keep_stars)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
