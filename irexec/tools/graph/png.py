"""A drawing as an image: its SVG, rasterised by resvg with the fonts of the system. resvg needs no other library."""

from __future__ import annotations

from typing import Any

from irexec.errors import InputError, UnsupportedError
from irexec.tools.graph.boxes import FONTS, PNG_SIDE
from irexec.tools.images.files import Notify

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
