"""Statements of a script, and its weights."""

from __future__ import annotations

import ast
import inspect
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import IO, Any, get_args

import numpy as np

from irexec.analysis.collection import in_order
from irexec.authoring.operations import WRITTEN, function_name, function_of
from irexec.authoring.tensor import constant
from irexec.dtypes.elements import Element, pack
from irexec.errors import IrexecError, ModelError, UnsupportedError
from irexec.ir.constants import constant_value, release
from irexec.ir.dims import ANY, is_static
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import Names, topological
from irexec.ir.shape_text import write_shape
from irexec.schema.attributes import Attribute, PartialShapeText
from irexec.schema.opdef import OpDef
from irexec.schema.registry import newest, resolve
from irexec.tools.script.expressions import Call, Expression, Many, Ref, Source, Statement, TensorNames, Text, quoted

_INLINE = 8
"""Maximum number of elements of a constant that is written in the source."""
_KEY = re.compile(r"[\w.][\w.:/ -]{0,199}", re.ASCII)


class Weights:
    """The constants of a script by their keys in the .npz; arrays are made when they are read."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._keys = Names()

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, key: str) -> np.ndarray:
        return _array(self._nodes[key])[0]

    def expression(self, node: Node) -> Call:
        """The call that makes a constant."""
        named = (("name", Text(node.name)), ("names", TensorNames(tuple(node.outputs[0].names))))
        inline = _inline(node)
        if inline is not None:
            return Call("opset.constant", inline, named)
        fits = _KEY.fullmatch(node.name) and not {"", ".", ".."} & set(node.name.split("/"))
        key = self._keys.free(node.name if fits else "constant")
        self._nodes[key] = node
        kept = node.constant
        assert kept is not None
        is_array = _array(node)[1]
        how: tuple[Expression, ...] = () if is_array else (Text(kept.element.name), Source(repr(kept.shape)))
        if key == node.name:
            return Call("weight" if is_array else "packed", (Text(key), *how), named[1:])
        return Call("opset.constant" if is_array else "opset.packed", (Source(f"weights[{quoted(key)}]"), *how), named)

    def write(self, file: IO[bytes]) -> None:
        """Write the .npz."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for key, node in self._nodes.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _array(node)[0], allow_pickle=False)
                if node.constant is not None:
                    release(node.constant)


def _array(node: Node) -> tuple[np.ndarray, bool]:
    """The contents of a constant and True, or where no array of NumPy has the same bytes, the bytes and False."""
    kept = node.constant
    assert kept is not None
    raw = kept.raw[: kept.size]
    if kept.element.native and kept.element.kind not in ("boolean", "string"):
        array = constant_value(kept)
        if array.nbytes == raw.nbytes:
            return array, True
    return raw, False


def _inline(node: Node) -> tuple[Expression, ...] | None:
    """The arguments of a small constant; None if the source would not make the same bytes."""
    kept = node.constant
    assert kept is not None
    if kept.count > _INLINE or not kept.count:
        return None
    value = constant_value(kept)
    source = repr(value.tolist())
    if kept.element.name == "f32":
        source = _short(value)
    elif kept.element.kind == "string":
        source = _texts(value.tolist())
    is_default = kept.element.name in ("f32", "i64")
    try:
        # NaN and infinities are not literals.
        # The value of a literal; ValueError for what is not one.
        made = constant(ast.literal_eval(source), None if is_default else kept.element).value.node.constant
    except (IrexecError, ValueError):
        return None
    assert made is not None
    same = made.element is kept.element and made.shape == kept.shape
    if not same or pack(made.element, constant_value(made)).tobytes() != kept.raw[: kept.size].tobytes():
        return None
    return (Source(source),) if is_default else (Source(source), Text(kept.element.name))


def _short(value: np.ndarray) -> str:
    """Values of f32 with as few digits as tell them from all others."""
    if value.ndim == 0:
        return repr(float(str(value[()])))
    return f"[{', '.join(map(_short, value))}]"


def _texts(value: Any) -> str:
    return f"[{', '.join(map(_texts, value))}]" if isinstance(value, list) else quoted(str(value))


_MANY = 4
"""The number of readers from which a layer is made early."""


class Statements:
    """Makes the statements of the layers of a model.

    Args:
        weights: takes the constants.
        failures: the layers of which inference fails: they are written as they are.
        body: writes a body as a function and returns a call of it.
    """

    def __init__(self, weights: Weights, failures: Collection[Node], body: Callable[[Node, str, Body], str]) -> None:
        self._weights, self._failures, self._body = weights, failures, body

    def of(self, graph: Graph) -> list[Statement]:
        """The statements of a graph, in an order in which they can be executed: Parameters first, Results last."""
        check_graph(graph)
        readers = readers_of(graph)
        return [
            self._statement(node, readers)
            for node in creation_order(graph)
            if node.constant is None or readers.get(node) != 1
        ]

    def _statement(self, node: Node, readers: Mapping[Node, int]) -> Statement:
        inputs: list[Expression] = [
            self._weights.expression(value.node)
            if value.node.constant is not None and readers[value.node] == 1
            else Ref(value)
            for value in node.inputs
            if value is not None
        ]
        more = tuple(TensorNames(tuple(value.names)) for value in node.outputs[1:])
        if node.constant is not None:
            return Statement(node, self._weights.expression(node), more)
        if node.type == "Result" and not node.outputs and len(inputs) == 1:
            return Statement(node, Call("opset.result", tuple(inputs), (("name", Text(node.name)),)))
        if node.type == "Parameter":
            made = _parameter(node)
            if made is not None:
                return Statement(node, made, more)
        definition = None if node in self._failures else _definition(node)
        count = None if definition is None else _output_count(definition, node)
        if definition is None or count is None:
            return Statement(node, self._layer(node, inputs), more, is_tuple=True)
        return Statement(node, _operation(definition, node, inputs), more, is_tuple=count >= 0)

    def _layer(self, node: Node, inputs: list[Expression]) -> Call:
        """A call that makes a layer as it is."""
        facts = map(fact_text, node.outputs)
        outputs = ", ".join("None" if text is None else quoted(text) for text in facts)
        bodies = {name: self._body(node, name, body) for name, body in node.bodies.items()}
        keywords: list[tuple[str, Expression]] = [("name", Text(node.name)), ("names", _names(node))]
        if bodies:
            inner = ", ".join(f"{quoted(name)}: {call}" for name, call in bodies.items())
            keywords.append(("bodies", Source(f"{{{inner}}}")))
        attributes = ", ".join(f"{quoted(name)}: {quoted(text)}" for name, text in node.attributes.items())
        head = (Text(node.type), Text(node.version), Many(tuple(inputs)), Source(f"{{{attributes}}}"))
        return Call("opset.layer", (*head, Source(f"[{outputs}]")), tuple(keywords))


def check_graph(graph: Graph) -> None:
    """Raise ModelError for a graph that no script can make: one with cycles, or inputs at which no edge arrives."""
    stuck = topological(graph)[1]
    if stuck:
        raise ModelError(f"layers {', '.join(repr(node.name) for node in stuck[:5])} are on or after a cycle")
    known = set(graph.nodes)
    for node in graph.nodes:
        if any(value is None or value.node not in known for value in node.inputs):
            raise ModelError(f"layer {node.id} {node.name!r} ({node.type}) has an input at which no edge arrives")
    if graph.problems:
        raise ModelError(f"the model is damaged: {graph.problems[0].placed_message}")


def ends(graph: Graph) -> list[Node]:
    """The layers, Parameters and Results apart, that no other layer reads."""
    readers = readers_of(graph)
    return [node for node in graph.nodes if node not in readers and node.type not in ("Parameter", "Result")]


def readers_of(graph: Graph) -> dict[Node, int]:
    """The number of inputs that read each node."""
    return Counter(value.node for node in graph.nodes for value in node.inputs if value is not None)


def _definition(node: Node) -> OpDef | None:
    """The definition whose function makes the layer again; None if there is none."""
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return None
    is_known = all(name in definition.by_name or name in definition.ignores for name in node.attributes)
    if definition.type in WRITTEN or node.bodies or not is_known or definition.parse(node.attributes).problems:
        return None
    return definition


def _output_count(definition: OpDef, node: Node) -> int | None:
    """The number of outputs in the tuple that the function returns; -1 for a single tensor, None if the layer has
    another number."""
    annotation = str(inspect.signature(function_of(definition)).return_annotation)
    count = len(node.outputs)
    if annotation == "Tensor" or (annotation == "Any" and count == 1):
        return -1 if count == 1 else None
    return count if annotation in ("Any", "tuple[Tensor, ...]") or annotation.count("Tensor") == count else None


def _operation(definition: OpDef, node: Node, inputs: list[Expression]) -> Call:
    values = definition.ungrouped(definition.parse(node.attributes).values)
    keywords: list[tuple[str, Expression]] = [
        (attribute.parameter, _literal(attribute, values[attribute.parameter]))
        for attribute in definition.attributes
        if attribute.required or values[attribute.parameter] != attribute.default
    ]
    keywords += [("name", Text(node.name)), ("names", _names(node))]
    name = function_name(definition.type)
    if isinstance(definition.since, str):
        owner = f"opset.extension({quoted(definition.since)})"
    else:
        owner = "opset" if definition is newest(definition.type) else f"opset.opset{definition.since}"
    return Call(f"{owner}.{name}", tuple(inputs), tuple(keywords))


def _parameter(node: Node) -> Call | None:
    """The call that makes a Parameter; None for one that is out of the ordinary."""
    if node.version != "opset1" or len(node.outputs) != 1 or set(node.attributes) != {"shape", "element_type"}:
        return None
    parsed = resolve(node.type, node.version).parse(node.attributes)
    if parsed.problems:
        return None
    element, shape = parsed.values["element_type"], parsed.values["shape"]
    if not isinstance(element, Element):
        return None
    size = repr(list(shape)) if is_static(shape) else quoted(write_shape(shape))
    keywords: list[tuple[str, Expression]] = []
    names = list(node.outputs[0].names)
    if names != [node.name]:
        keywords.append(("names", Source(f"[{', '.join(map(quoted, names))}]")))
    return Call("opset.parameter", (Source(size), Text(element.name), Text(node.name)), tuple(keywords))


def _literal(attribute: Attribute, value: Any) -> Expression:
    """The argument for an attribute."""
    if any(isinstance(mark, PartialShapeText) for mark in get_args(attribute.annotation)):
        return Text(write_shape(value))
    if isinstance(value, Element):
        return Text(value.name)
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(_source, value))
        return Source(f"({inner},)" if len(value) == 1 else f"({inner})")
    return Source(_source(value))


def _source(value: Any) -> str:
    # NaN and infinities are not literals.
    if isinstance(value, float) and value - value != 0:
        return f'float("{value}")'
    return quoted(value) if isinstance(value, str) else repr(value)


def _names(node: Node) -> TensorNames:
    return TensorNames(tuple(node.outputs[0].names) if node.outputs else ())


def creation_order(graph: Graph) -> list[Node]:
    """The layers in the order in which a script makes them: Parameters first, Results last, a constant with a single
    reader just before it.

    A tensor with many readers, such as a mask, is made as early as possible, so that repeated blocks have no gaps.
    """
    readers = readers_of(graph)
    last = [*graph.results, *ends(graph)]
    shared = [node for node in in_order(last) if readers.get(node, 0) >= _MANY]
    inner = [
        node
        for node in in_order([*shared, *last])
        if node.type not in ("Parameter", "Result") and (node.constant is None or readers.get(node) != 1)
    ]
    order: list[Node] = []
    for node in [*graph.parameters, *inner, *graph.results]:
        sources = [value.node for value in node.inputs if value is not None]
        order += [source for source in sources if source.constant is not None and readers[source] == 1]
        order.append(node)
    return order


def fact_text(value: Value) -> str | None:
    """The declared fact of an output as text; a file has no bounds of sizes on ports."""
    if value.fact is None:
        return None
    shape = value.fact.shape
    sizes = None if shape is None else tuple(size if isinstance(size, int) else ANY for size in shape)
    return f"{value.fact.element or '?'}[{write_shape(sizes)}]"
