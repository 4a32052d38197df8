"""How the bodies of If, Loop and TensorIterator are connected with their node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, Size
from irexec.ir.graph import Body, Node, PortMap
from irexec.schema.shape_rules import normalize_axis


@dataclass(frozen=True)
class Branch:
    """How a branch of If is connected with the node.

    Attributes:
        sources: for each Parameter of the branch the index of the input of the node.
        outputs: for each output of the node the index of the Result of the branch.
    """

    sources: list[int]
    outputs: list[int]

    @staticmethod
    def of(node: Node, body: Body) -> Branch:
        """Read the port maps of a branch; raises OpError where something is not connected."""
        sources, found = dict[int, int](), dict[int, int]()
        results = {result.id: i for i, result in enumerate(body.graph.results)}
        for entry in body.port_maps:
            of_node = node.input_index if entry.kind == "input" else node.output_index
            index = of_node(entry.external)
            if index is not None and entry.kind == "input":
                sources[entry.internal] = index
            elif index is not None:
                check(entry.internal in results, f"port map: layer {entry.internal} is not a Result of the body")
                found[index] = results[entry.internal]
        for parameter in body.graph.parameters:
            check(parameter.id in sources, f"no port map connects Parameter {parameter.name!r} of the body")
        for index in range(len(node.outputs)):
            check(index in found, f"port map: no Result of the body gives output {index}")
        outputs = [found[index] for index in range(len(node.outputs))]
        return Branch([sources[parameter.id] for parameter in body.graph.parameters], outputs)


@dataclass(frozen=True)
class Slice:
    """An axis divided into slices, one for each iteration; as in OpenVINO ``start`` and ``end`` are both included."""

    axis: int
    start: int
    end: int
    stride: int
    part: int

    @staticmethod
    def of(entry: PortMap) -> Slice | None:
        """The slice that a port map entry asks for; None if it passes the whole tensor."""
        if "axis" not in entry.attributes:
            return None
        axis, start, end, stride, part = (
            _integer(key, entry.attributes.get(key, default)) for key, default in _SLICE_DEFAULTS
        )
        check(stride != 0 and part > 0, f"port map: stride {stride} and part_size {part} give no slices")
        return Slice(axis, start, end, stride, part)

    def iterations(self, size: Size) -> Size:
        """The number of slices of an axis of this size: 0 for an empty one, which OpenVINO's plugin refuses."""
        if size == 0:
            return 0
        if isinstance(size, Dim):
            if (self.start, self.end) in ((0, -1), (-1, 0)):
                return size // self.part
            return ANY
        start, end = (value + size if value < 0 else value for value in (self.start, self.end))
        return (abs(end - start) + 1) // self.part

    def cut(self, array: np.ndarray) -> Callable[[int], np.ndarray]:
        """A function from the index of an iteration to its slice."""
        axis = normalize_axis(self.axis, array.ndim)
        start = self.start + array.shape[axis] if self.start < 0 else self.start
        if self.stride < 0:
            start -= self.part - 1
        before, stride, part, size = (slice(None),) * axis, self.stride, self.part, array.shape[axis]

        def at(iteration: int) -> np.ndarray:
            first = start + iteration * stride
            if first < 0 or first + part > size:
                raise OpError(
                    f"port map: iteration {iteration} takes {first}..{first + part} of axis {axis} of size {size}"
                )
            return array[(*before, slice(first, first + part))]

        return at


def _integer(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OpError(f"port map: {key} {text!r} is not an integer") from None


_SLICE_DEFAULTS = (("axis", "0"), ("start", "0"), ("end", "-1"), ("stride", "1"), ("part_size", "1"))


@dataclass(frozen=True)
class Wiring:
    """How a body is connected with its node, read once from its port maps.

    Attributes:
        sources: for each Parameter the node's input and how it is sliced; None for the iteration counter.
        backs: for each Parameter the Result that is fed back to it for the next iteration, or None.
        outputs: for each output of the node the Result, and how the results of the iterations are concatenated.
        condition: the Result that says whether to continue; None if there is none.
    """

    sources: list[tuple[int, Slice | None] | None]
    backs: list[int | None]
    outputs: list[tuple[int, Slice | None]]
    condition: int | None

    @staticmethod
    def of(node: Node, body: Body) -> Wiring:
        """Read the port maps and back edges of a body."""
        results = {result.id: i for i, result in enumerate(body.graph.results)}
        entries = {entry.internal: entry for entry in body.port_maps if entry.kind == "input"}
        parameters = {parameter.id for parameter in body.graph.parameters}
        for edge in body.back_edges:
            check(edge.source in results, f"back edge: layer {edge.source} is not a Result of the body")
            check(edge.target in parameters, f"back edge: layer {edge.target} is not a Parameter of the body")
        backs = {edge.target: results[edge.source] for edge in body.back_edges}
        condition = [
            e.internal
            for e in body.port_maps
            if e.kind == "output" and e.attributes.get("purpose") == "execution_condition"
        ]
        return Wiring(
            sources=[_source(parameter, entries.get(parameter.id), node) for parameter in body.graph.parameters],
            backs=[backs.get(parameter.id) for parameter in body.graph.parameters],
            outputs=list(_node_outputs(body, node, results)),
            condition=results[condition[0]] if condition and condition[0] in results else None,
        )


def _source(parameter: Node, entry: PortMap | None, node: Node) -> tuple[int, Slice | None] | None:
    check(entry is not None, f"no port map connects Parameter {parameter.name!r} of the body")
    if entry is None or entry.attributes.get("purpose") == "current_iteration":
        return None
    index = node.input_index(entry.external)
    check(index is not None, f"port map: external_port_id {entry.external} is not an input")
    return index or 0, Slice.of(entry)


def _node_outputs(body: Body, node: Node, results: dict[int, int]) -> Iterator[tuple[int, Slice | None]]:
    entries = {node.output_index(e.external): e for e in body.port_maps if e.kind == "output" and e.external >= 0}
    for index in range(len(node.outputs)):
        entry = entries.get(index)
        check(entry is not None and entry.internal in results, f"port map: no Result of the body gives output {index}")
        if entry is not None:
            yield results[entry.internal], Slice.of(entry)
