"""IR against IR: a changed copy of a network has to be traced to the changed layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import irexec
from irexec import IrexecError, Model
from irexec.tools.compare import ComparedLayer, CompareOptions, Comparison, compare
from tests.compare_sweep.changes import Change, attribute, rename, weight
from tests.compare_sweep.truth import Feeds, Record, first_layers, record
from tests.support.networks import feeds, unpacked

NETWORKS = {
    "resnet18": "convolutional", "mobilenet_v3": "convolutional, depthwise", "unet": "segmentation, transposed convolutions",
    "ssd": "detector", "yolo": "detector", "faster_rcnn": "detector of two stages", "bert_sdpa": "transformer",
    "gpt2_sdpa": "transformer with state", "llama_int4_asym": "transformer with state, weights of 4 bits",
    "gru_tagger": "recurrent", "scripted_loop": "recurrent, Loop and If", "resnet18_quantised": "quantised",
}  # fmt: skip
_DRAWS = 60


@dataclass
class Count:
    """What came of the trials of one network.

    Attributes:
        right: how many times the first divergence was the layer that is right.
        itself: how many of these named the layer that was changed, or that reads the weight.
        masked: how many of these named a later one, since the layer itself does not show it.
        pointed: how many of these also named the changed layer, as one in front whose tensors are not compared.
        wrong: the other trials, for people.
        unseen: changes that were drawn again, since nothing differs or the model cannot be run.
    """

    right: int = 0
    itself: int = 0
    masked: int = 0
    pointed: int = 0
    wrong: list[str] = field(default_factory=list)
    unseen: int = 0


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


def drawn(network: Network, rng: np.random.Generator, count: Count) -> tuple[Change, set[int]]:
    """A change that can be seen, and the layers that are right."""
    for _ in range(_DRAWS):
        change = attribute(network.model, rng) if rng.random() < 0.5 else weight(network.model, rng)
        if change is None:
            continue
        try:
            changed = record(change.model, network.runs)
        except (IrexecError, ArithmeticError):
            count.unseen += 1
            continue
        right = first_layers(network.model, network.base, changed)
        if right:
            return change, right
        count.unseen += 1
    raise AssertionError("no change can be seen")


def trial(network: Network, rng: np.random.Generator, renamed: bool, count: Count) -> None:
    """One change."""
    change, right = drawn(network, rng, count)
    nodes = list(change.model.walk())
    readers = {
        i
        for i, node in enumerate(nodes)
        if any(value is not None and value.node is nodes[change.layer] for value in node.inputs)
    }
    own = {change.layer} | (readers if nodes[change.layer].type == "Constant" else set())
    if renamed:
        rename(change.model, rng)
    found = compare(network.model, change.model, network.runs, CompareOptions())
    named = None if found.first is None else index_of(found, change.model, nodes)
    if named in right:
        count.right += 1
        count.itself += named in own
        count.masked += named not in own
    else:
        wanted = ", ".join(f"{nodes[i].name} ({nodes[i].type})" for i in sorted(right))
        first = "nothing" if named is None else f"{nodes[named].name} ({nodes[named].type})"
        count.wrong.append(f"{change.text}: expected {wanted}, found {first}")


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
