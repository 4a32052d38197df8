"""ONNX graphs: their nodes, subgraphs, names and locations; limits of a conversion and obstacles to it.

Sizes are computed before anything is built. Nodes and weights that the file itself stores are not limited.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import onnx
from onnx import AttributeProto

from irexec.dtypes.elements import Element
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.ir import onnx_codes as codes
from irexec.ir.codes import CODES
from irexec.ir.findings import Finding

MAX_INLINED_NODES = 250_000
"""Maximum number of nodes after functions have been inlined."""

MAX_INLINED_BYTES = (1 << 31) - 1
"""Maximum size of a model after functions have been inlined: the maximum of a protobuf message."""

MAX_GENERATED_BYTES = 1 << 30
"""Maximum size of a constant that is generated from a description: a sparse tensor, trees, a default bias."""

MAX_NESTED_GRAPHS = 64
"""Maximum depth of nested subgraphs. In a file, protobuf allows about 33."""

MAX_TRANSLATIONS = 1_000_000
"""Maximum number of translations of nodes, in addition to ten per node of the model. Nodes of a body are translated
several times, nodes of a SequenceMap's body once per tensor."""

MAX_UNROLLED = 10_000
"""Maximum number of steps of an algorithm, or of tensors in a sequence, that become layers of their own."""


def check_convertible(condition: bool, what: str) -> None:
    """Raise ConversionError, for a sound model, unless ``condition`` holds; ``what`` begins the message."""
    if not condition:
        raise ConversionError(f"{what} cannot be converted", unsupported=True)


def check_unrolled(count: int, what: str) -> None:
    """Raise OpError unless this number of steps may become layers; ``what`` begins the message."""
    if not 0 <= count <= MAX_UNROLLED:
        raise OpError(f"{what} would be {count}, expected 0 to {MAX_UNROLLED}")


def check_generated(shape: Sequence[int], element: Element, what: str) -> None:
    """Raise OpError unless a constant of this type and shape may be generated; ``what`` begins the message."""
    size = math.prod(shape) * element.carrier.itemsize
    if any(length < 0 for length in shape):
        raise OpError(f"{what} has the shape {list(shape)}")
    if size > MAX_GENERATED_BYTES:
        raise OpError(
            f"{what} of shape {list(shape)} would take {size} bytes, more than the {MAX_GENERATED_BYTES} allowed"
        )
    # NumPy counts an axis of size 0 as one of size 1.
    if math.prod(max(length, 1) for length in shape) * element.carrier.itemsize >= 1 << 63:
        raise OpError(f"{what} of shape {list(shape)} is empty, but with other sizes that are too large for an array")


class Translations:
    """Counts the translations of the nodes of a model, which nested bodies multiply.

    Args:
        nodes: the number of nodes of the model.
    """

    def __init__(self, nodes: int) -> None:
        self._allowed = self._left = 10 * nodes + MAX_TRANSLATIONS

    def count(self) -> None:
        """Count one more translation; raises OpError if there are too many."""
        self._left -= 1
        if self._left < 0:
            raise OpError(f"the model has nested subgraphs that need more than {self._allowed} translations of nodes")


_ALIASES = {"ai.onnx": ""}
_OPSET_MARK = "irexec.opset"
_QUOTED = re.compile(r"'([^']*)'")


def domain_of(node: onnx.NodeProto | onnx.FunctionProto | onnx.OperatorSetIdProto) -> str:
    """The domain of a node, function or opset, "" for ai.onnx."""
    return _ALIASES.get(node.domain, node.domain)


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """The opset of each domain. Models often use the domains of runtimes without importing them."""
    found = {_ALIASES.get(opset.domain, opset.domain): opset.version for opset in model.opset_import}
    of_runtimes = dict.fromkeys(("com.microsoft", "com.microsoft.nchwc", "org.openvinotoolkit"), 1)
    return {"": 1, "com.ms.internal.nhwc": found.get("", 1)} | of_runtimes | found


def opset_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> int:
    """The opset of a node: that of its domain, unless it comes from a function of another opset."""
    # An entry of the file with the same key comes first.
    mark = next((entry.value for entry in reversed(node.metadata_props) if entry.key == _OPSET_MARK), "")
    return int(mark) if mark.isdecimal() else opsets.get(domain_of(node), 1)


def mark_opset(node: onnx.NodeProto, opset: int) -> None:
    """Mark a node with an opset of its own."""
    entry = node.metadata_props.add()
    entry.key, entry.value = _OPSET_MARK, str(opset)


def module_of(node: onnx.NodeProto) -> str:
    """The PyTorch module that the exporter of torch.export made a node of, such as "blocks.0.conv"; "" if unknown.

    It lists the modules around the operation from the outermost, "", to the operation itself.
    """
    scopes = next((entry.value for entry in node.metadata_props if entry.key == "pkg.torch.onnx.name_scopes"), "")
    quoted = _QUOTED.findall(scopes)
    return quoted[-2] if len(quoted) > 1 else ""


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the attributes of a node."""
    for attribute in node.attribute:
        yield from graphs_in(attribute)


def graphs_in(attribute: AttributeProto) -> Sequence[onnx.GraphProto]:
    """The graphs in an attribute. Files of ONNX IR version 1 lack the type of an attribute."""
    is_graph = attribute.type == AttributeProto.GRAPH or (
        attribute.type == AttributeProto.UNDEFINED and attribute.HasField("g")
    )
    return [attribute.g] if is_graph else attribute.graphs


def every_graph(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """A graph, or the body of a function, and all of its subgraphs, outer graphs first.

    Raises:
        ConversionError: subgraphs are nested more than MAX_NESTED_GRAPHS deep.
    """
    waiting = [(graph, 0)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_NESTED_GRAPHS:
            raise ConversionError(f"graph {graph.name!r} has subgraphs nested more than {MAX_NESTED_GRAPHS} deep")
        yield found
        inner = [(subgraph, depth + 1) for node in found.node for subgraph in subgraphs(node)]
        waiting += reversed(inner)


def every_node(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all of its subgraphs."""
    for inner in every_graph(graph):
        yield from inner.node


def own_names(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph defines; a name of an outer graph may be among them."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    names = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer} | set(sparse)
    # An absent output is called "".
    return (names | {name for node in graph.node for name in node.output}) - {""}


class UsedNames:
    """The names that nodes read, also from within their subgraphs. Each subgraph is searched once."""

    def __init__(self) -> None:
        # Keyed by the identity of the graph; the graph is stored too, so that no other graph gets the same identity.
        self._outer: dict[int, tuple[onnx.GraphProto, Set[str]]] = {}

    def of(self, node: onnx.NodeProto) -> Set[str]:
        """The names that a node reads."""
        return set(node.input).union(*map(self._from_outer, subgraphs(node)))

    def _from_outer(self, graph: onnx.GraphProto) -> Set[str]:
        if id(graph) not in self._outer:
            needed = {output.name for output in graph.output}.union(*map(self.of, graph.node))
            self._outer[id(graph)] = graph, needed - own_names(graph)
        return self._outer[id(graph)][1]


def describe(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    """A node in messages: its name, domain, operator and opset."""
    name = node.name or next(filter(None, node.output), "")
    domain = domain_of(node)
    opset = f" of opset {opset_of(node, opsets)}" if domain in opsets else ""
    return f"node {name!r} ({domain or 'ai.onnx'}.{node.op_type}{opset})"


Graphs = onnx.GraphProto | onnx.FunctionProto
_MARK = "irexec.location"


@dataclass(frozen=True)
class Location:
    """The location of a node.

    Attributes:
        path: the path of its graph: a function, nodes and attributes, each followed by a slash; "" for the main graph.
        index: the node's index in that graph; None if it is not known.
        name: the name of the node, or of its first output.
        type: the operator, with its domain unless that is ai.onnx.
    """

    path: str
    index: int | None
    name: str
    type: str

    def finding(self, code: str, message: str) -> Finding:
        """A finding at the node."""
        return Finding(
            code, CODES[code].severity, self.index, f"{self.path}{self.name}", self.type, None, None, message
        )


def at_value(code: str, path: str, name: str, kind: str, message: str) -> Finding:
    """A finding at an initializer, input or other value of the graph with that path."""
    return Finding(code, CODES[code].severity, None, f"{path}{name}", kind, None, None, message)


def mark(model: onnx.ModelProto) -> None:
    """Mark every node and graph with its location."""
    for path, graph in list(graphs_of(model)):
        _mark(graph, path)
        for index, node in enumerate(graph.node):
            _mark(node, json.dumps([path, index, _name(node), _operator(node)]))


def graphs_of(model: onnx.ModelProto) -> Iterator[tuple[str, Graphs]]:
    """Every graph of a model, also of its functions, with its path."""
    waiting: list[tuple[str, Graphs]] = [("", model.graph)]
    waiting += [
        (f"{function.domain}.{function.name}/" if function.domain else f"{function.name}/", function)
        for function in model.functions
    ]
    while waiting:
        path, graph = waiting.pop(0)
        yield path, graph
        inner = [
            (f"{path}{_name(node)}/{attribute.name}{f'[{i}]' if attribute.graphs else ''}/", subgraph)
            for node in graph.node
            for attribute in node.attribute
            for i, subgraph in enumerate(graphs_in(attribute))
        ]
        waiting[:0] = inner


def location(node: onnx.NodeProto) -> Location:
    """The location of a node in the file; the name alone for an unmarked node, which inlining has created."""
    mark = _mark_of(node)
    return Location(*json.loads(mark)) if mark else Location("", None, _name(node), _operator(node))


def path_of(graph: Graphs) -> str:
    """The path of a marked graph."""
    return _mark_of(graph)


def carry_marks(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Copy the mark of every inlined node to the nodes that have replaced it.

    The inliner puts the new nodes in place of the old one; the last of them has the old node's output names.
    """
    marks = {
        name: mark
        for graph in every_graph(before.graph)
        for node in graph.node
        if (mark := _mark_of(node))
        for name in node.output
    }
    for graph in every_graph(after.graph) if marks else ():
        text = ""
        for node in reversed(graph.node):
            if not _mark_of(node):
                text = next((marks[name] for name in node.output if name in marks), text)
                _mark(node, text)


def _name(node: onnx.NodeProto) -> str:
    return node.name or next(filter(None, node.output), node.op_type)


def _operator(node: onnx.NodeProto) -> str:
    """The operator, with its domain unless that is ai.onnx."""
    domain = domain_of(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _mark(thing: onnx.NodeProto | Graphs, text: str) -> None:
    entry = thing.metadata_props.add()
    entry.key, entry.value = _MARK, text


def _mark_of(thing: onnx.NodeProto | Graphs) -> str:
    # An entry of the file with the same key comes first.
    return next((entry.value for entry in reversed(thing.metadata_props) if entry.key == _MARK), "")


class NotKnownError(OpError):
    """A shape or value that is not known when the model is converted."""


class UnknownTypeError(UnsupportedError):
    """A type of ONNX that does not exist in IR."""


class WrongAttributeError(OpError):
    """An unknown, missing or mistyped attribute of a node."""


class WithoutValueError(ConversionError):
    """A value that has no producer, two producers, or a producer with an objection of its own."""


class Objections:
    """The findings of a conversion that continues after each of them.

    A body is built several times until its shapes settle: the findings of the last time remain.

    Attributes:
        has_failed: whether a node could not be translated.
    """

    def __init__(self) -> None:
        self.has_failed = False
        # Keyed by the identity of the graph; the graph is stored too, so that no other graph gets the same identity.
        self._found: dict[int, tuple[onnx.GraphProto, list[Finding]]] = {}

    def begin(self, graph: onnx.GraphProto) -> None:
        """Begin the translation of a graph, perhaps again."""
        self._found[id(graph)] = graph, []

    def has_begun(self, graph: onnx.GraphProto) -> bool:
        """Whether the graph has been translated, at least in part."""
        return id(graph) in self._found

    def add(self, graph: onnx.GraphProto, finding: Finding) -> None:
        """Add a finding in a graph that has begun."""
        self._found[id(graph)][1].append(finding)

    def object(self, graph: onnx.GraphProto, node: onnx.NodeProto, error: IrexecError) -> None:
        """Report that a node of the graph cannot be translated."""
        self.has_failed = True
        reasons = list(_causes(error))
        if not any(isinstance(reason, WithoutValueError) for reason in reasons):
            self.add(graph, location(node).finding(_code(reasons), str(reasons[-1])))

    def warn(self, graph: onnx.GraphProto, node: onnx.NodeProto, text: str) -> None:
        """Report an operation that OpenVINO does not have: the only warning of translators."""
        self.add(graph, location(node).finding(codes.OWN_OPERATION, text))

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order of the graphs."""
        return [finding for _, findings in self._found.values() for finding in findings]


def _causes(error: BaseException | None) -> Iterator[IrexecError]:
    """An error and the errors that it was raised from. The last one has the message without locations."""
    while isinstance(error, IrexecError):
        yield error
        error = error.__cause__


def _code(reasons: list[IrexecError]) -> str:
    last = reasons[-1]
    if isinstance(last, UnknownTypeError):
        return codes.UNSUPPORTED_TYPE
    if isinstance(last, WrongAttributeError):
        return codes.WRONG_ATTRIBUTE
    is_unsupported = isinstance(last, NotKnownError | UnsupportedError) or (
        isinstance(last, ConversionError) and last.unsupported
    )
    return codes.UNSUPPORTED_USE if is_unsupported else codes.INPUTS_DO_NOT_FIT
