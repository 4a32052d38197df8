"""The output of a command as an image of a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_LIGHT = TerminalTheme(
    (250, 251, 252), (31, 35, 40),
    [(36, 41, 47), (190, 30, 36), (26, 115, 50), (146, 96, 0), (9, 95, 190), (130, 60, 180), (20, 112, 120),
    (110, 119, 129)],
    [(87, 96, 106), (190, 30, 36), (26, 115, 50), (146, 96, 0), (9, 95, 190), (130, 60, 180), (20, 112, 120),
    (80, 88, 96)],
)  # fmt: skip
_DARK = TerminalTheme(
    (22, 26, 31), (224, 230, 236),
    [(72, 79, 88), (255, 123, 114), (99, 200, 112), (227, 179, 65), (121, 184, 255), (210, 168, 255), (97, 207, 213),
    (177, 186, 196)],
    [(110, 118, 129), (255, 123, 114), (99, 200, 112), (227, 179, 65), (121, 184, 255), (210, 168, 255), (97, 207, 213),
    (240, 246, 252)],
)  # fmt: skip
_VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def size_of(svg: str, pattern: re.Pattern[str]) -> tuple[float, float]:
    """The width and height that a pattern finds in an image; raises ValueError for an image without."""
    found = pattern.search(svg)
    if found is None:
        raise ValueError(f"an image begins with {svg[:80]!r} and has no size")
    return float(found[1]), float(found[2])


def terminal_svg(line: str, output: str, columns: int, most: int, *, is_dark: bool) -> str:
    """An image of the command and of its output; it refers to no font of a server.

    Args:
        line: the command after its prompt.
        output: with escape sequences for colours.
        columns: of the terminal.
        most: lines of the output; 0 for all.
        is_dark: True for light text on a dark ground.
    """
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    prompt = Text.assemble(("$ ", "bright_black"), (line.removeprefix("$ "), "bold"))
    lines = output.rstrip().splitlines()
    shown = lines[:most] if most and len(lines) > most else lines
    console.print(prompt)
    console.print(Text.from_ansi("\n".join(shown)))
    if len(shown) < len(lines):
        console.print(Text(f"… {len(lines) - len(shown)} more lines", "bright_black"))
    # Rich cuts the last line at its base.
    console.print()
    text = console.export_svg(title="", theme=_DARK if is_dark else _LIGHT, unique_id="t")
    text = re.sub(r"@font-face \{.*?\}", "", text, flags=re.DOTALL).replace("Fira Code, monospace", _FONT)
    width, height = size_of(text, _VIEW_BOX)
    # Rich draws at 20 pixels a line; text of a page has 13.
    size = f' width="{width * 0.62:.0f}" height="{height * 0.62:.0f}"'
    return text.replace("<svg ", f"<svg{size} ", 1).replace(
        'class="rich-terminal"', 'class="rich-terminal" role="img"', 1
    )
