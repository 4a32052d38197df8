"""Changes of one layer: its type, name, version, attributes, tensor names, metadata, ports, and values of constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from irexec import io
from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple, rounded
from irexec.analysis.matching import Pair
from irexec.analysis.matching.keys import attribute_values
from irexec.dtypes.elements import element_of
from irexec.errors import IrexecError, ModelError
from irexec.ir.constants import Constant, constant_blocks, constant_value, release, size_problem
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.schema.registry import resolve
from irexec.tools.diff.result import Change, ValueChange

_RECORD = ("bin_size", "bin_sample", "bin_crc32")
"""Attributes of <net> that record the contents of the .bin."""
_OUTPUT_NAMES = "output_names"
"""Attribute that OpenVINO writes at a Result: the tensor names of its input."""
_SHAPES, _TYPES = ("shape", "variable_shape"), ("element_type", "variable_type")
"""Attributes that declare the shape and type of an output."""


def own_changes(a: Node, b: Node) -> Iterator[Change]:
    """Changes of the layer itself, regardless of other layers."""
    for kind, what in (("type", "type"), ("names", "name"), ("versions", "version")):
        if getattr(a, what) != getattr(b, what):
            yield Change(kind, what, getattr(a, what), getattr(b, what))
    if a.type == b.type:
        yield from _attributes(a, b)
    for mine, theirs in zip(a.outputs, b.outputs, strict=False):
        if set(mine.names) != set(theirs.names):
            yield Change(
                "tensor-names", f"tensor names of output {mine.index}", names_text(mine.names), names_text(theirs.names)
            )
    yield from metadata_changes(a, b)
    for index, (one, other) in enumerate(zip(a.ports, b.ports, strict=False)):
        yield from metadata_changes(one, other, f"input {index} ")
    for mine, theirs in zip(a.outputs, b.outputs, strict=False):
        yield from metadata_changes(mine, theirs, f"output {mine.index} ")


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


def names_text(names: list[str]) -> str | None:
    """Tensor names in one text; None for no names."""
    return ", ".join(sorted(names)) or None


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
    for tag, attributes, text, children in islice(rows, count):
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


_LARGEST = 1 << 26
"""Maximum number of elements of a matrix that is compared with the transposed one."""

Advance = Callable[[int], None]
ReadAs = tuple[Value, Value]


def same_bytes(a: Constant, b: Constant) -> bool:
    """True if type, shape and bytes are equal.

    Raises:
        ModelError: the bytes cannot be read.
    """
    if (a.element, a.shape) != (b.element, b.shape):
        return False
    if not (a.is_readable and b.is_readable):
        return (a.is_readable, a.size) == (b.is_readable, b.size)
    return bool(np.array_equal(a.contents, b.contents))


def constant_changes(a: Constant, b: Constant) -> Iterator[Change]:
    """Changes of the type, the shape and the completeness of a constant."""
    if a.element != b.element:
        yield Change("types", "type", a.element.name, b.element.name)
    if a.shape != b.shape:
        note = " (transposed)" if is_transposed(a, b) else ""
        yield Change("shapes", "shape", shape_text(a.shape), f"{shape_text(b.shape)}{note}")
    problems = [size_problem(each) or ("" if each.is_readable else "not in the file") for each in (a, b)]
    if problems[0] != problems[1]:
        yield Change("values", "bytes", problems[0] or "in the file", problems[1] or "in the file")


def is_damaged(constant: Constant) -> bool:
    """True if the values cannot be read."""
    return not constant.is_readable or size_problem(constant) is not None


def value_change(a: Node, b: Node, read: ReadAs | None, advance: Advance) -> ValueChange | None:
    """Changes between the values of two constants; None if there are none, or the elements cannot be compared.

    Args:
        a, b: Constants.
        read: the two values that the same input of a layer reads, if layers of one model compute it from its constant.
        advance: called with the packed bytes that have been compared.

    Raises:
        ModelError: the bytes cannot be read; the message says of which layer.
    """
    one, other = a.constant, b.constant
    if one is None or other is None:
        return None
    try:
        if is_damaged(one) or is_damaged(other) or one.count != other.count or _same_values(one, other):
            return None
        return _compared(one, other, read)
    except IrexecError as error:
        raise ModelError(f"layers {a.id} {a.name!r} and {b.id} {b.name!r} (Constant): {error}") from None
    finally:
        advance(one.size + other.size)
        for constant in (one, other):
            release(constant)


def _same_values(a: Constant, b: Constant) -> bool:
    """True if the bytes are equal, whatever the shapes, or those of the transposed matrix."""
    if a.element != b.element:
        return False
    return (a.shape != b.shape and is_transposed(a, b)) or bool(np.array_equal(a.contents, b.contents))


def is_transposed(a: Constant, b: Constant) -> bool:
    """True if one matrix has the values of the other transposed."""
    if a.element != b.element or len(a.shape) != 2 or a.shape != b.shape[::-1] or min(a.shape) < 2:
        return False
    if is_damaged(a) or is_damaged(b) or a.count > _LARGEST:
        return False
    mine, theirs = constant_value(a), constant_value(b)
    return bool(np.array_equal(mine.T, theirs, equal_nan=mine.dtype.kind == "f"))


def _compared(one: Constant, other: Constant, read: ReadAs | None) -> ValueChange | None:
    if read is not None:
        x, y = decompressed(read[0]), decompressed(read[1])
        if x is not None and y is not None and x.size == y.size == one.count and object not in (x.dtype, y.dtype):
            return _statistics(iter([x.reshape(-1)]), iter([y.reshape(-1)]), one.count, decompressed=True)
    if "string" in (one.element.kind, other.element.kind):
        if one.element != other.element:
            return None
        mine, theirs = next(constant_blocks(one)), next(constant_blocks(other))
        changed = sum(x != y for x, y in zip_longest(mine.tolist(), theirs.tolist()))
        return ValueChange(one.count, changed, None, None)
    if (one.element.kind == "float") != (other.element.kind == "float"):
        return None
    found = _statistics(constant_blocks(one), constant_blocks(other), one.count, decompressed=False)
    found = replace(found, transposed=is_transposed(one, other))
    # The same type with other bytes and no other value: signs of zero or bits of NaN.
    return found if found.changed or one.element == other.element else None


def _statistics(
    mine: Iterator[np.ndarray], theirs: Iterator[np.ndarray], count: int, *, decompressed: bool
) -> ValueChange:
    changed = not_finite = 0
    largest, squares, norm = 0.0, 0.0, 0.0
    any_finite = False
    # Even the cast of a signaling NaN is invalid to the processor.
    with np.errstate(over="ignore", invalid="ignore"):
        for one, other in zip(mine, theirs, strict=True):
            x, y = one.astype(np.float64), other.astype(np.float64)
            # Integers of 64 bits lose bits as f64, so that they are compared as they are.
            same = one == other if one.dtype == other.dtype else x == y
            same |= np.isnan(x) & np.isnan(y)
            changed += int(same.size - np.count_nonzero(same))
            finite = np.isfinite(x) & np.isfinite(y)
            not_finite += int(np.count_nonzero(~finite & ~same))
            gap = np.abs(y - x)[finite]
            largest = max(largest, float(gap.max(initial=0.0)))
            squares += float(np.dot(gap, gap))
            norm += float(np.dot(x[finite], x[finite]))
            any_finite |= bool(finite.any())
    relative = None if not any_finite else math.sqrt(squares / norm) if norm else math.inf if squares else 0.0
    return ValueChange(count, changed, largest if any_finite else None, relative, not_finite, decompressed)


_FOLDED_TYPES = (
    "Convert", "Subtract", "Multiply", "Reshape", "Transpose", "FakeQuantize", "FakeConvert", "Unsqueeze", "Squeeze",
)  # fmt: skip
_LARGEST_PACKED = 1 << 26
"""Maximum number of elements of a constant from which an array is computed."""
_DEPTH = 12


def decompressed(value: Value | None) -> np.ndarray | None:
    """The array of a value computed from constants alone, by layers that decompress weights; None for any other value.

    Raises:
        ModelError: a constant cannot be read.
    """
    try:
        return None if value is None else _array(value, _DEPTH)
    except IrexecError:
        # Layers that do not fit each other are findings of validate, not of diff.
        return None


def _array(value: Value, depth: int) -> np.ndarray | None:
    node = value.node
    if node.constant is not None:
        return constant_value(node.constant) if node.constant.count <= _LARGEST_PACKED else None
    if depth == 0 or node.type not in _FOLDED_TYPES or value.index:
        return None
    inputs = [None if source is None else _array(source, depth - 1) for source in node.inputs]
    arrays = [array for array in inputs if array is not None]
    if not arrays or len(arrays) != len(inputs):
        return None
    definition = resolve(node.type, node.version)
    array = as_tuple(definition(*arrays, **typed_attributes(node, definition).require()))[0]
    declared = node.outputs[0].fact
    return rounded(array, declared.element if declared is not None else element_of(array.dtype))
