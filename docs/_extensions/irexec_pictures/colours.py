"""Drawings on a dark page."""

from __future__ import annotations

import re

from irexec.tools.graph.drawing import FAMILIES

_DARK = {
    "#ffffff": "#14171b", "#15191e": "#eef1f4", "#2c343c": "#dfe4e9", "#56606b": "#b3bdc7", "#4c5661": "#b3bdc7",
    "#f5f7f9": "#1d2227",
    "#fdfdfe": "#171b1f", "#a9b3bd": "#4d5863", "#7c8792": "#8a95a0", "#c3cad1": "#3f4850", "#6b7683": "#8793a0",
    "#8f2714": "#ff9a80",
}  # fmt: skip


def darkened(svg: str) -> str:
    """A drawing of irexec graph in the colours of a dark page, as its page has them."""
    colours = dict(_DARK)
    for family in FAMILIES.values():
        colours |= {family.fill: family.dark_fill, family.stroke: family.dark_stroke}
    return re.sub("#[0-9a-f]{6}", lambda found: colours.get(found[0], found[0]), svg)
