"""Writing IR, as OpenVINO writes it: port ids, aliases, separators, shared constants; the files that are refused.

What was read is written as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from irexec.dtypes.elements import Element as ElementType
from irexec.errors import InputError, ModelError
from irexec.io.files import replacing, resolved_target
from irexec.io.payload import BackEdgePayload, GraphPayload, InputPayload, LayerPayload, PortPayload
from irexec.io.ports import EDGE_ATTRIBUTES
from irexec.io.reading import NotRegularFileError, RecordedFile, is_same_file, writing
from irexec.io.sources import WeightsSlice
from irexec.io.xml import (
    NO_PRECISION,
    READ_TYPES,
    WRITTEN_TYPES,
    WrittenElement,
    XmlElement,
    body_tags,
    encode_names,
    indented,
    named_element,
    parsed_elements,
)
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Input, ModelGraph, Node, Value
from irexec.ir.shape_text import is_name, is_text
from irexec.ir.writable import unwritable


def check_file(option: str, output: Path, read: Mapping[str, str]) -> None:
    """Raise InputError unless a file can be written without overwriting one that is read.

    Args:
        option: the option that names the file, for messages.
        output: the file.
        read: the files that are read, with what they are.
    """
    if not output.parent.is_dir():
        raise InputError(f"{option} {output}: the folder {output.parent} does not exist")
    try:
        resolved = resolved_target(output)
    except NotRegularFileError as error:
        raise InputError(f"{option} {output} is {error.kind}, not a regular file") from None
    except OSError as error:
        raise InputError(f"{option} {output}: {error.strerror or error}") from None
    if not resolved.parent.is_dir():
        raise InputError(f"{option} {output} is a link into the folder {resolved.parent}, which does not exist")
    for file, what in read.items():
        if is_same_file(output, file):
            raise InputError(f"{option} {output} is {what}, which would be overwritten")


def check_script(option: str, output: Path, text: str, read: Mapping[str, str]) -> None:
    """Raise InputError unless a script of Python can be written: ``check_file``, its suffix is .py, and a file of this
    name begins as ``text`` does, so that no script of the user's is replaced."""
    check_file(option, output, read)
    if output.suffix != ".py":
        raise InputError(f"{option} {output} does not end in .py")
    begin = text.partition("\n")[0].encode()
    if output.exists() and not output.read_bytes().startswith(begin):
        raise InputError(f"{option} {output} exists, and irexec has not written it: name another file")


def check_model_files(
    output: str, read: Mapping[str, str], option: str = "-o", *, overwrite: bool | None = None
) -> None:
    """Raise InputError unless an .xml and the .bin beside it can be written without overwriting a file that is read.

    Args:
        output: the .xml, as the option names it.
        read: the files that are read, with what they are.
        option: the option that names the file, for messages.
        overwrite: see ``check_beside``.
    """
    target = Path(output)
    if target.suffix.lower() != ".xml":
        raise InputError(f"{option} {output} does not end in .xml")
    for path in (target, target.with_suffix(".bin")):
        check_file(option, path, read)
    check_beside(target, target.with_suffix(".bin"), overwrite=overwrite, option=option)


def check_beside(xml: Path, *beside: Path, overwrite: bool | None = None, option: str = "") -> None:
    """Raise InputError if a file to write that has not been named exists, and does not belong to the .xml.

    The .xml is replaced since it has been named. The weights and arrays beside it are replaced with it if it is an IR;
    else they may be anything.

    Args:
        xml: the .xml, which may exist.
        beside: the files that are written with it.
        overwrite: whether any file is replaced; None where the option does not exist for the user.
        option: the option that names the .xml, for messages.
    """
    # A link to nothing holds nothing, and what is not a regular file is refused by its kind, whatever is asked for.
    taken = next((path for path in beside if path.is_file()), None)
    if taken is None or overwrite or is_ir_file(xml):
        return
    where = f"exists without {xml.name} beside it" if not xml.exists() else f"exists, and {xml.name} is not an IR"
    way = "another name leaves it"
    if overwrite is not None:
        way = "--overwrite replaces it" if option else "overwrite=True replaces it"
    raise InputError(f"{f'{option} {xml}: ' if option else ''}{taken} {where}: {way}")


def is_ir_file(path: Path) -> bool:
    """Whether a file exists and begins as an IR does."""
    try:
        with path.open("rb") as file:
            return b"<net" in file.read(1 << 12)
    except OSError:
        return False


def check_target(model: ModelGraph, xml: Path, overwrite: bool = False) -> None:
    """Raise InputError unless a model may be saved as ``xml`` and the .bin beside it.

    The name must end in .xml: what is beside another name with .bin may be anything. The .bin must not be one that
    holds constants of the model and is not that of the same .xml: external data of ONNX, or the .bin of another .xml.
    See ``check_beside`` for one that is neither.
    """
    if xml.suffix.lower() != ".xml":
        raise InputError(f"{str(xml)!r} does not end in .xml, as the name of an IR does")
    binary = xml.with_suffix(".bin")
    if any(is_same_file(binary, path) for path in _files(model, xml)):
        raise InputError(f"{binary} holds constants of the model and would be overwritten: save it under another name")
    if model.path is None or not is_same_file(model.path, xml):
        check_beside(xml, binary, overwrite=overwrite)


def _files(model: ModelGraph, xml: Path) -> set[Path]:
    """The files with constants of a model, but not those of the .bin that goes with ``xml``."""
    is_other = model.path is not None and not is_same_file(model.path, xml)
    constants = [node.constant for node in model.walk() if node.constant is not None]
    # A constant that was read from an IR has an offset. A model that was built from that IR may replace it.
    fetches = [constant.fetch for constant in constants if is_other or constant.offset is None]
    used = {
        fetch.weights.path for fetch in fetches if isinstance(fetch, WeightsSlice) and fetch.weights.path is not None
    }
    return used.union(model.external_files)


_P = TypeVar("_P")
_DEFAULT_LAYOUT = (
    "port_map", "back_edges", "else_port_map", "then_port_map", "data", "rt_info", "input", "output", "body",
    "then_body", "else_body",
)  # fmt: skip


def write(
    model: ModelGraph, path: str | Path, beside: Mapping[Path, Callable[[IO[bytes]], object]] | None = None
) -> None:
    """Write a model: ``path`` and the .bin beside it, both or neither.

    Both are written to temporary files in the same folder, flushed to the disk and renamed, so that an interrupted
    write leaves the files that were there whole. The .xml has size and checksums of the .bin, see ``Record``.

    Args:
        model: the model.
        path: the .xml.
        beside: further files that belong to the model, each with the function that writes it: all files are written, or
            none is.

    Raises:
        ModelError: the model cannot be written as XML, or the files cannot be written.
    """
    target = Path(path)
    if "\0" in str(target) or not target.name:
        raise ModelError(f"{str(path)!r} is not the name of a file")
    if target.suffix.lower() == ".bin":
        raise ModelError(f"{target}: cannot be written: .bin is the suffix of the weights beside the .xml")
    others = beside or {}
    with writing(target), replacing(target.with_suffix(".bin"), *others, target) as (binary, *files, xml):
        for file, write_file in zip(files, others.values(), strict=True):
            write_file(file)
        recorded = RecordedFile(binary)
        xml.write(Writer(recorded.write).document(model, lambda: recorded.record().attributes))


def write_text(model: ModelGraph) -> tuple[bytes, bytes]:
    """The bytes of the .xml and of the .bin."""
    parts: list[Any] = []
    text = Writer(parts.append).document(model)
    return text, b"".join(bytes(part) for part in parts)


class Writer:
    """Writes one model; the bytes of constants are passed to ``sink`` in order, equal bytes once.

    Args:
        sink: takes the bytes of the .bin piece by piece.
    """

    def __init__(self, sink: Callable[[Any], Any]) -> None:
        self._sink = sink
        self._offsets: dict[tuple[int, bytes], int] = {}
        self._size = 0

    def document(self, model: ModelGraph, record: Callable[[], Mapping[str, str]] = dict) -> bytes:
        """The text of the .xml; ``record`` gives further attributes of <net> once all constants are written."""
        problem = next(unwritable(model), None)
        if problem is not None:
            where = problem.at()
            raise ModelError(f"the model cannot be written: {where}{': ' if where else ''}{problem.message}")
        net = _element("net", {"name": model.name, "version": str(model.version)}, "of the model")
        self._graph(net, model, "of the model")
        if self._offsets and not self._size:
            # OpenVINO has no pointer to a Constant in an empty file, even to one without elements.
            self._sink(b"\0")
        _set(net, record(), "of the model")
        return f'<?xml version="1.0"?>\n{indented(net)}'.encode()

    def _graph(self, parent: XmlElement, graph: Graph, where: str) -> None:
        payload = _payload(graph.payload, GraphPayload)
        _set(parent, payload.attributes, where)
        # Layers and edges of the model itself are kept as text only. They stand two levels below its root.
        kept: Callable[[XmlElement], XmlElement] = (
            partial(WrittenElement, depth=2) if isinstance(graph, ModelGraph) else lambda element: element
        )
        layers, edges = (_element(tag, payload.parts.get(tag, {}), f"of {tag}") for tag in ("layers", "edges"))
        parent.children += [layers, edges]
        for node in graph.nodes:
            layers.children.append(kept(self._layer(node)))
        for ids, attributes in _edges(graph):
            edge = _element(
                "edge", dict(zip(EDGE_ATTRIBUTES, map(str, ids), strict=True)) | dict(attributes), "of an edge"
            )
            edges.children.append(kept(edge))
        parent.children += parsed_elements(payload.elements)

    def _layer(self, node: Node) -> XmlElement:
        payload = _payload(node.payload, LayerPayload)
        attributes = {"id": str(node.id), "name": node.name, "type": _written_type(node), "version": node.version}
        layer = _element("layer", attributes | dict(payload.attributes), f"of {node.name!r}")
        parts = self._parts(node, payload)
        order = [tag for tag in dict.fromkeys((*payload.layout, *_DEFAULT_LAYOUT, *parts)) if tag in parts]
        for tag in order:
            layer.children += parts[tag]
        return layer

    def _parts(self, node: Node, payload: LayerPayload) -> dict[str, list[XmlElement]]:
        """The child elements of a layer by tag."""
        parts: dict[str, list[XmlElement]] = {}
        attributes = self._attributes(node)
        if attributes or "data" in payload.layout:
            parts["data"] = [_element("data", attributes, f"of {node.name!r}")]
        if node.ports or "input" in payload.layout:
            parts["input"] = [
                _ports("input", payload, (_input(node.input_id(i), port) for i, port in enumerate(node.ports)))
            ]
        if node.outputs or "output" in payload.layout:
            parts["output"] = [_ports("output", payload, map(_output, node.outputs))]
        for name, body in node.bodies.items():
            parts |= self._body(name, body, payload)
        for child in parsed_elements(payload.elements):
            parts.setdefault(child.tag, []).append(child)
        return parts

    def _attributes(self, node: Node) -> dict[str, str]:
        if node.constant is None:
            return node.attributes
        constant = node.constant
        shape = ", ".join(map(str, constant.shape))
        fresh = {
            "element_type": constant.element.name,
            "shape": shape,
            "offset": str(self._offset(constant)),
            "size": str(constant.size),
        }
        # A shape or type that was read keeps its spelling, unless the node has been given another constant since.
        if _spaceless(node.attributes.get("shape", "")) == _spaceless(shape):
            fresh["shape"] = node.attributes.get("shape", shape)
        if named_element(node.attributes.get("element_type", "")) is constant.element:
            fresh["element_type"] = node.attributes["element_type"]
        return {key: fresh.get(key, text) for key, text in node.attributes.items()} | fresh

    def _offset(self, constant: Constant) -> int:
        """The position of a constant's bytes; bytes that were written before are not written again."""
        raw = constant.raw[: constant.size]
        key = (constant.size, hashlib.sha256(raw.data if raw.flags.c_contiguous else raw.tobytes()).digest())
        if key not in self._offsets:
            self._offsets[key] = self._size
            self._sink(raw.data if raw.flags.c_contiguous else raw.tobytes())
            self._size += constant.size
        return self._offsets[key]

    def _body(self, name: str, body: Body, payload: LayerPayload) -> dict[str, list[XmlElement]]:
        tag, map_tag, back_tag = body_tags(name)
        parts: dict[str, list[XmlElement]] = {}
        if body.port_maps or map_tag in payload.layout:
            parts[map_tag] = [_port_maps(map_tag, body)]
        if body.back_edges or back_tag in payload.layout:
            parts[back_tag] = [_back_edges(back_tag, body)]
        for part in parts:
            _set(parts[part][0], payload.parts.get(part, {}), f"of {part}")
        element = _element(tag, {"name": body.graph.name} if body.graph.name else {}, "of a body")
        self._graph(element, body.graph, "of a body")
        parts[tag] = [element]
        return parts


def _payload(payload: Any, kind: type[_P]) -> _P:
    """The payload of what was read, an empty one for what was not."""
    return payload if isinstance(payload, kind) else kind()


def _port_maps(tag: str, body: Body) -> XmlElement:
    maps = XmlElement(tag, {})
    for entry in body.port_maps:
        ids = {"external_port_id": str(entry.external), "internal_layer_id": str(entry.internal)}
        # OpenVINO writes the axis before the ids and everything else after them.
        axis = {key: text for key, text in entry.attributes.items() if key == "axis"}
        maps.children.append(_element(entry.kind, axis | ids | entry.attributes, "of a port map"))
    return maps


def _back_edges(tag: str, body: Body) -> XmlElement:
    edges = XmlElement(tag, {})
    for edge in body.back_edges:
        ids = {"from-layer": str(edge.source), "to-layer": str(edge.target)}
        edges.children.append(
            _element("edge", ids | dict(_payload(edge.payload, BackEdgePayload).attributes), "of a back edge")
        )
    return edges


def _written_type(node: Node) -> str:
    """The type in the spelling of its file, unless the node has been given another type since."""
    if node.spelling is not None and READ_TYPES.get(node.spelling, node.spelling) == node.type:
        return node.spelling
    return WRITTEN_TYPES.get(node.type, node.type)


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _edges(graph: Graph) -> list[tuple[tuple[int, int, int, int], Mapping[str, str]]]:
    """From layer, from port, to layer, to port of every edge and its other attributes: in the order of the file, then
    new ones by id.

    OpenVINO sorts edges by the layer they come from, with a sort that is not stable, so the order of
    the others in its files follows from nothing.
    """
    found: list[tuple[bool, int, tuple[int, int, int, int], Mapping[str, str]]] = []
    for node in graph.nodes:
        for index, port in enumerate(node.ports):
            if port.source is None:
                raise AssertionError("it has been checked that there is a source")
            payload = _payload(port.payload, InputPayload)
            ids = (port.source.node.id, port.source.port_id, node.id, node.input_id(index))
            found.append((payload.edge is None, payload.edge or 0, ids, payload.edge_attributes))
    found.sort(key=lambda edge: (edge[0], edge[1], edge[2][0], edge[2][2], edge[2][3]))
    return [(ids, attributes) for *_, ids, attributes in found]


def _ports(tag: str, payload: LayerPayload, ports: Iterable[XmlElement]) -> XmlElement:
    element = _element(tag, payload.parts.get(tag, {}), f"of {tag}")
    element.children += ports
    return element


def _input(number: int, port: Input) -> XmlElement:
    fact = port.fact if port.fact is not None or port.source is None else port.source.fact
    return _port(number, fact, _payload(port.payload, InputPayload), {}, is_new=port.port is None)


def _output(value: Value) -> XmlElement:
    names = {"names": encode_names(value.names)} if value.names else {}
    return _port(value.port_id, value.fact, _payload(value.payload, PortPayload), names, is_new=value.port is None)


def _port(number: int, fact: Fact | None, payload: PortPayload, names: dict[str, str], *, is_new: bool) -> XmlElement:
    precision = _precision(None if fact is None else fact.element, payload.attributes.get("precision"), is_new)
    attributes = {"id": str(number)} | precision | names | dict(payload.attributes) | names | precision
    port = _element("port", attributes, f"of port {number}")
    for size in (fact.shape if fact is not None else None) or ():
        dim = XmlElement("dim", {})
        dim.text = str(size) if isinstance(size, int) else "-1"
        port.children.append(dim)
    port.children += parsed_elements(payload.elements)
    return port


def _precision(element: ElementType | None, written: str | None, is_new: bool) -> dict[str, str]:
    """The precision attribute: as written where that still agrees with the element type."""
    if written is not None and named_element(written) is element:
        return {"precision": written}
    if element is None:
        return {"precision": NO_PRECISION} if is_new or written is not None else {}
    return {"precision": element.precision}


def _element(tag: str, attributes: Mapping[str, str], where: str) -> XmlElement:
    element = XmlElement(tag, {})
    _set(element, attributes, where)
    return element


def _set(element: XmlElement, attributes: Mapping[str, str], where: str) -> None:
    for key, text in attributes.items():
        if not (is_name(key) and is_text(text)):
            raise ModelError(f"{key[:60]!r} {where}, {text[:60]!r}, has characters that XML cannot contain")
        element.attributes[key] = text
