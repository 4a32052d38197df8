"""XML compared by what it says."""

from __future__ import annotations

from lxml import etree


def canonical(element: etree._Element) -> object:
    """What an element says, ignoring white space."""
    return (
        element.tag,
        list(element.attrib.items()),
        (element.text or "").strip(),
        [canonical(child) for child in element],
    )
