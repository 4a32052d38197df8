"""The picture of README.md: findings in a terminal and on the graph. ``python -m irexec_pictures.readme`` renews it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from irexec_pictures.runs import Studio

FILE = Path(__file__).parents[2] / "_static" / "readme.svg"
_GAP = 16.0


def readme_svg(folder: Path) -> str:
    """The terminal to the left of the graph, on a white ground.

    Args:
        folder: for the two pictures.
    """
    studio = Studio(folder)
    names = [
        studio.picture(["$ irexec validate samples/digits/damaged.xml"], 92, 0),
        studio.picture(
            ["$ irexec graph samples/digits/damaged.xml -o picture.svg --findings --around relu1 --hops 2"], 92, 0
        ),
    ]
    parts = []
    x = _GAP
    for one in names:
        text = (folder / f"{one.name}-light.svg").read_text("utf-8")
        text = re.sub(r"<\?xml.*?\?>\s*", "", text).replace("<svg ", f'<svg x="{x:.0f}" y="{_GAP:.0f}" ', 1)
        parts.append(text)
        x += one.width + _GAP
    height = max(one.height for one in names) + 2 * _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x:.0f}" height="{height:.0f}" viewBox="0 0 {x:.0f} '
        f'{height:.0f}">'
        f'<rect width="100%" height="100%" rx="10" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        FILE.write_text(readme_svg(Path(name)), "utf-8")
