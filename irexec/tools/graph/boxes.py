"""The texts of a box, their width, and shorter forms of long ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from irexec.messages import counted, visible
from irexec.tools.graph.drawing import SEVERITIES, Drawing, DrawnFrame, DrawnLayer

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


WIDTH = 172.0
"""Width of every box in pixels."""
TITLE, TEXT = 12.0, 10.0
"""Sizes of fonts."""
_TOP, _LINE, _BOTTOM = 19.0, 13.0, 7.0
_SPACE = WIDTH - 16


@dataclass(frozen=True)
class Box:
    """The texts of a box.

    Attributes:
        title: the type of a layer, the name of a block.
        lines: smaller texts below the title.
        badge: a time, to the right of the title.
        family: the family of operations, which determines the colours; "" for a block.
        severity: severity of the worst finding; None without findings.
        share: share of the time of a run, 0 to 1; None unless measured.
    """

    title: str
    lines: tuple[str, ...]
    badge: str = ""
    family: str = ""
    severity: str | None = None
    share: float | None = None

    @property
    def height(self) -> float:
        """In pixels."""
        return _TOP + _LINE * len(self.lines) + (_BOTTOM if self.lines else 4.0)


def box_of_item(drawing: Drawing, item: int) -> Box:
    """The box of an item of a frame; a frame is folded."""
    return layer_box(drawing, drawing.layers[item]) if item >= 0 else frame_box(drawing, drawing.frames[~item])


def layer_box(drawing: Drawing, layer: DrawnLayer) -> Box:
    """The box of a layer: type, name, and the constants that it reads."""
    badge = "" if layer.milliseconds is None else _milliseconds(layer.milliseconds)
    lines = [fitted(layer.line.name, TEXT, _SPACE)]
    if layer.reads:
        lines.append(fitted(", ".join(layer.reads), TEXT, _SPACE))
    return Box(_title(layer.line.type, badge), tuple(lines), badge, layer.family, drawing.severity(layer), layer.share)


def frame_box(drawing: Drawing, frame: DrawnFrame) -> Box:
    """The box of a folded frame: its name, the number of layers in it, and their most frequent types."""
    inside = list(drawing.inside(frame))
    folded = f"▸ {counted(len(inside), 'layer')}"
    if frame.layer is not None:
        owner = layer_box(drawing, drawing.layers[frame.layer])
        lines = (*owner.lines[:1], f"{folded} inside")
        return Box(owner.title, lines, owner.badge, "control", owner.severity, owner.share)
    times = [layer.milliseconds for layer in inside if layer.milliseconds is not None]
    badge = _milliseconds(sum(times)) if times else ""
    share = sum(layer.share or 0 for layer in inside) if times else None
    types = Counter(layer.line.type for layer in inside)
    frequent = listed([f"{type} ×{n}" if n > 1 else type for type, n in types.most_common(3)], TEXT, _SPACE)
    severities = {drawing.severity(layer) for layer in inside}
    severity = next((name for name in SEVERITIES if name in severities), None)
    lines = (folded, frequent)
    return Box(_title(frame.name, badge), lines, badge, "", severity, share)


def frame_title(drawing: Drawing, frame: DrawnFrame) -> str:
    """Title of an unfolded frame."""
    if frame.layer is None:
        return fitted(f"{frame.name} · {counted(sum(1 for _ in drawing.inside(frame)), 'layer')}", TEXT, 400)
    line = drawing.layers[frame.layer].line
    return fitted(f"{line.type} · {line.name}", TEXT, 400)


def _title(text: str, badge: str) -> str:
    return fitted(text, TITLE, _SPACE - (58 if badge else 14))


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"
