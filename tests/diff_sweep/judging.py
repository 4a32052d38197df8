"""Random edits of whole networks, and whether diff lists them and nothing else."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irexec
from irexec.analysis.model import declare
from irexec.analysis.shape_inference import infer_shapes
from irexec.ir.graph import Graph, Node
from irexec.tools.diff import Diff, LayerRef, diff
from tests.diff_sweep.edits import EDITS, IN_BODIES, Editing, Entry
from tests.diff_sweep.mixing import copied, mix, rename
from tests.support.networks import NAMES, unpacked
from tests.sweep.kind import Case, Kind, Outcome, temporary


@dataclass
class Listed:
    """One run.

    Attributes:
        edits: what was edited, in which body.
        missed: entries that are not listed.
        extra: entries that are listed but were not edited.
        following: how many shapes and types are listed as following.
    """

    edits: list[str]
    missed: list[str]
    extra: list[str]
    following: int

    @property
    def is_right(self) -> bool:
        return not (self.missed or self.extra)


def run(model: irexec.Model, seed: int, *, edits: int, renamed: float, kind: str | None = None) -> tuple[Listed, Diff]:
    """Edit a copy of a model, whose ports declare what shape inference gives, mix it and compare."""
    rng = random.Random(seed)
    changed, origin = copied(model)
    graphs = _graphs(changed)
    editings = {graph: Editing(graph, rng) for graph, _ in graphs}
    before = _names(changed)
    done = list(_edited(editings, graphs, edits, kind, rng))
    names = {node: node.name for node in changed.walk()}
    for node in rename(changed, renamed, rng):
        if node in origin:
            names[node] = node.name
    declare(changed, infer_shapes(changed, tolerant=True))
    removed = {
        node
        for editing in editings.values()
        for node, now, _, _ in editing.expected
        if now is None and node is not None
    }
    for graph, _ in graphs:
        for node in removed:
            if node in graph.nodes:
                raise AssertionError(f"{node} is still there")
    mix(changed, rng)
    found = diff(model, changed)
    expected = {entry for editing in editings.values() for entry in editing.expected}
    expected = {entry for entry in expected if entry[2] != "names"}
    expected |= {
        (node, node, "names", "name") for node in changed.walk() if node in origin and node.name != before[node]
    }
    allowed = {entry for editing in editings.values() for entry in editing.allowed}
    listed = set(_listed(found, model, changed, origin))
    missed, extra = expected - listed, listed - expected - allowed
    return Listed(done, sorted(map(_text, missed)), sorted(map(_text, extra)), len(found.following)), found


def _names(graph: Graph) -> dict[Node, str]:
    return {node: node.name for node in graph.walk()}


def _graphs(graph: Graph, depth: int = 0) -> list[tuple[Graph, int]]:
    found = [(graph, depth)]
    for node in graph.nodes:
        for body in node.bodies.values():
            found += _graphs(body.graph, depth + 1)
    return found


def _edited(
    editings: dict[Graph, Editing], graphs: list[tuple[Graph, int]], count: int, kind: str | None, rng: random.Random
) -> Iterator[str]:
    for _ in range(count):
        for _ in range(50):
            graph, depth = rng.choice(graphs)
            name = kind or rng.choice(list(EDITS) if depth == 0 else list(IN_BODIES))
            if (depth == 0 or name in IN_BODIES) and EDITS[name](editings[graph]):
                yield name if depth == 0 else f"{name} in a body"
                break


def _listed(found: Diff, a: Graph, b: Graph, origin: dict[Node, Node]) -> Iterator[Entry]:
    copies = {original: node for node, original in origin.items()}
    of_a = {key: copies[node] for key, node in _places(a, "", {}).items()}
    of_b = _places(b, "", origin)
    for layer in found.layers:
        one = None if layer.a is None else of_a[_key(layer.a)]
        other = None if layer.b is None else of_b[_key(layer.b)]
        if not layer.changes:
            yield one, other, layer.status, ""
        for change in layer.changes:
            yield one, other, change.kind, change.what
    for change in found.model:
        yield None, None, change.kind, change.what


def _key(layer: LayerRef) -> tuple[str, int]:
    return layer.path, layer.id


def _places(graph: Graph, path: str, origin: dict[Node, Node]) -> dict[tuple[str, int], Node]:
    """Layers by path and id; paths have the names of the first model."""
    found = {}
    for node in graph.nodes:
        found[path, node.id] = node
        for name, body in node.bodies.items():
            found |= _places(body.graph, f"{path}{origin.get(node, node).name}/{name}/", origin)
    return found


def _text(entry: Entry) -> str:
    one, other, kind, what = entry
    if one is other and one is not None:
        return f"{kind} {what} of {one.name!r} ({one.type})"
    texts = [f"{node.name!r} ({node.type})" if node is not None else "-" for node in (one, other)]
    return f"{kind} {what} of {texts[0]} and {texts[1]}"


def network(name: str, folder: Path) -> irexec.Model:
    """A kept network whose ports declare what shape inference gives."""
    model = irexec.read_model(unpacked(name, folder))
    declare(model, infer_shapes(model, tolerant=True))
    return model


class Sweep(Kind):
    """Edits of each network of tests/data/networks."""

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--edits", type=int, default=1, help="edits of each case")
        add("--renamed", type=float, default=0.1, help="the part of all layers that also gets another name")
        add("--kind", help="only this kind of edit")

    def names(self) -> list[str]:
        return NAMES

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """An outcome for each edit of a case, which are right together or not at all."""
        given = self.options
        with temporary() as folder:
            model = network(name, folder)

            def case(number: int) -> Iterator[Outcome]:
                # Other edits for each network.
                seed = number + zlib.crc32(name.encode())
                found, _ = run(model, seed, edits=given.edits, renamed=given.renamed, kind=given.kind)
                text = f"missed {found.missed}, extra {found.extra}"
                yield from (Outcome(edit, "" if found.is_right else text, not found.is_right) for edit in found.edits)

            yield case
