"""Small charts as inline SVG, which need no script and take the colours of the text around them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from irexec.display.document import HistogramChart
from irexec.display.markup import Content, Html, element

_WIDTH, _HEIGHT = 120, 32
_LARGE = 320, 80
_BAR = 12
_AREA = 640, 80
_LIGHTER = 0.4
"""Opacity of the lighter parts of bars."""


def histogram(chart: HistogramChart) -> Html:
    """A histogram; an interval with any element has a bar that can be seen."""
    width, height = _LARGE if chart.is_large else (_WIDTH, _HEIGHT)
    total = sum(chart.counts)
    text = f"histogram of {total:,} elements from {chart.low:.4g} to {chart.high:.4g}"
    starts, wide = _positions(len(chart.counts), width)
    bars, lighter = "", ""
    for start, (part, light) in zip(starts, chart.parts(), strict=True):
        size = max(1.0, part * height) if part else 0.0
        if size:
            bars += f"M{start} {height}v-{_short(size)}h{wide}V{height}z"
        if light:
            bottom, top = _short(height - size), _short(height - max(size + 1.0, (part + light) * height))
            lighter += f"M{start} {bottom}V{top}h{wide}V{bottom}z"
    drawn = [
        element("title", text),
        element("path", d=bars) if bars else None,
        element("path", d=lighter, fill_opacity=_LIGHTER) if lighter else None,
    ]
    return _svg(drawn, width, height, text, "histogram")


@functools.cache
def _positions(count: int, width: int) -> tuple[list[str], str]:
    """The left edges of the bars of a histogram, and the width of a bar."""
    step = width / max(1, count)
    return [_short(i * step) for i in range(count)], _short(max(0.5, step - 0.5))


def bar(part: float, text: str) -> Html:
    """A horizontal bar that fills a part, 0 to 1, of its width; ``text`` is its accessible label."""
    part = min(1.0, max(0.0, part))
    drawn = [element("title", text), element("path", d=f"M0 0h{_short(part * _WIDTH)}v{_BAR}H0z")]
    return _svg(drawn, _WIDTH, _BAR, text, "bar")


def area(values: Sequence[float], text: str) -> Html:
    """A filled curve over values that follow each other, from 0 to the largest; ``text`` is its accessible label.

    If there are more values than pixels, each pixel shows the largest of its values.
    """
    width, height = _AREA
    step = max(1, -(-len(values) // width))
    drawn = [max(values[first : first + step]) for first in range(0, len(values), step)]
    highest = max(drawn, default=0.0) or 1.0
    across = width / max(1, len(drawn))
    path = "".join(f"V{_short(height - value / highest * height)}h{_short(across, 2)}" for value in drawn)
    return _svg(
        [element("title", text), element("path", d=f"M0 {height}{path}V{height}z")], width, height, text, "area"
    )


_GOOD, _BAD, _LABEL = "#2e7d32", "#b71c1c", "#555"
_LETTER = 6.7
"""Width of a letter of a badge, in pixels: text is stretched to it, so that a font that is wider does not overflow."""


def badge(label: str, text: str, *, is_good: bool) -> str:
    """A document of one line, for the page of a project: a label, and a text on green or red."""
    first, second = (round(_LETTER * len(part)) + 12 for part in (label, text))
    parts = (0, first, label, _LABEL), (first, second, text, _GOOD if is_good else _BAD)
    drawn = [
        element("g", element("rect", x=start, width=width, height=20, fill=colour), element(
            "text", part, x=start + 6, y=14, textLength=width - 12, fill="#fff", font_size=11,
            font_family="Verdana, DejaVu Sans, sans-serif",
        ))
        for start, width, part, colour in parts
    ]  # fmt: skip
    whole = element(
        "svg", element("title", f"{label}: {text}"), *drawn, xmlns="http://www.w3.org/2000/svg", role="img",
        aria_label=f"{label}: {text}", width=first + second, height=20,
    )  # fmt: skip
    return f"{whole}\n"


def _svg(drawn: Sequence[Content], width: int, height: int, text: str, class_: str) -> Html:
    return element(
        "svg", *drawn, class_=class_, role="img", aria_label=text, width=width, height=height,
        viewBox=f"0 0 {width} {height}", preserveAspectRatio="none",
    )  # fmt: skip


def _short(number: float, digits: int = 1) -> str:
    """A number with as few digits after the point as can be seen."""
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".")
