"""IR with some of its elements and attributes changed: each function changes a tree where it can."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable

from lxml import etree

from tests.fuzz import corpus, odd

Change = Callable[[etree._Element, random.Random], object]
# Types of one size, so that a constant stays as long as it is declared to be.
_SAME_SIZE = [
    ["i64", "f64", "u64"],
    ["i32", "f32", "u32"],
    ["f16", "bf16", "i16", "u16"],
    ["i8", "u8", "boolean", "f8e4m3", "f8e5m2", "f8e8m0"],
    ["u4", "i4", "nf4", "f4e2m1"],
]


def mutate(text: bytes, rng: random.Random) -> bytes:
    """The .xml after one to four changes of its tree, and sometimes one of its text."""
    root = etree.fromstring(text)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        changes, weights = zip(*CHANGES, strict=True)
        rng.choices(changes, weights)[0](root, rng)
    found = etree.tostring(root)
    return rng.choice(TEXT_CHANGES)(found, rng) if rng.random() < 0.08 else found


def _pick(root: etree._Element, rng: random.Random, tag: str) -> etree._Element | None:
    found = list(root.iter(tag))
    return rng.choice(found) if found else None


def _set(element: etree._Element, name: str, text: str) -> None:
    """An attribute, without the characters that XML cannot hold."""
    element.set(name, re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text))


def _attribute(root: etree._Element, rng: random.Random) -> None:
    """Another text for any attribute."""
    elements = [element for element in root.iter(etree.Element) if element.attrib]
    element = rng.choice(elements)
    name = rng.choice(list(element.attrib))
    if rng.random() < 0.3:
        other = rng.choice(elements)
        _set(element, name, other.get(name) or rng.choice(list(other.attrib.values())))
    elif rng.random() < 0.3 and (numbers := list(re.finditer(r"-?\d+", element.get(name, "")))):
        number = rng.choice(numbers)
        text = element.get(name, "")
        _set(element, name, text[: number.start()] + rng.choice(odd.NUMBER_TEXTS) + text[number.end() :])
    else:
        _set(element, name, odd.word(rng))


def _data(root: etree._Element, rng: random.Random) -> None:
    """An attribute of an operation: changed, removed or added."""
    data = _pick(root, rng, "data")
    if data is None or not data.attrib:
        return
    name = rng.choice(list(data.attrib))
    choice = rng.random()
    if choice < 0.2:
        del data.attrib[name]
    elif choice < 0.3:
        _set(
            data,
            rng.choice(["axis", "mode", "auto_broadcast", "pads_begin", "keep_dims", "x", "shape", "element_type"]),
            odd.word(rng),
        )
    else:
        _set(data, name, odd.word(rng))


def _type(root: etree._Element, rng: random.Random) -> None:
    """Another type or version of a layer."""
    layer = _pick(root, rng, "layer")
    if layer is None:
        return
    row = rng.choice(corpus.rows())
    if rng.random() < 0.5:
        layer.set("type", row.type)
    if rng.random() < 0.7:
        layer.set(
            "version",
            rng.choice([row.definition.version, f"opset{rng.randint(1, 17)}", "opset0", "opset99", "extension", ""]),
        )


def _element_type(root: etree._Element, rng: random.Random) -> None:
    """Another element type of a Parameter or Constant, often one of the same size."""
    found = [data for data in root.iter("data") if data.get("element_type")]
    if not found:
        return
    data = rng.choice(found)
    same = next((names for names in _SAME_SIZE if data.get("element_type") in names), odd.ELEMENTS)
    data.set("element_type", rng.choice(same if rng.random() < 0.7 else odd.ELEMENTS))


def _shape(root: etree._Element, rng: random.Random) -> None:
    found = [data for data in root.iter("data") if data.get("shape") is not None]
    if not found:
        return
    data = rng.choice(found)
    sizes = data.get("shape", "").split(",")
    if rng.random() < 0.6:
        sizes[rng.randrange(len(sizes))] = rng.choice(
            ["?", "0", "1", "2", "1..4", "0..3", "-1", "7", "9223372036854775807"]
        )
        data.set("shape", ",".join(sizes))
    else:
        data.set("shape", rng.choice(odd.SHAPE_TEXTS))


def _sizes(root: etree._Element, rng: random.Random) -> None:
    """Sizes of Parameters and integers of attributes, several at once, that are 0, 1 or near 2^63."""
    for data in root.iter("data"):
        if data.get("offset") is not None:
            continue
        for name, text in data.attrib.items():
            likely = 0.4 if name == "shape" else 0.15
            parts = re.split(r"(?<![\w.])(-?\d+)(?![\w.])", text)
            parts[1::2] = [str(rng.choice(odd.SIZES)) if rng.random() < likely else part for part in parts[1::2]]
            data.set(name, "".join(parts))


def _constant(root: etree._Element, rng: random.Random) -> None:
    """Another offset, size or shape of a constant."""
    found = [data for data in root.iter("data") if data.get("offset") is not None]
    if found:
        data = rng.choice(found)
        name = rng.choice(["offset", "offset", "size", "shape"])
        near = (
            str(int(data.get(name)) + rng.choice([-8, -4, -1, 1, 2, 4, 8])) if (data.get(name) or "").isdigit() else "0"
        )
        _set(data, name, near if rng.random() < 0.5 else odd.word(rng))


def _edge(root: etree._Element, rng: random.Random) -> None:
    """An edge from or to another layer or port."""
    edge, other = _pick(root, rng, "edge"), _pick(root, rng, "edge")
    if edge is None or other is None or not edge.attrib:
        return
    name = rng.choice(list(edge.attrib))
    edge.set(
        name, other.get(name, "0") if rng.random() < 0.6 else rng.choice([str(rng.randint(0, 9)), *odd.NUMBER_TEXTS])
    )


def _dim(root: etree._Element, rng: random.Random) -> None:
    dim = _pick(root, rng, "dim")
    if dim is not None:
        dim.text = rng.choice(["-1", "0", "1", "2", "-2", "", " 3 ", *odd.NUMBER_TEXTS])


def _remove(root: etree._Element, rng: random.Random) -> None:
    """Any element goes, with what is in it."""
    found = [element for element in root.iter(etree.Element) if element is not root]
    if found:
        element = rng.choice(found)
        element.getparent().remove(element)


def _remove_layer(root: etree._Element, rng: random.Random) -> None:
    layer = _pick(root, rng, "layer")
    if layer is not None and layer is not root:
        layer.getparent().remove(layer)


def _duplicate(root: etree._Element, rng: random.Random) -> None:
    """A copy of any element beside it, or anywhere else."""
    found = [element for element in root.iter(etree.Element) if element is not root]
    if not found:
        return
    element = copy.deepcopy(rng.choice(found))
    if element.tag == "layer" and rng.random() < 0.5:
        element.set("id", str(rng.randint(50, 99)))
    beside = rng.choice([other for other in found if other.tag == element.tag] if rng.random() < 0.8 else found)
    beside.addnext(element)


def _swap(root: etree._Element, rng: random.Random) -> None:
    """Two elements of one parent change their order."""
    parents = [element for element in root.iter(etree.Element) if len(element) > 1]
    if parents:
        parent = rng.choice(parents)
        i, j = rng.sample(range(len(parent)), 2)
        children = list(parent)
        children[i], children[j] = children[j], children[i]
        parent[:] = children


def _splice(root: etree._Element, rng: random.Random) -> None:
    """A layer or a body of another model."""
    other = etree.fromstring(corpus.model(rng)[0])
    tag = rng.choice(["layer", "layer", "body", "port_map", "data"])
    given, taken = _pick(other, rng, tag), _pick(root, rng, tag)
    if given is not None and taken is not None:
        if tag == "layer" and rng.random() < 0.7:
            given.set("id", taken.get("id", "0"))
        taken.addnext(given)
        if rng.random() < 0.7:
            taken.getparent().remove(taken)


def _nest(root: etree._Element, rng: random.Random) -> None:
    """A body that holds a copy of the layer that it belongs to."""
    layer = next((element for element in root.iter("layer") if element.find("body") is not None), None)
    if layer is None:
        return
    for _ in range(rng.choice([1, 2, 5, 70])):
        inner = copy.deepcopy(layer)
        layers = layer.find("body/layers")
        if layers is None:
            return
        layers.append(inner)
        layer = inner
        if len(etree.tostring(root)) > 200_000:
            return


def _information(root: etree._Element, rng: random.Random) -> None:
    """Run-time information and other elements that need not be understood."""
    element = rng.choice(list(root.iter(etree.Element)))
    other = etree.SubElement(
        element,
        rng.choice(
            ["rt_info", "meta_data", "attribute", "x", "layers", "edges", "data", "port_map", "body", "input", "output"]
        ),
    )
    for _ in range(rng.randint(0, 3)):
        _set(other, rng.choice(["name", "version", "value", "id", "x"]), odd.word(rng))
    if rng.random() < 0.3:
        other.text = rng.choice(["text", "]]>", "1", " "])


def _ports(root: etree._Element, rng: random.Random) -> None:
    """A port goes, comes or gets another type or names."""
    port = _pick(root, rng, "port")
    if port is None:
        return
    choice = rng.random()
    if choice < 0.25:
        port.getparent().remove(port)
    elif choice < 0.5:
        port.addnext(copy.deepcopy(port))
    elif choice < 0.75:
        port.set(
            "precision",
            rng.choice(["FP32", "I64", "BOOL", "STRING", "dynamic", "undefined", "UNSPECIFIED", "FP33", ""]),
        )
    else:
        _set(port, "names", rng.choice(odd.TEXTS))


def _version(root: etree._Element, rng: random.Random) -> None:
    root.set("version", rng.choice(["10", "10", "7", "11", "12", "x", "", "99999999999999999999"]))


CHANGES: list[tuple[Change, int]] = [
    (_attribute, 6), (_data, 8), (_type, 5), (_element_type, 7), (_shape, 8), (_sizes, 5), (_constant, 3), (_edge, 4), (_dim, 3), (_remove, 3),
    (_remove_layer, 2), (_duplicate, 4), (_swap, 3), (_splice, 3), (_nest, 1), (_information, 2), (_ports, 3), (_version, 1),
]  # fmt: skip


def _entities(text: bytes, rng: random.Random) -> bytes:
    """A document type with entities, internal and of a file."""
    entity = rng.choice(
        [
            b'<!ENTITY a "b">',
            b'<!ENTITY a SYSTEM "file:///etc/passwd">',
            b'<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">',
            b'<!ENTITY % p SYSTEM "x.dtd">%p;',
        ]
    )
    used = text.replace(b'name="', b'name="&a;', 1) if rng.random() < 0.7 else text
    before = rng.choice([b"", b"<!-- -->", b"<?xml version='1.0'?>", b"\n"])
    return before + b"<!DOCTYPE net [" + entity + b"]>" + used


def _encoded(text: bytes, rng: random.Random) -> bytes:
    """Another encoding, that the declaration names or does not."""
    name = rng.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7"])
    declared = (
        f'<?xml version="1.0" encoding="{rng.choice([name, "utf-8", "x", "utf-16"])}"?>' if rng.random() < 0.7 else ""
    )
    return (declared + text.decode("utf-8")).encode(name, "replace")


def _comments(text: bytes, rng: random.Random) -> bytes:
    position = text.find(b">", rng.randrange(len(text))) + 1
    return (
        text[:position]
        + rng.choice(
            [
                b"<!-- x -->",
                b"<!-- x",
                b"<![CDATA[ <a> ]]>",
                b"<?xml-stylesheet href='x'?>",
                b"&amp;",
                b"&#0;",
                b"&x;",
                b"\x00",
                b"\xff",
            ]
        )
        + text[position:]
    )


def _deep(text: bytes, rng: random.Random) -> bytes:
    depth = rng.choice([10, 300, 600, 3000])
    return text.replace(b"<layers>", b"<a>" * depth + b"</a>" * depth + b"<layers>", 1)


TEXT_CHANGES = [_entities, _encoded, _comments, _deep]
