"""Smaller XML: without elements, attributes or parts of texts; bytes where it is not XML."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from lxml import etree

from tests.fuzz.shrink import parts, smaller_bytes


def smaller_xml(text: bytes) -> Iterator[bytes]:
    """The largest steps first: layers with their edges, other elements, attributes, texts."""
    try:
        root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except etree.XMLSyntaxError:
        yield from smaller_bytes(text)
        return
    if root.getroottree().docinfo.doctype or not text.lstrip().startswith(b"<" + str(root.tag).encode()):
        yield from smaller_bytes(text)
        return
    yield from _without_layers(root)
    yield from _without_elements(root)
    yield from _without_attributes(root)


def _without_layers(root: etree._Element) -> Iterator[bytes]:
    """Without one layer, and without its edges."""
    for parent_index, layers in enumerate(root.iter("layers")):
        for i in range(len(layers)):
            smaller = copy.deepcopy(root)
            these = list(smaller.iter("layers"))[parent_index]
            layer = these[i]
            these.remove(layer)
            for edge in list(smaller.iter("edge")):
                if layer.get("id") in (edge.get("from-layer"), edge.get("to-layer")):
                    edge.getparent().remove(edge)
            yield etree.tostring(smaller)


def _without_elements(root: etree._Element) -> Iterator[bytes]:
    count = sum(1 for _ in root.iter(etree.Element))
    for kept in parts(list(range(1, count))):
        gone = set(range(1, count)) - set(kept)
        smaller = copy.deepcopy(root)
        for i, element in enumerate(list(smaller.iter(etree.Element))):
            if i in gone and element.getparent() is not None:
                element.getparent().remove(element)
        yield etree.tostring(smaller)


def _without_attributes(root: etree._Element) -> Iterator[bytes]:
    for i, element in enumerate(root.iter(etree.Element)):
        for name, text in element.attrib.items():
            for other in (None, *(found for found in _simpler(str(text)) if found != text)):
                smaller = copy.deepcopy(root)
                same = list(smaller.iter(etree.Element))[i]
                if other is None:
                    del same.attrib[name]
                else:
                    same.set(name, other)
                yield etree.tostring(smaller)


def _simpler(text: str) -> Iterator[str]:
    if "," in text:
        yield from (",".join(items) for items in parts(text.split(",")))
    elif len(text) > 1 and not text.isdigit():
        yield from (text[: len(text) // 2], text[:1])
