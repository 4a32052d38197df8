"""Changes of a layer by itself: its type, name, version, attributes, tensor names, metadata, and declared ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from irexec import io
from irexec.analysis.matching import Pair
from irexec.analysis.matching.keys import attribute_values
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.tools.diff.result import Change

_RECORD = ("bin_size", "bin_sample", "bin_crc32")
"""Attributes of <net> that record the contents of the .bin."""
_OUTPUT_NAMES = "output_names"
"""Attribute that OpenVINO writes at a Result: the tensor names of its input."""
_SHAPES, _TYPES = ("shape", "variable_shape"), ("element_type", "variable_type")
"""Attributes that declare the shape and type of an output."""


def own_changes(a: Node, b: Node) -> Iterator[Change]:
    """Changes of the layer itself, regardless of other layers."""
    if a.type != b.type:
        yield Change("type", "type", a.type, b.type)
    if a.name != b.name:
        yield Change("names", "name", a.name, b.name)
    if a.version != b.version:
        yield Change("versions", "version", a.version, b.version)
    if a.type == b.type:
        yield from _attributes(a, b)
    yield from _tensor_names(a, b)
    yield from _metadata(a, b)


def _attributes(a: Node, b: Node) -> Iterator[Change]:
    mine, theirs = attribute_values(a), attribute_values(b)
    for name in dict.fromkeys([*mine, *theirs]):
        if mine.get(name) == theirs.get(name):
            continue
        kind = "attributes"
        if a.type in ("Parameter", "ReadValue"):
            kind = "shapes" if name in _SHAPES else "types" if name in _TYPES else kind
        yield Change(kind, name, _written(a, name, mine), _written(b, name, theirs))


def _written(node: Node, name: str, values: Mapping[str, str]) -> str | None:
    """The text of an attribute; the default value if it is left out."""
    if name in node.attributes:
        return node.attributes[name]
    return f"{values[name]} (default)" if name in values else None


def _tensor_names(a: Node, b: Node) -> Iterator[Change]:
    for mine, theirs in zip(a.outputs, b.outputs, strict=False):
        if set(mine.names) != set(theirs.names):
            yield Change(
                "tensor-names", f"tensor names of output {mine.index}", names_text(mine.names), names_text(theirs.names)
            )


def names_text(names: list[str]) -> str | None:
    """Tensor names in one text; None for no names."""
    return ", ".join(sorted(names)) or None


def _metadata(a: Node, b: Node) -> Iterator[Change]:
    yield from metadata_changes(a, b)
    for index, (one, other) in enumerate(zip(a.ports, b.ports, strict=False)):
        yield from metadata_changes(one, other, f"input {index} ")
    for mine, theirs in zip(a.outputs, b.outputs, strict=False):
        yield from metadata_changes(mine, theirs, f"output {mine.index} ")


def metadata_changes(
    a: Graph | Node | Input | Value, b: Graph | Node | Input | Value, prefix: str = ""
) -> Iterator[Change]:
    """Changes of the data of a file beside the graph."""
    if a.payload is None and b.payload is None:
        return
    mine, theirs = _said(a.payload), _said(b.payload)
    for name in dict.fromkeys([*mine, *theirs]):
        if mine.get(name) != theirs.get(name):
            kind = "tensor-names" if name == _OUTPUT_NAMES else "metadata"
            yield Change(kind, f"{prefix}{name}", mine.get(name), theirs.get(name))


def _said(payload: Any) -> dict[str, str]:
    """The texts of a payload, by the paths of their elements."""
    said = io.plain(payload)
    found = {name: text for name, text in said.get("attributes", {}).items() if name not in _RECORD}
    for tag, attributes in said.get("parts", {}).items():
        found |= {f"{tag} {name}": text for name, text in attributes.items()}
    return found | dict(_elements(iter(said.get("elements", ())), "", None))


def _elements(rows: Iterator[Any], path: str, count: int | None) -> Iterator[tuple[str, str]]:
    """Elements in the order of the file, each with the number of its children, as texts by path; ``count`` of them."""
    done = 0
    while count is None or done < count:
        row = next(rows, None)
        if row is None:
            return
        done += 1
        tag, attributes, text, children = row
        name = attributes.get("name") if tag in ("attribute", "info") else None
        here = f"{path}{tag if name is None else name}"
        shown = {key: value for key, value in attributes.items() if key != "name" or name is None}
        if tag == "attribute" and len(shown) > 1:
            # The version is that of the class that writes the attribute.
            shown.pop("version", None)
        if not (name or "").startswith("fused_names"):
            # Names of fused layers repeat names, which are compared already.
            if list(shown) == ["value"] or (not shown and children == 0):
                yield here, shown.get("value", (text or "").strip())
            else:
                yield from ((f"{here} {key}", value) for key, value in shown.items())
        yield from _elements(rows, f"{here}/", children)


_Declared = tuple[str, tuple[int, ...]]


def fact_text(fact: Fact | None) -> str:
    """Type and shape for people."""
    return "?" if fact is None else str(fact)


def _declared(fact: Fact) -> _Declared:
    """A file has neither symbols nor bounds on its ports, and writes an unknown rank as it writes a scalar."""
    return str(fact.element), tuple(size if isinstance(size, int) else -1 for size in fact.shape or ())


def facts_differ(a: Fact | None, b: Fact | None) -> bool:
    """True if both facts are declared and differ; a scalar and an unknown rank do, although files write them alike."""
    if a is None or b is None:
        return False
    return _declared(a) != _declared(b) or (a.shape is None) != (b.shape is None)


def output_changes(pair: Pair) -> list[Change]:
    """Types and shapes of outputs that differ."""
    found: list[Change] = []
    for mine, theirs in zip(pair.a.outputs, pair.b.outputs, strict=False):
        if mine.fact is None or theirs.fact is None:
            continue
        one, other = _declared(mine.fact), _declared(theirs.fact)
        if one[0] != other[0]:
            found.append(Change("types", f"output {mine.index}", one[0], other[0]))
        if one[1] != other[1]:
            found.append(
                Change("shapes", f"output {mine.index}", shape_text(mine.fact.shape), shape_text(theirs.fact.shape))
            )
    if len(pair.a.outputs) != len(pair.b.outputs):
        found.append(Change("shapes", "number of outputs", str(len(pair.a.outputs)), str(len(pair.b.outputs))))
    return found
