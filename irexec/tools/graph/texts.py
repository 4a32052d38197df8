"""Texts in boxes: their width, and shorter forms of long ones."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.messages import visible

# In units of the font size, somewhat above common sans-serif fonts, so that a letter that is wider than expected still
# fits.
_NARROW, _WIDE, _CAPITAL, _OTHER, _FULL = 0.34, 0.95, 0.73, 0.61, 1.05
_OF = {
    **dict.fromkeys(" !'()*,-./:;I[]`fijlrt{|}", _NARROW),
    **dict.fromkeys("%@MWmw", _WIDE),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ&+<=>~", _CAPITAL),
}
_LONGEST = 1_000


def width(text: str, size: float) -> float:
    """Approximate width of a text in a sans-serif font of that size, in the same unit."""
    return size * sum(_OF.get(letter, _OTHER if letter < "\u0250" else _FULL) for letter in text)


def fitted(text: str, size: float, space: float) -> str:
    """The text as one visible line of at most ``space``. A long path keeps its end, another long text its beginning and
    its end."""
    text = visible(text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}{text[-_LONGEST // 2 :]}")
    if width(text, size) <= space:
        return text
    part = 0 if "/" in text else 3
    lo, hi = 0, len(text)
    while lo < hi:
        middle = (lo + hi + 1) // 2
        lo, hi = (middle, hi) if width(_shortened(text, middle, part), size) <= space else (lo, middle - 1)
    return _shortened(text, lo, part)


def listed(texts: Sequence[str], size: float, space: float) -> str:
    """The first texts, joined by commas, that fit into ``space``; at least one."""
    for number in range(len(texts), 1, -1):
        text = ", ".join(texts[:number]) + (", …" if number < len(texts) else "")
        if width(text, size) <= space:
            return text
    return fitted(", ".join(texts[:1]), size, space)


def _shortened(text: str, count: int, part: int) -> str:
    """``count`` characters of a text: ``count // part`` from its beginning (none for 0), the others from its end."""
    head = count // part if part else 0
    return f"{text[:head]}…{text[len(text) - (count - head) :]}"


FONTS = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
"""Fonts of images, the first that is installed."""

PNG_SIDE = 16_000
"""Maximum number of pixels of a side of an image."""
