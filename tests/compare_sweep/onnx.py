"""ONNX against IR: an .onnx, run by ONNX Runtime if it is installed, and the IR that it is converted to with one thing changed."""

from __future__ import annotations

import atexit
import functools
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

import irexec
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.runtimes import Worker, open_runtime
from tests.compare_sweep import onnx_networks
from tests.compare_sweep.ir import Network, drawn, index_of, outcome, own, place_of
from tests.compare_sweep.truth import Place, first_layers, record
from tests.sweep.kind import Case, Kind, Outcome, temporary


def runtime() -> str:
    """What runs the .onnx."""
    return "onnxruntime" if importlib.util.find_spec("onnxruntime") else "onnx"


@functools.cache
def _worker() -> Worker:
    worker = Worker("onnxruntime")
    atexit.register(worker.close)
    return worker


class OnnxNetwork(Network):
    """A network with the .onnx that it came from, and the values of the IR that the .onnx has names for."""

    path: Path
    named: set[Place]

    @classmethod
    def built(cls, name: str, folder: Path) -> OnnxNetwork:
        """One of onnx_networks."""
        path = folder / f"{name}.onnx"
        made = onnx_networks.model(name)
        onnx.save(made, path)
        names = {output for node in made.graph.node for output in node.output}
        model = irexec.read_model(path)
        runs = [onnx_networks.inputs(name)]
        network = cls(model, runs, record(model, runs))
        network.path = path
        network.named = {
            (i, value.index)
            for i, node in enumerate(model.walk())
            for value in node.outputs
            if node in model.nodes and names & set(value.names)
        }
        return network


def trial(network: OnnxNetwork, rng: np.random.Generator) -> Outcome:
    """One change that a value with a name in the .onnx shows."""
    while True:
        change, _ = drawn(network, rng)
        right = first_layers(network.model, network.base, record(change.model, network.runs), only=network.named)
        if right:
            break
    nodes = list(change.model.walk())
    # One process of the runtime for all trials.
    with mock.patch("irexec.tools.compare.options.open_runtime", functools.partial(open_runtime, worker=_worker())):
        found = compare(network.path, change.model, network.runs, CompareOptions(a_runtime=runtime()))
    named = None if found.first is None else index_of(found, change.model, nodes)
    said = outcome(change, right, named, nodes)
    if said.fails or found.first is None or named in own(change, nodes):
        return said
    in_front = {place_of(suspect.layer, change.model, nodes) for suspect in found.first.between}
    return Outcome(f"{said.kind}, with the layer in front") if in_front & own(change, nodes) else said


class Sweep(Kind):
    """Changes of the IR of small ONNX models."""

    def names(self) -> list[str]:
        return list(onnx_networks.NETWORKS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """One change for each number."""
        with temporary() as folder:
            network = OnnxNetwork.built(name, folder)
            yield lambda number: [trial(network, np.random.default_rng(number))]
