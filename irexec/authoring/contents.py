"""Changes of names, attributes, constants, shapes of inputs, and metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.analysis.builder import attribute_text, packed
from irexec.analysis.model import Port
from irexec.authoring.editing import Editing, names_in
from irexec.dtypes.elements import Element, ElementLike, as_element, round_to
from irexec.errors import InputError, OpError, UnsupportedError
from irexec.io.payload import layout_of, output_names, set_output_names
from irexec.io.payload import set_rt_info as set_entry
from irexec.ir.dims import ANY, Size
from irexec.ir.graph import Graph, Node, graphs
from irexec.ir.order import all_names, find_layer, similar
from irexec.ir.shape_text import as_shape, write_shape
from irexec.schema.attributes import Attribute
from irexec.schema.registry import resolve


def reshape(editing: Editing, shapes: Any) -> None:
    """Give inputs other shapes; see Editor.reshape."""
    for node, shape in editing.model.shapes_of_inputs(shapes).items():
        node.attributes["shape"] = write_shape(shape)


def set_batch(editing: Editing, size: Any) -> None:
    """Give every input another batch size; see Editor.set_batch."""
    try:
        (batch,) = as_shape([None if size == "?" else size]) or (ANY,)
    except OpError as error:
        raise InputError(f"the batch: {error}") from None
    changed = [port for port in editing.model.inputs if _set_batch(port, batch)]
    if not changed:
        raise InputError("no input of the model has a batch axis")


def _set_batch(port: Port, batch: Size) -> bool:
    layout = layout_of(port.node.outputs[0])
    axis = 0 if layout is None else layout.find("N")
    if not port.shape or not 0 <= axis < len(port.shape):
        return False
    port.node.attributes["shape"] = write_shape((*port.shape[:axis], batch, *port.shape[axis + 1 :]))
    return True


def set_attribute(editing: Editing, layer: str, name: str, value: Any) -> None:
    """Set an attribute of a layer; see Editor.set_attribute."""
    _, node = find_layer(editing.model, layer)
    if node.constant is not None:
        raise InputError(f"layer {node.name!r} is a Constant: its contents are replaced as a whole")
    known = _attributes(node)
    attribute = next((a for a in known or () if name in (a.name, a.parameter)), None)
    if attribute is None and known is not None:
        names = [a.name for a in known]
        offer = similar(name, names) or (f"; it has {', '.join(names)}" if names else "")
        raise InputError(f"layer {node.name!r} ({node.type}) has no attribute {name!r}{offer}")
    text = value if isinstance(value, str) else str(value) if attribute is None else attribute_text(attribute, value)
    node.attributes[name if attribute is None else attribute.name] = text


def _attributes(node: Node) -> tuple[Attribute, ...] | None:
    """The attributes of an operation; None for an operation that is not known."""
    try:
        return resolve(node.type, node.version).attributes
    except UnsupportedError:
        return None


def set_constant(editing: Editing, layer: str, array: Any, element: ElementLike | None) -> None:
    """Replace the contents of a constant; see Editor.set_constant."""
    _, node = find_layer(editing.model, layer)
    if node.constant is None:
        inside = [value.node for value in node.inputs if value is not None and value.node.constant is not None]
        has = f"; it reads the Constants {names_in(inside)}" if inside else ""
        raise InputError(f"layer {node.name!r} is a {node.type}, expected a Constant{has}")
    kind = node.constant.element if element is None else as_element(element)
    node.constant = packed(_cast(np.asarray(array), kind, node.name), kind)
    node.attributes |= {"element_type": kind.name, "shape": write_shape(node.constant.shape)}


def _cast(array: np.ndarray, element: Element, layer: str) -> np.ndarray:
    """The values in the carrier of an element type; integers must be represented exactly."""
    if element.kind == "string":
        return array.astype(object)
    if array.dtype.kind not in "biuf":
        raise InputError(f"constant {layer!r}: an array of {array.dtype} cannot become {element}")
    with np.errstate(all="ignore"):
        found = array.astype(element.carrier)
        found = found if element.native and element.bits >= 8 else np.asarray(round_to(element, found))
    if element.is_integer or element.kind == "boolean":
        wrong = np.flatnonzero((found.astype(array.dtype) != array) | ((found < 0) != (array < 0)))
        if wrong.size:
            raise InputError(f"constant {layer!r}: {array.ravel()[wrong[0]]} is not a value of type {element}")
    return found


def set_rt_info(editing: Editing, path: str | Sequence[str], value: object) -> None:
    """Set an entry of rt_info; see Editor.set_rt_info."""
    names = path.split("/") if isinstance(path, str) else list(path)
    set_entry(editing.model, names, str(value))


Renamed = Callable[[str], str]
_REGULAR = "re:"


def rename(editing: Editing, old: str, new: str) -> None:
    """Rename every layer and tensor that ``old`` names; see Editor.rename."""
    if not new:
        raise InputError(f"{old!r} cannot be renamed to the empty name")
    model = editing.model
    found = [graph for graph in graphs(model) if old in all_names(graph)]
    if found:
        change: Renamed = lambda name: new if name == old else name  # noqa: E731
    elif old.startswith(_REGULAR):
        change = _by_expression(old, new)
    elif "*" in old or "?" in old:
        change = _by_wildcards(old, new)
    else:
        raise InputError(f"there is no layer or tensor {old!r}{similar(old, all_names(model))}")
    changes = [_Renaming(graph, change) for graph in graphs(model)]
    if not any(one.changes for one in changes):
        raise InputError(f"no name of a layer or tensor is changed by {old!r} = {new!r}")
    for one in changes:
        one.check()
        one.apply()


def _by_expression(old: str, new: str) -> Renamed:
    try:
        pattern = re.compile(old.removeprefix(_REGULAR))
        pattern.sub(new, "")
    except (re.error, IndexError) as error:
        raise InputError(f"{old!r} = {new!r} is not a regular expression and its replacement: {error}") from None
    return lambda name: pattern.sub(new, name, count=1)


def _by_wildcards(old: str, new: str) -> Renamed:
    wild = sum(old.count(character) for character in "*?")
    if new.count("*") > wild:
        raise InputError(f"{new!r} has more asterisks than {old!r} has wildcards")
    parts = re.split(r"([*?])", old)
    pattern = re.compile("".join({"*": "(.*)", "?": "(.)"}.get(part, re.escape(part)) for part in parts), re.DOTALL)

    def change(name: str) -> str:
        found = pattern.fullmatch(name)
        if found is None:
            return name
        texts = iter(found.groups())
        return re.sub(r"\*", lambda _: next(texts), new)

    return change


class _Renaming:
    """The new names of one graph: layers first, then tensors."""

    def __init__(self, graph: Graph, change: Renamed) -> None:
        self.graph, self._change = graph, change
        names = [name for node in graph.nodes for value in node.outputs for name in value.names]
        self._layers = [(node.name, change(node.name)) for node in graph.nodes]
        self._tensors = [(name, change(name)) for name in names]
        self.changes = any(old != new for old, new in (*self._layers, *self._tensors))

    def check(self) -> None:
        """Raise InputError where two layers, or two tensors, would come to have the same name, or one no name."""
        for kind, pairs in (("layer", self._layers), ("tensor", self._tensors)):
            # A file may have used a name twice before.
            owners: dict[str, str] = {}
            for old, new in dict(pairs).items():
                if not new:
                    raise InputError(f"{kind} {old!r} would have no name")
                other = owners.setdefault(new, old)
                if other != old:
                    raise InputError(self._clash(kind, *((old, other) if other == new else (other, old)), new))

    def _clash(self, kind: str, one: str, other: str, new: str) -> str:
        """The message for two names of which both would be ``new``."""
        reason = f"a {kind} has that name" if other == new else f"{kind} {other!r} would have that name, too"
        owner = next((node for node in self.graph.nodes for value in node.outputs if new in value.names), None)
        if kind == "tensor" and other == new and owner is not None:
            reason = f"a tensor of layer {owner.name!r} ({owner.type}) has that name; rename that first: {new}={new}_1"
        return f"{kind} {one!r} cannot be called {new!r}: {reason}"

    def apply(self) -> None:
        for node in self.graph.nodes:
            node.name = self._change(node.name)
            names = output_names(node) if node.type == "Result" else None
            if names is not None and (changed := list(map(self._change, names))) != names:
                set_output_names(node, changed)
            for value in node.outputs:
                if value.names:
                    value.names = list(map(self._change, value.names))
