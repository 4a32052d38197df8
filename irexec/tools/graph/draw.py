"""Drawings of models, and the files that they are written to.

An image of pixels is the SVG, rasterised by resvg with the fonts of the system. resvg needs no other library.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from irexec.analysis.cost import NO_COMPUTATION
from irexec.analysis.shape_inference import Inference
from irexec.analysis.validate import infer_all, validate
from irexec.api import ModelLike, as_model
from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.ir.findings import Finding
from irexec.ir.order import grouped
from irexec.ir.process import collection_paused
from irexec.messages import counted, silent
from irexec.records import Record
from irexec.runtime.profile import Profile
from irexec.tools.graph.content import Content, content_of, frames_of, select
from irexec.tools.graph.drawing import FONTS, PNG_SIDE, Drawing, DrawnEdge, DrawnLayer, family_of
from irexec.tools.graph.explorer import explorer_collection
from irexec.tools.graph.svg import graph_page, svg_and_size
from irexec.tools.graph.text_formats import MAX_EDGES, MAX_TEXT, dot, mermaid
from irexec.tools.images import Notify
from irexec.tools.inspect.weights import WeightLine, weight_line
from irexec.tools.measure import ProfileOptions, profile
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.shapes import read_with_shapes, reshape


def draw(
    model: ModelLike,
    *,
    around: Sequence[str] = (),
    hops: int = 3,
    from_: Sequence[str] = (),
    to: Sequence[str] = (),
    bodies: bool = False,
    cluster: bool | None = False,
    statistics: bool = False,
    findings: Iterable[Finding] = (),
    profile: Profile | None = None,
    inference: Inference | None = None,
    advance: Callable[[int], None] = silent,
) -> Drawing:
    """A model, or a part of it, as a drawing; nothing is run.

    Args:
        model: a model, which may be damaged, or a source that read_model accepts.
        around: layers or tensors to draw with everything at most ``hops`` edges away.
        hops: see ``around``.
        from_: layers or tensors whose dependents are drawn.
        to: layers or tensors whose dependencies are drawn; with ``from_``, everything between the two.
        bodies: True to draw bodies of loops and branches unfolded in their layers.
        cluster: True to fold layers with a common name into blocks; None does so in a graph of more than 60 boxes.
        statistics: True for statistics of the drawn constants, as far as their data can be read.
        findings: results of ``irexec.validate`` to mark on their layers.
        profile: a profile of the model, whose times are marked on the layers.
        inference: facts of the model's values; inferred unless given.
        advance: called with numbers of bytes while constants are read.

    Raises:
        InputError: the argument is neither a model nor the source of one, or a layer does not exist.
    """
    for name, keys in (("around", around), ("from_", from_), ("to", to)):
        if isinstance(keys, str):
            raise InputError(f"{name} is {keys!r}, expected a list of layers or tensors")
    model = as_model(model)
    content = content_of(model, inference)
    with collection_paused():
        shown = select(content, around_keys=around, hops=hops, from_keys=from_, to_keys=to)
        kept = _kept(content, shown)
    index = {i: k for k, i in enumerate(kept)}
    marked = _by_layer(content, findings)
    times = {} if profile is None else _times(content, profile)
    weights = dict(_statistics(content, kept, advance)) if statistics else {}
    owners = {
        index[i]: (index[owner[0]], owner[1])
        for i in kept
        if (owner := content.owners[i]) is not None and owner[0] in index
    }
    with collection_paused():
        layers = _layers(content, index, marked, times, weights)
        edges = tuple(
            DrawnEdge(index[e.source], e.output, index[e.target], e.input)
            for e in content.edges
            if e.source in index and e.target in index
        )
        frames = frames_of(layers, edges, owners, blocks=cluster, bodies=bodies)
    elsewhere = marked.pop(None, []) + [finding for i, own in marked.items() if i not in index for finding in own]
    return Drawing(
        name=model.name,
        layers=tuple(layers),
        edges=edges,
        frames=frames,
        total=len(content.nodes),
        cut=_cut(content, index) if shown is not None else {},
        findings=tuple(elsewhere),
        milliseconds=None if profile is None else profile.milliseconds,
    )


def _kept(content: Content, shown: set[int] | None) -> list[int]:
    """The layers of the drawing: the chosen ones, the constants drawn in them, and everything in their bodies."""
    if shown is None:
        return list(range(len(content.nodes)))
    kept = set(shown)
    # Layers come before those of their bodies.
    for i, owner in enumerate(content.owners):
        if owner is not None and owner[0] in kept:
            kept.add(i)
    return sorted(kept | {i for i, host in content.drawn_in.items() if host in kept})


def _by_layer(content: Content, findings: Iterable[Finding]) -> dict[int | None, list[Finding]]:
    """The findings of each layer; under None those of no layer."""
    places: dict[tuple[Any, ...], int] = {}
    for i, node in enumerate(content.nodes):
        # A finding at a port has the line of the port.
        for key in ((node.id, node.name, node.line), (node.id, node.name)):
            places.setdefault(key, i)
    found: dict[int | None, list[Finding]] = defaultdict(list)
    for one in findings:
        key = (-1 if one.layer_id is None else one.layer_id, one.layer_name or "")
        found[places.get((*key, one.line), places.get(key))].append(one)
    return found


def _times(content: Content, profile: Profile) -> dict[int, dict[str, Any]]:
    """The times of layers; rows of a profile are in the order of the layers that compute something."""
    computing = [
        i for i, node in enumerate(content.nodes) if content.owners[i] is None and node.type not in NO_COMPUTATION
    ]
    if [content.nodes[i].name for i in computing] != [row.name for row in profile.layers]:
        raise InputError("the profile is that of another model")
    with_others = {name: step.name for step in profile.steps for name in step.layers if name != step.name}
    return {
        i: {
            "milliseconds": row.milliseconds,
            "share": row.share,
            "along_with": with_others.get(row.name) if row.milliseconds is None else None,
        }
        for i, row in zip(computing, profile.layers, strict=True)
    }


def _layers(
    content: Content, index: Mapping[int, int], findings: Mapping[int | None, Sequence[Finding]],
    times: Mapping[int, dict[str, Any]], statistics: Mapping[int, WeightLine],
) -> list[DrawnLayer]:  # fmt: skip
    """The layers of the drawing, in the order of ``index``."""
    into = content.drawn_in
    constants = grouped((into[i], k) for i, k in index.items() if i in into)
    # The types and shapes of the constants that each layer with a box of its own reads.
    reads = grouped(
        (edge.target, output)
        for edge in content.edges
        if edge.source in into and edge.target not in into
        for output in content.lines[edge.source].outputs[edge.output : edge.output + 1]
    )
    return [
        DrawnLayer(
            index=k,
            line=content.lines[i],
            family=family_of(content.nodes[i].type, content.nodes[i].version),
            cost=content.costs[i],
            drawn_in=index.get(into[i]) if i in into else None,
            constants=tuple(constants.get(i, ())),
            reads=tuple(reads.get(i, ())),
            statistics=statistics.get(i),
            findings=tuple(findings.get(i, ())),
            **times.get(i, {}),
        )
        for i, k in index.items()
    ]


def _statistics(
    content: Content, kept: Iterable[int], advance: Callable[[int], None]
) -> Iterator[tuple[int, WeightLine]]:
    """The statistics of the constants that can be read."""
    for i in kept:
        node = content.nodes[i]
        if node.constant is not None and node.constant.is_readable:
            # Faults of constants are findings of validation.
            with suppress(ModelError):
                yield i, weight_line(node, node.constant, advance)


def _cut(content: Content, index: Mapping[int, int]) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Edges between drawn layers and layers outside of the drawing."""

    def names(i: int, direction: Mapping[int, Iterable[int]]) -> tuple[str, ...]:
        return tuple(content.nodes[j].name for j in direction.get(i, ()) if j not in index)

    before, after = content.neighbours
    found = {k: (names(i, before), names(i, after)) for i, k in index.items() if i not in content.drawn_in}
    return {k: sides for k, sides in found.items() if any(sides)}


@dataclass(frozen=True, kw_only=True)
class GraphOptions(ProfileOptions):
    """The part of a model to draw, and its marks. Options of a run have an effect only with ``times``.

    Attributes:
        around, hops, from_, to, bodies, cluster: see ``draw``.
        statistics: True for statistics of all constants that can be read.
        findings: True to mark the findings of validation.
        times: True to run the model and mark the time of each layer.
    """

    around: tuple[str, ...] = ()
    hops: int = 3
    from_: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    bodies: bool = False
    cluster: bool | None = False
    statistics: bool = False
    findings: bool = False
    times: bool = False
    runs: int = 5


def create(
    path: str,
    sources: Sequence[InputSource],
    options: GraphOptions,
    notify: Notify,
    advance: Callable[[int], None] = silent,
) -> Drawing:
    """A drawing of a file.

    Args:
        path: the .xml or .onnx.
        sources: the inputs of a run, for ``options.times``.
        options: the part to draw, and its marks.
        notify: called with notes for the user.
        advance: called with numbers of bytes while constants are read.

    Raises:
        InputError: a layer or input does not exist, or nothing is left to draw.
        ModelError, UnsupportedError: the model cannot be read.
        NodeError: with ``times``, the model cannot be run.
    """
    model = read_with_shapes(path, options.weights, options.shapes or {}, mmap=options.mmap)
    reshape(model, options.shapes or {}, tolerant=True)
    inference = infer_all(model)
    found = validate(model, inference=inference) if options.findings else ()
    measured = profile(path, sources, options, notify) if options.times else None
    unreadable = [node for node in model.walk() if node.constant is not None and not node.constant.is_readable]
    if options.statistics and unreadable:
        notify(f"the values of {counted(len(unreadable), 'constant')} cannot be read")
    return draw(
        model, around=options.around, hops=options.hops, from_=options.from_, to=options.to, bodies=options.bodies,
        cluster=options.cluster,
        statistics=options.statistics, findings=found, profile=measured, inference=inference, advance=advance,
    )  # fmt: skip


Format = Literal["svg", "html", "png", "mmd", "dot", "model-explorer"]

FORMATS: dict[Format, str] = {
    "svg": "an image that can be enlarged",
    "html": "a page to search, fold and click in",
    "png": "an image of pixels",
    "mmd": "Mermaid, for Markdown",
    "dot": "Graphviz",
    "model-explorer": "Google's Model Explorer",
}
_SUFFIXES: dict[str, Format] = {
    ".svg": "svg", ".html": "html", ".htm": "html", ".png": "png", ".mmd": "mmd", ".mermaid": "mmd", ".dot": "dot",
    ".gv": "dot", ".json": "model-explorer",
}  # fmt: skip


@dataclass(frozen=True)
class GraphFile(Record):
    """A file that was written.

    Attributes:
        path: as given.
        format: one of FORMATS.
        bytes: its size.
    """

    path: str
    format: Format
    bytes: int


def format_of(path: str, what: str = "a graph is written", formats: Collection[Format] = tuple(FORMATS)) -> Format:
    """The format of a path by its suffix; raises InputError for a suffix of none of ``formats``."""
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is None or found not in formats:
        suffixes = ", ".join(suffix for suffix, format in _SUFFIXES.items() if format in formats)
        raise InputError(f"-o {path}: {what} to a file that ends in {suffixes}")
    return found


def check_graph_file(path: str, read: Mapping[str, str]) -> None:
    """Raise an error if a drawing cannot be written, before anything is done.

    Args:
        path: the file to write.
        read: the files to read, with a description of each.

    Raises:
        InputError: the suffix is unknown, or the file would overwrite an input or anything but a file.
        UnsupportedError: a package that is needed is not installed.
    """
    check_format(format_of(path))
    check_file("-o", Path(path), read)


def check_format(format: Format) -> None:
    """Raise UnsupportedError unless the packages that a format needs are installed."""
    if format == "png":
        load_resvg()


def rendered(
    drawing: Drawing,
    format: Format,
    *,
    scale: float = 1.0,
    columns: int | None = None,
    notify: Notify = silent,
) -> bytes:
    """The content of a file of one of FORMATS; arguments and errors are those of ``write_graph``."""
    if format == "html":
        return graph_page(drawing).encode()
    if format == "dot":
        return dot(drawing).encode()
    if format == "model-explorer":
        return json.dumps(explorer_collection(drawing)).encode()
    if format == "mmd":
        text = mermaid(drawing)
        edges = text.count(" -->")
        if len(text) > MAX_TEXT or edges > MAX_EDGES:
            notify(
                f"Mermaid shows at most {MAX_TEXT:,} characters and {MAX_EDGES} edges unless configured otherwise, "
                f"here are {len(text):,} and {edges:,}: --around, --from and --to draw a part, --cluster folds blocks"
            )
        return text.encode()
    text, size = svg_and_size(drawing, columns)
    return text.encode() if format == "svg" else png(text, size, scale, notify)


def write_graph(
    drawing: Drawing, path: str, *, scale: float = 1.0, columns: int | None = None, notify: Notify = silent
) -> GraphFile:
    """Write a drawing in the format of the suffix, whole or not at all.

    Args:
        drawing: of a model.
        path: of the file: .svg, .html, .png, .mmd or .dot.
        scale: of a .png.
        columns: of a .png or .svg, between which a long graph is divided; None for as many as fit its length.
        notify: called with notes for the user.

    Raises:
        InputError: the suffix is another one, or the image cannot be made.
        ModelError: the file cannot be written; what was there before is as it was.
        UnsupportedError: a package that is needed is not installed.
    """
    format = format_of(path)
    return graph_file(path, format, rendered(drawing, format, scale=scale, columns=columns, notify=notify))


def graph_file(path: str, format: Format, content: bytes) -> GraphFile:
    """Write a file, whole or not at all."""
    with new_file(path) as file:
        file.write(content)
    return GraphFile(path, format, len(content))


_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    f'<text x="1" y="15" font-family="{FONTS}">MW</text></svg>'
)
_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>'


def load_resvg() -> Any:
    """The package resvg_py; raises UnsupportedError unless it is installed."""
    try:
        import resvg_py
    except ImportError:
        raise UnsupportedError(
            "resvg-py is not installed, which makes .png images: pip install 'irexec[png]'"
        ) from None
    return resvg_py


def png(svg: str, size: tuple[float, float], scale: float, notify: Notify) -> bytes:
    """The bytes of a .png.

    Args:
        svg: the document.
        size: its width and height.
        scale: pixels of the image per pixel of the document; reduced if a side would exceed ``PNG_SIDE`` pixels.
        notify: called with notes for the user.

    Raises:
        InputError, UnsupportedError: see ``write_graph``.
    """
    resvg = load_resvg()
    largest = PNG_SIDE / max(size)
    if scale > largest:
        notify(
            f"the image is {largest:.2g} times as large as the graph: no side has more than {PNG_SIDE:,} pixels; an "
            ".svg has no limit"
        )
    try:
        if resvg.svg_to_bytes(svg_string=_PROBE) == resvg.svg_to_bytes(svg_string=_EMPTY):
            notify(f"none of the fonts {FONTS} is installed: the image has no texts")
        return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=min(scale, largest)))
    except ValueError as error:
        raise InputError(f"the image cannot be made: {error}") from None
