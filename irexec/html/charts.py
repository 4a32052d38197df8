"""Small charts as inline SVG, which need no script and take the colours of the text around them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from irexec.html.markup import Content, Html, element
from irexec.html.tables import Column, table

_WIDTH, _HEIGHT = 120, 32
_BAR = 12
_AREA = 640, 80


def histogram(counts: Sequence[int], low: float, high: float, *, width: int = _WIDTH, height: int = _HEIGHT) -> Html:
    """A histogram: a bar for each of the intervals of equal width between ``low`` and ``high``.

    An interval with any element has a bar that can be seen. ``width`` and ``height`` are pixels.
    """
    total, highest = sum(counts), max(counts, default=0)
    text = f"histogram of {total:,} elements from {low:.4g} to {high:.4g}"
    starts, wide = _places(len(counts), width)
    bars = [
        f"M{starts[i]} {height}v-{_short(max(1.0, count / highest * height))}h{wide}V{height}z"
        for i, count in enumerate(counts)
        if count
    ]
    drawn = [element("title", text), element("path", d="".join(bars)) if bars else None]
    return _svg(drawn, width, height, text, "histogram")


@functools.cache
def _places(count: int, width: int) -> tuple[list[str], str]:
    """Where the bars of a histogram begin, and how wide each is."""
    step = width / max(1, count)
    return [_short(i * step) for i in range(count)], _short(max(0.5, step - 0.5))


def bar(part: float, text: str) -> Html:
    """A horizontal bar that fills a part, 0 to 1, of its width; ``text`` says the same to who cannot see it."""
    part = min(1.0, max(0.0, part))
    drawn = [element("title", text), element("path", d=f"M0 0h{_short(part * _WIDTH)}v{_BAR}H0z")]
    return _svg(drawn, _WIDTH, _BAR, text, "bar")


def area(values: Sequence[float], text: str) -> Html:
    """A filled curve over values that follow each other, from 0 to the largest; ``text`` says what to who cannot see it.

    Of more values than there are pixels, those of each pixel are drawn as their largest.
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


def bars(
    rows: Sequence[tuple[str, float, str]],
    *,
    titles: tuple[str, str] = ("", ""),
    caption: Content = None,
    limit: int | None = None,
) -> Html:
    """A table with a bar in each row.

    Args:
        rows: label, value (at least 0), and the value as text.
        titles: of the labels and the values.
        caption, limit: as for ``table``.
    """
    highest = max((value for _, value, _ in rows), default=0.0)
    columns = [Column(titles[0], is_code=True), Column(titles[1], is_number=True), ""]
    cells = [
        (label, text, bar(value / highest if highest > 0 else 0.0, f"{label}: {text}")) for label, value, text in rows
    ]
    return table(columns, cells, caption=caption, limit=limit, class_="bars")


def _svg(drawn: Sequence[Content], width: int, height: int, text: str, class_: str) -> Html:
    return element(
        "svg", *drawn, class_=class_, role="img", aria_label=text, width=width, height=height, viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
    )  # fmt: skip


def _short(number: float, digits: int = 1) -> str:
    """As few digits after the point as can be seen."""
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".")
