"""ONNX against IR: an .onnx, run by ONNX Runtime if it is installed, and the IR that it is converted to with one thing changed."""

from __future__ import annotations

import argparse
import atexit
import functools
import importlib.util
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

import irexec
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.runtimes import Worker, open_runtime
from tests.compare_sweep import onnx_networks
from tests.compare_sweep.ir import Count, Network, drawn, index_of, place_of
from tests.compare_sweep.report import print_line
from tests.compare_sweep.truth import Place, first_layers, record


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


def trial(network: OnnxNetwork, rng: np.random.Generator, count: Count) -> None:
    """One change."""
    change, _ = drawn(network, rng, count)
    nodes = list(change.model.walk())
    right = first_layers(network.model, network.base, record(change.model, network.runs), only=network.named)
    if not right:
        count.unseen += 1
        return trial(network, rng, count)
    readers = {
        i
        for i, node in enumerate(nodes)
        if any(value is not None and value.node is nodes[change.layer] for value in node.inputs)
    }
    own = {change.layer} | (readers if nodes[change.layer].type == "Constant" else set())
    # One process of the runtime for all trials.
    with mock.patch("irexec.tools.compare.options.open_runtime", functools.partial(open_runtime, worker=_worker())):
        found = compare(network.path, change.model, network.runs, CompareOptions(a_runtime=runtime()))
    named = None if found.first is None else index_of(found, change.model, nodes)
    if named not in right or found.first is None:
        wanted = ", ".join(f"{nodes[i].name} ({nodes[i].type})" for i in sorted(right))
        first = "nothing" if named is None else f"{nodes[named].name} ({nodes[named].type})"
        count.wrong.append(f"{change.text}: expected {wanted}, found {first}")
        return None
    count.right += 1
    count.itself += named in own
    count.masked += named not in own
    in_front = {place_of(suspect.layer, change.model, nodes) for suspect in found.first.between}
    count.pointed += named not in own and bool(in_front & own)
    return None


def sweep(arguments: argparse.Namespace) -> int:
    """Print a line for each network; 1 if a layer was not found."""
    names = arguments.networks.split(",") if arguments.networks else list(onnx_networks.NETWORKS)
    right = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            start = time.monotonic()
            network, count = OnnxNetwork.built(name, Path(folder)), Count()
            for seed in range(arguments.seed, arguments.seed + arguments.trials):
                trial(network, np.random.default_rng(seed), count)
            print_line(name, f"run by {runtime()}", count, time.monotonic() - start)
            right, wrong = right + count.right, wrong + len(count.wrong)
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong else 0
