"""Reading of ONNX models. Files that are not models, and faults that do not depend on the meaning of operators,
are reported before anything is built.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx.parser
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto

from converters.onnx.functions import inlined, name_of, overriding
from converters.onnx.graphs import (
    Graphs,
    UnknownTypeError,
    UsedNames,
    at_value,
    every_graph,
    graphs_of,
    location,
    opsets_of,
    own_names,
    path_of,
    subgraphs,
)
from converters.onnx.tensors import OnnxValue, constant_of, element_of, external_path
from irexec.dtypes.elements import Element
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.io.onnx_bytes import is_onnx, text_form
from irexec.io.reading import open_regular
from irexec.io.sources import other_file_message
from irexec.ir import onnx_codes as codes
from irexec.ir.dims import ANY, Dim, PartialShape, Size, meet_shapes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Value
from irexec.ir.order import sort_by_producers
from irexec.ir.shape_text import is_text


def every_name(model: onnx.ModelProto) -> Iterator[str]:
    """All texts as protobuf returns them: bytes in place of text that is not UTF-8."""
    yield from (opset.domain for opset in model.opset_import)
    yield from _of_graphs(model.graph)
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (opset.domain for opset in function.opset_import)
        yield from _of_attributes(function.attribute_proto)
        yield from _of_graphs(function)


def check_written_names(graph: onnx.GraphProto, where: str) -> None:
    """Raise ConversionError for a name of a node or tensor that cannot be written to IR; ``where`` begins the
    message."""
    for name in itertools.chain([graph.name], *map(_written, every_graph(graph))):
        if not is_text(name):
            raise ConversionError(
                f"{where}: the name {name!r} has characters that XML, and therefore IR, cannot contain",
                unsupported=True,
            )


def _written(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for node in graph.node:
        yield from (node.name, *node.output)
    if isinstance(graph, onnx.GraphProto):
        yield from (info.name for info in [*graph.input, *graph.initializer])


def _of_graphs(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for inner in every_graph(graph):
        yield inner.name
        if isinstance(inner, onnx.GraphProto):
            infos = [*inner.input, *inner.output, *inner.value_info]
            for info in infos:
                yield info.name
                yield from (dim.dim_param for dim in info.type.tensor_type.shape.dim)
            yield from _of_tensors([*inner.initializer, *(sparse.values for sparse in inner.sparse_initializer)])
        for node in inner.node:
            yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
            yield from _of_attributes(node.attribute)


def _of_tensors(tensors: Iterable[TensorProto]) -> Iterator[str]:
    for tensor in tensors:
        yield tensor.name
        for entry in tensor.external_data:
            yield from (entry.key, entry.value)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[str]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        yield from _of_tensors([*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors])


NEWEST_OPSET = 28
"""The newest supported opset of ai.onnx."""

# ONNX keeps versions as 64 bits in files and as 32 bits in memory.
_NO_VERSION = 1 << 31

# Bytes that may precede the first tag of XML.
_SPACE = b"\xef\xbb\xbf \t\r\n"
_LOOKED_AT = 4096


Source: TypeAlias = str | Path | bytes | onnx.ModelProto
"""The path of a model, its bytes, or the model."""


def load(source: Source, warn: Callable[[str], object]) -> tuple[onnx.ModelProto, Path | None]:
    """The model with its local functions inlined, and the folder of its external data.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    model, where, folder = parse(source)
    check_readable(model, where)
    for function in overriding(model):
        warn(f"function {name_of(function)!r} of the model is ignored: it has the name of an operator")
    return prepared(model, where, warn), folder


def parse(source: Source) -> tuple[onnx.ModelProto, str, Path | None]:
    """The model as in the file, its name in messages, and the folder of its external data.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return source, "the model", None
    if isinstance(source, bytes):
        return _parsed(BufferedReader(BytesIO(source)), "the model"), "the model", None
    path = Path(source)
    return _read(path), str(path), path.parent


def is_text_form(path: str | Path) -> bool:
    """Whether a file that can be read is an ONNX model as text."""
    with open_regular(path) as file:
        return text_form(file.peek(_LOOKED_AT)) is not None


def external_files(path: Path) -> list[Path]:
    """The files of external data of a model.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    return external_files_of(_read(path), path.parent)


def external_files_of(model: onnx.ModelProto, folder: Path) -> list[Path]:
    """The files of external data of a model that was read from a file in ``folder``."""
    return sorted(set(_external_files(model.graph, folder)))


def _external_files(graph: onnx.GraphProto, folder: Path) -> Iterator[Path]:
    for inner in every_graph(graph):
        for tensor in inner.initializer if isinstance(inner, onnx.GraphProto) else ():
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                # The conversion reports tensors that cannot be read.
                with contextlib.suppress(ConversionError):
                    yield external_path(tensor, folder)


def _read(path: Path) -> onnx.ModelProto:
    try:
        with open_regular(path) as file:
            return _parsed(file, str(path))
    except OSError as error:
        raise ConversionError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        # The path contains NUL.
        raise ConversionError(f"{str(path)!r} cannot be read: {error}") from None


def _parsed(file: BufferedReader, where: str) -> onnx.ModelProto:
    head = bytes(file.peek(_LOOKED_AT))[:_LOOKED_AT]
    other = other_file_message(where, head)
    if other is not None:
        raise ConversionError(other)
    form = text_form(head)
    if form is not None:
        return _from_text(file.read(), form, where)
    try:
        # onnx.load takes the format, protobuf or JSON, from the name of the file.
        return onnx.load(file, load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise ConversionError(f"{where}: {_defect(head, str(error))}") from None


def _from_text(data: bytes, form: str, where: str) -> onnx.ModelProto:
    """The model in the text format of protobuf, or in ONNX's own syntax."""
    try:
        text = data.decode("utf-8-sig")
        if form == "syntax":
            return onnx.parser.parse_model(text)
        return text_format.Parse(text, onnx.ModelProto())
    except (UnicodeDecodeError, text_format.ParseError, onnx.parser.ParseError, RecursionError) as error:
        # onnx.parser raises bytes.
        first = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else error
        reason = " ".join(str(first).split()) or "it is nested too deeply"
        raise ConversionError(f"{where}: the ONNX model, which is text, is damaged: {reason}") from None


def _defect(head: bytes, reason: str) -> str:
    """Description of a file that cannot be parsed: its first bytes, and the reason of the parser."""
    # The same text for every file that ends early or holds something else.
    reason = "protobuf cannot read it" if reason.startswith("Error parsing message") else reason
    if head.lstrip(_SPACE).startswith(b"<"):
        return "not an ONNX model: it is XML, probably an IR, which needs no conversion"
    if is_onnx(head):
        return f"the ONNX model is damaged, perhaps cut off: {reason}"
    return f"not an ONNX model: {reason}"


def check_readable(model: onnx.ModelProto, where: str) -> None:
    """Raise ConversionError unless this is an ONNX model; ``where`` begins the message."""
    if not model.HasField("graph"):
        raise ConversionError(f"{where}: not an ONNX model: it has no graph")
    if not len(model.opset_import) and model.ir_version >= 3:
        raise ConversionError(f"{where}: not a valid ONNX model: it imports no opset")
    if any(isinstance(name, bytes) for name in every_name(model)):
        # protobuf returns bytes in place of text that is not UTF-8.
        raise ConversionError(f"{where}: not an ONNX model: a name in it is not UTF-8 text")
    if not 0 <= model.ir_version < _NO_VERSION:
        raise ConversionError(f"{where}: not a valid ONNX model: its IR version is {model.ir_version}")
    for opset in [*model.opset_import, *(opset for function in model.functions for opset in function.opset_import)]:
        if not 0 <= opset.version < _NO_VERSION:
            raise ConversionError(
                f"{where}: not a valid ONNX model: it imports opset {opset.version} of {opset.domain or 'ai.onnx'}"
            )


def prepared(model: onnx.ModelProto, where: str, warn: Callable[[str], object]) -> onnx.ModelProto:
    """The model with functions inlined as far as possible.

    Raises:
        ConversionError: functions of the model cannot be inlined, or a name cannot be written to IR.
    """
    model = inlined(model, where)
    check_written_names(model.graph, where)
    version = opsets_of(model)[""]
    if version > NEWEST_OPSET:
        warn(f"opset {version} is newer than {NEWEST_OPSET}, the newest supported opset, whose rules are applied")
    return model


def declared_shape(tensor: onnx.TypeProto.Tensor) -> PartialShape:
    """The shape of an ONNX tensor type; dimensions with a name are symbols."""
    if not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def of_window(graph: onnx.GraphProto, name: str, shape: PartialShape) -> PartialShape:
    """The shape of an input; a cache with the entries of a window is at least as long as the window."""
    for node in graph.node:
        if node.op_type == "GroupQueryAttention" and name in node.input[3:5] and len(shape or ()) == 4:
            given = {one.name: one.i for one in node.attribute}
            least = given.get("local_window_size", 0) if given.get("sliding_window_cache") else 0
            if shape is not None and isinstance(shape[2], Dim) and shape[2].lo < least:
                return (*shape[:2], Dim(least), shape[3])
    return shape


def declared_shapes(path: str | Path) -> dict[str, PartialShape]:
    """The shapes of the inputs of an .onnx file by name; dimensions with a name are symbols."""
    return {info.name: declared_shape(info.type.tensor_type) for info in parse(path)[0].graph.input}


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return Dim(name=dim.dim_param) if dim.dim_param else ANY


@dataclass(frozen=True)
class Contradiction:
    """A declared type or shape that contradicts the inferred one.

    Attributes:
        kind: "value" for value_info, or "output".
        name: the name of the value.
        declared, inferred: the two facts.
    """

    kind: str
    name: str
    declared: Fact
    inferred: Fact

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} is {self._reason}"

    @property
    def _reason(self) -> str:
        return f"declared as {self.declared}, but its node produces {self.inferred}"

    def finding(self, path: str) -> Finding:
        """The finding at the value, in the graph with that path."""
        is_type = not _same_element(self.declared, self.inferred)
        code = _CODES[self.kind][is_type]
        return at_value(
            code, path, self.name, "output" if self.kind == "output" else "value_info", f"it is {self._reason}"
        )


# The code of a wrong shape and that of a wrong type.
_CODES = {"value": (codes.VALUE_SHAPE, codes.VALUE_TYPE), "output": (codes.OUTPUT_SHAPE, codes.OUTPUT_TYPE)}


def contradictions(
    graph: onnx.GraphProto, values: Mapping[str, OnnxValue], fact: Callable[[Value], Fact]
) -> Iterator[Contradiction]:
    """Each output and intermediate value whose declared type or shape contradicts the inferred one.

    Args:
        graph: the graph; its value_info and outputs are compared.
        values: the translated values by name.
        fact: returns the inferred fact of a value.
    """
    for kind, infos in (("value", graph.value_info), ("output", graph.output)):
        for info in infos:
            value = values.get(info.name)
            if isinstance(value, Value) and info.type.HasField("tensor_type"):
                declared = fact_of(info.type.tensor_type)
                inferred = Fact(fact(value).element, fact(value).shape)
                if not agree(declared, inferred):
                    yield Contradiction(kind, info.name, declared, inferred)


def fact_of(tensor: onnx.TypeProto.Tensor) -> Fact:
    """The fact of an ONNX tensor type; the element type is None if it is missing, or does not exist in IR."""
    return Fact(_element(tensor.elem_type), declared_shape(tensor))


def fact_of_tensor(tensor: onnx.TensorProto) -> Fact:
    """The type and shape of a tensor; the element type is None if it does not exist in IR."""
    return Fact(_element(tensor.data_type), tuple(tensor.dims))


def _element(number: int) -> Element | None:
    try:
        return element_of(number) if number else None
    except UnsupportedError:
        return None


def agree(declared: Fact, inferred: Fact) -> bool:
    """Whether a tensor can satisfy both facts."""
    if not _same_element(declared, inferred):
        return False
    try:
        meet_shapes(declared.shape, inferred.shape)
    except OpError:
        return False
    return True


def _same_element(one: Fact, other: Fact) -> bool:
    """Whether two element types are the same, or one of them is not known."""
    return one.element is None or other.element is None or one.element is other.element


def structure_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    """Findings in every graph of a model whose nodes are marked, functions and subgraphs included."""
    if not model.graph.output:
        yield at_value(codes.NO_OUTPUT, "", model.graph.name, "graph", "the graph has no output: it computes nothing")
    used = UsedNames()
    for path, graph in graphs_of(model):
        seen: dict[str, str] = {}
        for name, what in _defined(graph):
            # An initializer may be the default of the input with its name.
            if name in seen and (seen[name], what) != ("an input", "an initializer"):
                yield at_value(codes.DUPLICATE_NAME, path, name, "value", f"{name!r} is {what} and also {seen[name]}")
            seen[name] = what
        yield from _order(graph, used)
        yield from _unused(graph, used)
        if isinstance(graph, onnx.GraphProto):
            yield from _values(path, graph)
    yield from _missing(model)


def _defined(graph: Graphs) -> Iterator[tuple[str, str]]:
    """Every name that a graph defines, and a description of its value."""
    if isinstance(graph, onnx.GraphProto):
        yield from ((info.name, "an input") for info in graph.input)
        yield from ((tensor.name, "an initializer") for tensor in graph.initializer)
        yield from ((tensor.values.name, "an initializer") for tensor in graph.sparse_initializer)
    else:
        yield from ((name, "an input") for name in graph.input)
    for node in graph.node:
        yield from ((name, f"an output of node {location(node).name!r}") for name in node.output if name)


def _order(graph: Graphs, used: UsedNames) -> Iterator[Finding]:
    """Cycles, and nodes that are not in order."""
    producers = {name: i for i, node in enumerate(graph.node) for name in reversed(node.output) if name}
    needed = [{producers[name] for name in used.of(node) if name in producers} for node in graph.node]
    _, stuck = sort_by_producers(needed)
    if stuck:
        yield location(graph.node[stuck[0]]).finding(codes.CYCLE, "it is part of a cycle of nodes, or depends on one")
        return
    for i, before in enumerate(needed):
        late = max(before, default=-1)
        if late > i:
            after = location(graph.node[late]).name
            yield location(graph.node[i]).finding(
                codes.ORDER, f"it reads an output of node {after!r}, which comes after it"
            )


def _unused(graph: Graphs, used: UsedNames) -> Iterator[Finding]:
    outputs = graph.output if not isinstance(graph, onnx.GraphProto) else [info.name for info in graph.output]
    producers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    waiting = [producers[name] for name in outputs if name in producers]
    needed = set(waiting)
    while waiting:
        found = {producers[name] for name in used.of(graph.node[waiting.pop()]) if name in producers} - needed
        needed |= found
        waiting += found
    for i, node in enumerate(graph.node) if outputs else ():
        if i not in needed:
            yield location(node).finding(codes.UNUSED_NODE, "no output of the graph depends on it")


def _missing(model: onnx.ModelProto) -> Iterator[Finding]:
    """Values without a producer in the graph that reads them and in the graphs around it."""
    waiting: list[tuple[str, Graphs, Set[str]]] = [("", model.graph, set())]
    waiting += [(path, graph, set()) for path, graph in graphs_of(model) if isinstance(graph, onnx.FunctionProto)]
    for path, graph, outer in waiting:
        known = outer | (own_names(graph) if isinstance(graph, onnx.GraphProto) else _names(graph))
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                if name and name not in known:
                    yield location(node).finding(codes.MISSING_VALUE, f"nothing produces {name!r}, which it reads")
            waiting += ((path_of(inner), inner, known) for inner in subgraphs(node))
        outputs = [info.name for info in graph.output] if isinstance(graph, onnx.GraphProto) else graph.output
        for name in outputs:
            if name not in known:
                yield at_value(
                    codes.MISSING_VALUE, path, name, "output", f"nothing produces {name!r}, an output of the graph"
                )


def _names(function: onnx.FunctionProto) -> set[str]:
    return (set(function.input) | {name for node in function.node for name in node.output}) - {""}


def _values(path: str, graph: onnx.GraphProto) -> Iterator[Finding]:
    """Inputs that contradict initializers, and value_info of values that do not exist."""
    initializers = {tensor.name: fact_of_tensor(tensor) for tensor in graph.initializer}
    for info in graph.input:
        declared, found = fact_of(info.type.tensor_type), initializers.get(info.name)
        if found is not None and not agree(declared, found):
            reason = f"it is declared as {declared}, but its initializer is {found}"
            yield at_value(codes.INITIALIZER, path, info.name, "input", reason)
    known = own_names(graph)
    for info in graph.value_info:
        if info.name not in known:
            yield at_value(codes.STALE_VALUE, path, info.name, "value_info", f"the graph has no value {info.name!r}")


def tensor_findings(graph: onnx.GraphProto, folder: Path | None) -> Iterator[tuple[str, Finding]]:
    """Initializers that nodes or outputs use, but that cannot be read: the name and the finding of each."""
    used = UsedNames()
    read = {output.name for output in graph.output}.union(*map(used.of, graph.node))
    for tensor in chain(graph.initializer, graph.sparse_initializer):
        name = tensor.name if isinstance(tensor, TensorProto) else tensor.values.name
        if name not in read:
            continue
        try:
            constant_of(tensor, folder)
        except IrexecError as error:
            code = codes.UNSUPPORTED_TYPE if isinstance(error, UnknownTypeError) else codes.DAMAGED_TENSOR
            yield name, at_value(code, path_of(graph), name, "initializer", str(error))
