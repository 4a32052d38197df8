"""The files that a drawing is written to.

An image of pixels is the SVG, rasterised by resvg with the fonts of the system. resvg needs no other library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from irexec.errors import InputError, UnsupportedError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.messages import silent
from irexec.records import Record
from irexec.tools.graph.drawing import FONTS, PNG_SIDE, Drawing
from irexec.tools.graph.html import graph_page
from irexec.tools.graph.svg import svg_and_size
from irexec.tools.graph.text_formats import MAX_EDGES, MAX_TEXT, dot, mermaid
from irexec.tools.images import Notify

Format = Literal["svg", "html", "png", "mmd", "dot"]

FORMATS: dict[Format, str] = {
    "svg": "an image that can be enlarged",
    "html": "a page to search, fold and click in",
    "png": "an image of pixels",
    "mmd": "Mermaid, for Markdown",
    "dot": "Graphviz",
}
_SUFFIXES: dict[str, Format] = {
    ".svg": "svg", ".html": "html", ".htm": "html", ".png": "png", ".mmd": "mmd", ".mermaid": "mmd", ".dot": "dot",
    ".gv": "dot",
}  # fmt: skip


@dataclass(frozen=True)
class GraphFile(Record):
    """A file that was written.

    Attributes:
        path: as given.
        format: one of FORMATS.
        bytes: its size.
    """

    path: str
    format: Format
    bytes: int


def format_of(path: str) -> Format:
    """The format of a path by its suffix; raises InputError for any other suffix."""
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise InputError(f"-o {path}: a graph is written to a file that ends in {', '.join(_SUFFIXES)}")
    return found


def check_graph_file(path: str, read: Mapping[str, str]) -> None:
    """Raise an error if a drawing cannot be written, before anything is done.

    Args:
        path: the file to write.
        read: the files to read, with a description of each.

    Raises:
        InputError: the suffix is unknown, or the file would overwrite an input or anything but a file.
        UnsupportedError: a package that is needed is not installed.
    """
    check_format(format_of(path))
    check_file("-o", Path(path), read)


def check_format(format: Format) -> None:
    """Raise UnsupportedError unless the packages that a format needs are installed."""
    if format == "png":
        load_resvg()


def rendered(
    drawing: Drawing,
    format: Format,
    *,
    scale: float = 1.0,
    columns: int | None = None,
    notify: Notify = silent,
) -> bytes:
    """The content of a file of that format.

    Args:
        drawing: of a model.
        format: one of FORMATS.
        scale: of a .png.
        columns: of a .png or .svg, between which a long graph is divided; None for as many as fit its length.
        notify: called with notes for the user.

    Raises:
        InputError: the image cannot be made.
        UnsupportedError: a package that is needed is not installed.
    """
    if format == "html":
        return graph_page(drawing).encode()
    if format == "dot":
        return dot(drawing).encode()
    if format == "mmd":
        return _mermaid(drawing, notify).encode()
    text, size = svg_and_size(drawing, columns)
    return text.encode() if format == "svg" else png(text, size, scale, notify)


def _mermaid(drawing: Drawing, notify: Notify) -> str:
    text = mermaid(drawing)
    edges = text.count(" -->")
    if len(text) > MAX_TEXT or edges > MAX_EDGES:
        notify(
            f"Mermaid shows at most {MAX_TEXT:,} characters and {MAX_EDGES} edges unless configured otherwise, here "
            f"are {len(text):,} and {edges:,}: --around, --from and --to draw a part, --cluster folds blocks"
        )
    return text


def write_graph(
    drawing: Drawing, path: str, *, scale: float = 1.0, columns: int | None = None, notify: Notify = silent
) -> GraphFile:
    """Write a drawing in the format of the suffix, whole or not at all.

    Args:
        drawing: of a model.
        path: of the file: .svg, .html, .png, .mmd or .dot.
        scale: of a .png.
        columns: of a .png or .svg, between which a long graph is divided; None for as many as fit its length.
        notify: called with notes for the user.

    Raises:
        InputError: the suffix is another one, or the image cannot be made.
        ModelError: the file cannot be written; what was there before is as it was.
        UnsupportedError: a package that is needed is not installed.
    """
    format = format_of(path)
    content = rendered(drawing, format, scale=scale, columns=columns, notify=notify)
    with new_file(path) as file:
        file.write(content)
    return GraphFile(path, format, len(content))


_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    f'<text x="1" y="15" font-family="{FONTS}">MW</text></svg>'
)
_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>'


def load_resvg() -> Any:
    """The package resvg_py.

    Raises:
        UnsupportedError: the package is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        raise UnsupportedError(
            "resvg-py is not installed, which makes .png images: pip install 'irexec[png]'"
        ) from None
    return resvg_py


def png(svg: str, size: tuple[float, float], scale: float, notify: Notify) -> bytes:
    """The bytes of a .png.

    Args:
        svg: the document.
        size: its width and height.
        scale: pixels of the image per pixel of the document; reduced if a side would exceed ``PNG_SIDE`` pixels.
        notify: called with notes for the user.

    Raises:
        InputError: the image cannot be made.
        UnsupportedError: resvg-py is not installed.
    """
    resvg = load_resvg()
    largest = PNG_SIDE / max(size)
    if scale > largest:
        notify(
            f"the image is {largest:.2g} times as large as the graph: no side has more than {PNG_SIDE:,} pixels; an "
            ".svg has no limit"
        )
    try:
        if resvg.svg_to_bytes(svg_string=_PROBE) == resvg.svg_to_bytes(svg_string=_EMPTY):
            notify(f"none of the fonts {FONTS} is installed: the image has no texts")
        return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=min(scale, largest)))
    except ValueError as error:
        raise InputError(f"the image cannot be made: {error}") from None
