"""The texts of a box."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from irexec.messages import counted
from irexec.tools.graph.drawing import SEVERITIES, Drawing, DrawnFrame, DrawnLayer
from irexec.tools.graph.texts import fitted, listed

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
