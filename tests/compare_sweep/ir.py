"""IR against IR: a changed copy of a network has to be traced to the changed layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import irexec
from irexec import IrexecError, Model
from irexec.tools.compare import ComparedLayer, CompareOptions, Comparison, compare
from tests.compare_sweep.changes import Change, attribute, rename, weight
from tests.compare_sweep.truth import Feeds, Record, first_layers, record
from tests.support.networks import feeds, unpacked
from tests.sweep.kind import Case, Kind, Outcome, temporary

NETWORKS = {
    "resnet18": "convolutional", "mobilenet_v3": "convolutional, depthwise", "unet": "segmentation, transposed convolutions",
    "ssd": "detector", "yolo": "detector", "faster_rcnn": "detector of two stages", "bert_sdpa": "transformer",
    "gpt2_sdpa": "transformer with state", "llama_int4_asym": "transformer with state, weights of 4 bits",
    "gru_tagger": "recurrent", "scripted_loop": "recurrent, Loop and If", "resnet18_quantised": "quantised",
}  # fmt: skip
_DRAWS = 60


@dataclass
class Network:
    """A network with its inputs and what it computes."""

    model: Model
    runs: list[Feeds]
    base: Record

    @classmethod
    def kept(cls, name: str, folder: Path) -> Network:
        """A network of tests/data/networks."""
        path = unpacked(name, folder)
        model = irexec.read_model(path)
        ports = model.inputs
        has_state = any(node.type == "ReadValue" for node in model.nodes)
        arrays = feeds(path, ports)[: 2 if has_state else 1]
        runs: list[Feeds] = [{port.name: array for port, array in zip(ports, one, strict=True)} for one in arrays]
        return cls(model, runs, record(model, runs))


def drawn(network: Network, rng: np.random.Generator) -> tuple[Change, set[int]]:
    """A change that can be seen, and the layers that are right."""
    for _ in range(_DRAWS):
        change = attribute(network.model, rng) if rng.random() < 0.5 else weight(network.model, rng)
        if change is None:
            continue
        try:
            changed = record(change.model, network.runs)
        except (IrexecError, ArithmeticError):
            continue
        right = first_layers(network.model, network.base, changed)
        if right:
            return change, right
    raise AssertionError("no change can be seen")


def own(change: Change, nodes: list[irexec.ir.graph.Node]) -> set[int]:
    """The changed layer, and the layers that read it if it is a Constant."""
    changed = nodes[change.layer]
    readers = {i for i, node in enumerate(nodes) if any(v is not None and v.node is changed for v in node.inputs)}
    return {change.layer} | (readers if changed.type == "Constant" else set())


def outcome(change: Change, right: set[int], named: int | None, nodes: list[irexec.ir.graph.Node]) -> Outcome:
    """What comes of a change when the layer at index ``named`` is named, of the layers that are right."""
    if named in right:
        return Outcome("the layer itself" if named in own(change, nodes) else "a later layer that shows it")
    wanted = ", ".join(f"{nodes[i].name} ({nodes[i].type})" for i in sorted(right))
    first = "nothing" if named is None else f"{nodes[named].name} ({nodes[named].type})"
    return Outcome("wrong", f"{change.text}: expected {wanted}, found {first}", fails=True)


def trial(network: Network, rng: np.random.Generator, renamed: bool) -> Outcome:
    """One change."""
    change, right = drawn(network, rng)
    nodes = list(change.model.walk())
    if renamed:
        rename(change.model, rng)
    found = compare(network.model, change.model, network.runs, CompareOptions())
    named = None if found.first is None else index_of(found, change.model, nodes)
    return outcome(change, right, named, nodes)


class Sweep(Kind):
    """Changes of the recorded networks."""

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--renamed", action="store_true", help="other names, ids and order in the copy")

    def names(self) -> list[str]:
        return list(NETWORKS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """One change for each number."""
        with temporary() as folder:
            network = Network.kept(name, folder)
            yield lambda number: [trial(network, np.random.default_rng(number), self.options.renamed)]


def index_of(found: Comparison, model: Model, nodes: list[irexec.ir.graph.Node]) -> int:
    """The index of the layer that is named, by its path."""
    assert found.first is not None
    return place_of(found.first.row.b, model, nodes)


def place_of(layer: ComparedLayer, model: Model, nodes: list[irexec.ir.graph.Node]) -> int:
    """The index of a layer of a comparison."""
    return nodes.index(dict(_paths(model, ""))[layer.name, layer.id])


def _paths(graph: irexec.ir.graph.Graph, path: str) -> list[tuple[tuple[str, int], irexec.ir.graph.Node]]:
    found = []
    for node in graph.nodes:
        found.append(((f"{path}{node.name}", node.id), node))
        for name, body in node.bodies.items():
            found += _paths(body.graph, f"{path}{node.name}/{name}/")
    return found
