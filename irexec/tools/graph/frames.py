"""Frames: the parts of a graph that fold, the lines in each of them, and shape arithmetic.

Shape arithmetic: layers whose values depend on the shapes of tensors alone, such as ShapeOf, Gather, Concat before a
Reshape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from irexec.ir.order import sort_by_producers
from irexec.tools.graph.drawing import DrawnEdge, DrawnFrame, DrawnLayer, FrameKind, Link
from irexec.tools.graph.names import SHAPE_ARITHMETIC, Group, group_by_scope, group_repeated, make_acyclic, scopes

Scope = tuple[str, ...]


def set_apart(
    scopes: dict[int, Scope], types: Mapping[int, str], before: Mapping[int, Sequence[int]], order: Sequence[int]
) -> None:
    """Move the layers of shape arithmetic to a scope of their own within their scope.

    One scope may need several: a layer that reads the shape of a tensor cannot share a block with a layer that the
    tensor depends on.

    Args:
        scopes: the scope of each layer; changed in place.
        types: the type of each layer.
        before: the producers of each layer, constants left out.
        order: the layers, each after its producers.
    """
    members: dict[int, None] = {}
    for i in order:
        producers = before.get(i, ())
        if types[i] == "ShapeOf" or (types[i] not in _ENDS and producers and all(j in members for j in producers)):
            members[i] = None
    place = {i: k for k, i in enumerate(order)}
    newest, oldest = _newest_before(members, before, place), _oldest_after(members, before, place)
    # The newest tensor whose shape a layer of the block reads is older than the oldest layer that reads a result of the
    # block.
    current: dict[Scope, tuple[int, float]] = {}
    for i in sorted(members, key=lambda i: (newest[i], place[i])):
        number, bound = current.get(scopes[i], (0, float("inf")))
        if newest[i] >= bound:
            number, bound = number + 1, float("inf")
        current[scopes[i]] = number, min(bound, oldest[i])
        scopes[i] = (*scopes[i], f"{SHAPE_ARITHMETIC} {number}")


_ENDS = ("Result", "Assign")


def _newest_before(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, int]:
    """The last position of a tensor whose shape each member depends on; ``members`` are in order."""
    found: dict[int, int] = {}
    for i in members:
        found[i] = max((found[j] if j in members else place[j] for j in before.get(i, ())), default=-1)
    return found


def _oldest_after(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, float]:
    """The first position of a layer outside of ``members`` that depends on each member."""
    found = dict.fromkeys(members, float("inf"))
    for i in reversed(list(place)):
        at = found[i] if i in members else float(place[i])
        for j in before.get(i, ()):
            if j in found:
                found[j] = min(found[j], at)
    return found


SHOWN = 60
"""Maximum number of boxes of a graph with folded blocks: blocks are unfolded, from the outermost on, up to this
number."""


class FrameBuilder:
    """Makes the frames of a drawing.

    Args:
        layers: the drawn layers; ``drawn_in`` is set.
        edges: between them.
        owners: for a layer of a body the layer with the body, and the name of the body.
        blocks: True if layers of a common name make a block; None for a graph of more than ``SHOWN`` boxes.
    """

    def __init__(
        self,
        layers: Sequence[DrawnLayer],
        edges: Iterable[DrawnEdge],
        owners: Mapping[int, tuple[int, str]],
        *,
        blocks: bool | None,
    ) -> None:
        self._layers = layers
        self._parents: list[int | None] = []
        self._kinds: list[tuple[FrameKind, str, int | None]] = []
        self._items: list[list[int]] = []
        self._frame_of: dict[int, int] = {}
        self._box: dict[int, int] = {}
        shown = [layer.index for layer in layers if layer.drawn_in is None]
        self._blocks = len(shown) > SHOWN if blocks is None else blocks
        self._edges = [
            edge for edge in edges if layers[edge.source].drawn_in is None and layers[edge.target].drawn_in is None
        ]
        self._inside: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for i in shown:
            if i in owners:
                owner, body = owners[i]
                self._inside[owner].setdefault(body, []).append(i)
        self._graph_pairs: dict[tuple[int, str] | None, list[tuple[int, int]]] = defaultdict(list)
        for edge in self._edges:
            self._graph_pairs[owners.get(edge.source)].append((edge.source, edge.target))
        self._owners = owners
        self._fill(self._new("graph", "", None, None), [i for i in shown if i not in owners], None)

    def frames(self, *, bodies: bool) -> tuple[DrawnFrame, ...]:
        """The frames; those of bodies are unfolded if ``bodies``."""
        links = self._links()
        made = [
            DrawnFrame(k, kind, name, parent, layer, tuple(items), tuple(links[k]), folded=kind in ("block", "layer"))
            for k, ((kind, name, layer), parent, items) in enumerate(
                zip(self._kinds, self._parents, self._items, strict=True)
            )
        ]
        return _unfolded(made, bodies)

    def _new(self, kind: FrameKind, name: str, parent: int | None, layer: int | None) -> int:
        self._parents.append(parent)
        self._kinds.append((kind, name, layer))
        self._items.append([])
        index = len(self._parents) - 1
        if parent is not None:
            self._items[parent].append(~index)
        return index

    def _fill(self, frame: int, members: list[int], body: tuple[int, str] | None) -> None:
        """Put the layers of a graph into a frame, in blocks; a layer with bodies becomes a frame of their content."""
        waiting = [(frame, self._grouped(members, self._graph_pairs[body]))]
        while waiting:
            here, group = waiting.pop()
            for inner in group.groups:
                waiting.append((self._new("block", inner.name, here, None), inner))
            for i in sorted(group.layers):
                self._add(here, i)

    def _grouped(self, members: list[int], pairs: list[tuple[int, int]]) -> Group:
        if not self._blocks:
            return Group("", members)
        before: dict[int, list[int]] = defaultdict(list)
        for a, b in pairs:
            before[b].append(a)
        position = {i: k for k, i in enumerate(members)}
        order, stuck = sort_by_producers([{position[a] for a in before[i] if a in position} for i in members])
        names = {i: self._layers[i].line.name for i in members}
        ordered = [members[k] for k in [*order, *stuck]]
        types = {i: self._layers[i].line.type for i in members}
        by_scope = scopes(names, before, ordered)
        set_apart(by_scope, types, before, ordered)
        group = group_by_scope(by_scope)
        group_repeated(group, types, pairs)
        make_acyclic(group, pairs)
        return group

    def _add(self, frame: int, i: int) -> None:
        bodies = self._inside.get(i)
        self._frame_of[i] = frame
        if not bodies:
            self._items[frame].append(i)
            self._box[i] = i
            return
        outer = self._new("layer", self._layers[i].line.name, frame, i)
        self._box[i] = ~outer
        for name, members in bodies.items():
            inner = outer if len(bodies) == 1 else self._new("body", name, outer, None)
            self._fill(inner, members, (i, name))

    def _links(self) -> list[list[Link]]:
        """The lines of each frame: an edge between layers of different frames is a line in each frame on its way."""
        found: list[dict[Link, None]] = [{} for _ in self._parents]
        for edge in self._edges:
            tensor = (edge.source, edge.output)
            source, target = self._box[edge.source], self._box[edge.target]
            up, down = self._path(self._frame_of[edge.source]), self._path(self._frame_of[edge.target])
            common = next(frame for frame in up if frame in set(down))
            for frame in up[: up.index(common)]:
                found[frame][Link(source, None, tensor)] = None
                source = ~frame
            for frame in down[: down.index(common)]:
                found[frame][Link(None, target, tensor)] = None
                target = ~frame
            found[common][Link(source, target, tensor)] = None
        return [list(links) for links in found]

    def _path(self, frame: int) -> list[int]:
        """The frame and those around it."""
        path = [frame]
        while (parent := self._parents[path[-1]]) is not None:
            path.append(parent)
        return path


def _unfolded(frames: list[DrawnFrame], bodies: bool) -> tuple[DrawnFrame, ...]:
    """The frames, with those of bodies unfolded if ``bodies``, and blocks unfolded until ``SHOWN`` boxes are in sight.

    The block of the most layers is unfolded first, with the blocks beside it that differ from it by a number: they are
    often alike and should look alike. A block of more than half of all layers is always unfolded.
    """
    layers = [0] * len(frames)
    for frame in reversed(frames):
        layers[frame.index] += sum(1 for item in frame.items if item >= 0)
        if frame.parent is not None:
            layers[frame.parent] += layers[frame.index]
    folded = [frame.folded and (frame.kind == "block" or not bodies) for frame in frames]
    alike: dict[tuple[int, str], list[DrawnFrame]] = defaultdict(list)
    for frame in frames:
        if frame.kind == "block" and frame.parent is not None and not frame.is_dimmed:
            alike[frame.parent, _NUMBER.sub("#", frame.name)].append(frame)
    # Each after the block that it is in, which has more layers or comes first.
    largest = sorted(alike.values(), key=lambda group: -max(layers[frame.index] for frame in group))
    count = len(frames[0].items)
    for group in largest:
        more = sum(len(frame.items) - 1 for frame in group)
        is_in_sight = not any(folded[k] for k in _around(frames, group[0].parent or 0))
        dominates = any(2 * layers[frame.index] > layers[0] for frame in group)
        if is_in_sight and (dominates or count + more <= SHOWN):
            count += more
            for frame in group:
                folded[frame.index] = False
    return tuple(replace(frame, folded=fold) for frame, fold in zip(frames, folded, strict=True))


_NUMBER = re.compile(r"\d+")


def _around(frames: Sequence[DrawnFrame], index: int) -> Iterator[int]:
    """A frame and those around it."""
    here: int | None = index
    while here is not None:
        yield here
        here = frames[here].parent
