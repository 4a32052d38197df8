"""A trace of Chrome's format as an image: what ran on which thread, and when."""

from __future__ import annotations

import json
from html import escape

_FILLS = ("#d3e4fb", "#fde8c9", "#d4efd9", "#ded9fa", "#fbdcd8", "#cdeeee", "#eeeacb", "#e6dccf")
_STROKES = ("#1f62b5", "#996000", "#207a37", "#5644b8", "#b5372a", "#12747a", "#766b10", "#76532a")
_WIDTH, _ROW = 900.0, 30.0


def timeline(trace: str) -> str:
    """The image of a trace."""
    document = json.loads(trace)
    events = [
        one for one in (document if isinstance(document, list) else document["traceEvents"]) if one.get("ph") == "X"
    ]
    first = min(one["ts"] for one in events)
    length = max(one["ts"] + one["dur"] for one in events) - first
    threads = list(dict.fromkeys((one["pid"], one["tid"]) for one in events))
    names = list(dict.fromkeys(one["name"] for one in events))
    parts = []
    for one in events:
        x, width = (one["ts"] - first) / length * _WIDTH, max(1.0, one["dur"] / length * _WIDTH)
        y = 8 + _ROW * threads.index((one["pid"], one["tid"]))
        k = names.index(one["name"]) % len(_FILLS)
        parts.append(
            f'<g><title>{escape(one["name"])}: {one["dur"]:.1f} µs</title><rect x="{x + 8:.1f}" y="{y}" '
            f'width="{width:.1f}" height="22" fill="{_FILLS[k]}" stroke="{_STROKES[k]}" stroke-width="0.5"/>'
            + (
                f'<text x="{x + 12:.1f}" y="{y + 15}" fill="#15191e">{escape(_cut(one["name"], width))}</text>'
                if width > 40
                else ""
            )
            + "</g>"
        )
    height = 16 + _ROW * len(threads) + 18
    axis = "".join(
        f'<text x="{8 + _WIDTH * k / 5:.0f}" y="{height - 8:.0f}" fill="#56606b" '
        f'text-anchor="{"end" if k == 5 else "start"}">'
        f"{length * k / 5:.0f} µs</text>"
        for k in range(6)
    )
    size = f"{_WIDTH + 16:.0f}", f"{height:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} '
        f'{size[1]}" font-family="Helvetica, Arial, sans-serif" font-size="10.5"><rect width="100%" height="100%" '
        'fill="#ffffff"/>'
        f"{''.join(parts)}{axis}</svg>"
    )


def _cut(name: str, width: float) -> str:
    room = int(width / 6) - 1
    return name if len(name) <= room else f"{name[: max(1, room - 1)]}…"
