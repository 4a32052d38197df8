"""Graphs and node data for Model Explorer: their JSON as it stands, and its own classes where it is installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.docs.matching import matches
from tests.docs.running import run_page
from tests.support.loops import endless_loop
from tests.support.paths import ROOT

CLASSIFIER = str(ROOT / "samples/digits/classifier.xml")


def _printed(words: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    assert run(words) == code
    return json.loads(capsys.readouterr().out)


def _graph(model: irexec.Model, folder: Path) -> dict[str, Any]:
    model.save(folder / "model.xml")
    assert run(["graph", str(folder / "model.xml"), "-o", str(folder / "graph.json"), "--findings"]) == 0
    (graph,) = json.loads((folder / "graph.json").read_text())["graphs"]
    return graph


def test_layers_are_in_the_groups_of_their_modules(tmp_path: Path) -> None:
    b = irexec.Builder("named")
    x = b.parameter("f32", (1, 4), "x")
    for block in ("block1", "block2"):
        for name, type in (("act", "Relu"), ("gate", "Sigmoid"), ("out", "Tanh")):
            x = b.emit(type, x, name=f"__module.encoder.{block}.{name}/aten::{name}/{type}")
    b.result(x)
    graph = _graph(b.model(), tmp_path)
    spaces = {node["label"]: node["namespace"] for node in graph["nodes"] if ".block2." in node["id"]}
    assert {spaces[name] for name in ("ReLU", "Sigmoid", "Tanh")} == {"encoder/block2"}
    by_id = {node["id"]: node for node in graph["nodes"]}
    for node in graph["nodes"]:
        for edge in node["incomingEdges"]:
            source = by_id[edge["sourceNodeId"]]
            output = source["outputsMetadata"][int(edge["sourceNodeOutputId"])]
            assert {"key": "shape", "value": "f32[1,4]"} in output["attrs"]


def test_blocks_of_one_name_are_groups_of_their_own(tmp_path: Path) -> None:
    """Blocks without modules are named by their layers; as one group they would be a circle in the viewer."""
    b = irexec.Builder("stages")
    x = b.parameter("f32", (1, 8), "x")
    for stage in range(3):
        for _ in range(3):
            y = x
            for _ in range(4):
                y = b.emit("Relu", b.emit("MatMul", y, np.ones((8, 8), np.float32)))
            x = b.emit("Add", x, y)
        x = b.emit("Tanh" if stage % 2 else "Sigmoid", b.emit("MatMul", x, np.ones((8, 8), np.float32)))
    b.result(x)
    graph = _graph(b.model(), tmp_path)
    spaces = {node["id"]: node["namespace"] for node in graph["nodes"]}
    assert len(set(spaces.values())) > 4 and not [name for name in spaces.values() if "\u2026" in name]
    edges = {
        (spaces[edge["sourceNodeId"]] or edge["sourceNodeId"], spaces[node["id"]] or node["id"])
        for node in graph["nodes"] for edge in node["incomingEdges"]
    }  # fmt: skip
    between = {(a, b) for a, b in edges if a != b}
    while sources := {a for a, _ in between} - {b for _, b in between}:
        between = {(a, b) for a, b in between if a not in sources}
    assert not between, "groups form a circle"


def test_bodies_are_groups_beside_their_layer(tmp_path: Path) -> None:
    graph = _graph(endless_loop(), tmp_path)
    ids = [node["id"] for node in graph["nodes"]]
    assert len(ids) == len(set(ids))
    loop = next(node for node in graph["nodes"] if node["label"] == "Loop")
    inside = [node for node in graph["nodes"] if node["namespace"].startswith(loop["id"].replace("/", "."))]
    assert inside
    assert all(node["id"].startswith(f"{loop['id']}/") for node in inside)
    assert loop not in inside


def test_findings_are_attributes(tmp_path: Path) -> None:
    model = irexec.read_model(CLASSIFIER)
    next(node for node in model.nodes if node.name == "maxpool2").attributes["kernel"] = "40,40"
    graph = _graph(model, tmp_path)
    attributes = next(node["attrs"] for node in graph["nodes"] if node["id"] == "maxpool2")
    assert any(one["key"] == "findings" and "error" in one["value"] for one in attributes)


def test_node_data_of_each_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = str(tmp_path / "changed.xml")
    assert run(["edit", CLASSIFIER, "-o", changed, "--set", "maxpool2.kernel=1,1"]) == 0
    capsys.readouterr()
    costs = _printed(["inspect", CLASSIFIER, "--cost", "--format", "model-explorer"], capsys)
    # A product of 16 channels of 3 x 3 for each of 64 positions, and so on.
    macs = {"conv0/Convolution": 16 * 9 * 64, "conv3/Convolution": 32 * 16 * 9 * 16, "dense6/MatMul": 128 * 10}
    assert {name: one["value"] for name, one in costs["results"].items()} == macs
    times = _printed(["profile", CLASSIFIER, "--format", "model-explorer"], capsys)
    assert all(one["value"] > 0 for one in times["results"].values())
    assert "conv0/Convolution" in times["results"]
    states = _printed(["compare", CLASSIFIER, changed, "--format", "model-explorer"], capsys, 1)
    words = {name: one["value"] for name, one in states["results"].items()}
    assert (words["relu1"], words["maxpool2"]) == ("agrees", "differs")
    states = _printed(["judge", CLASSIFIER, "--runtime", "reference", "--format", "model-explorer"], capsys)
    assert {one["value"] for one in states["results"].values()} == {"inside"}
    findings = _printed(["validate", "--format", "model-explorer", CLASSIFIER], capsys)
    assert findings["results"] == {}


@pytest.mark.parametrize(
    "words",
    [
        ["judge", CLASSIFIER, "--format", "model-explorer", "--json"],
        ["judge", CLASSIFIER, "--format", "model-explorer", "--inside"],
        ["compare", CLASSIFIER, "--format", "model-explorer", "--inside"],
        ["inspect", CLASSIFIER, "--format", "model-explorer"],
        ["validate", CLASSIFIER, CLASSIFIER, "--format", "model-explorer"],
    ],
)
def test_other_options_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert "model-explorer" in capsys.readouterr().err or "--format" in " ".join(words)


@pytest.mark.skipif(importlib.util.find_spec("model_explorer") is None, reason="needs model_explorer")
def test_the_examples_of_the_page_that_need_the_extra(tmp_path: Path) -> None:
    page = (ROOT / "docs/python/model-explorer.md").read_text("utf-8")
    results = list(run_page(page, tmp_path, {"model_explorer"}))
    assert len(results) == 3
    assert all(matches(result.shown or "", result.actual) for result in results)


@pytest.mark.skipif(importlib.util.find_spec("model_explorer") is None, reason="needs model_explorer")
def test_providers_give_node_data_of_the_graph() -> None:
    from irexec.integrations.model_explorer.main import PROVIDERS, IrexecAdapter, IrexecNodeData

    (graph,) = IrexecAdapter().convert(CLASSIFIER, {})["graphs"]
    ids = {node.id for node in graph.nodes}
    for name in PROVIDERS:
        if name == "irexec_verdicts" and importlib.util.find_spec("openvino") is None:
            continue
        found = IrexecNodeData().run(name, CLASSIFIER, graph.id, {}, graph)
        assert found.error == ""
        assert {key for one in found.result for key in one.results} <= ids
    assert "cannot be read" in IrexecNodeData().run("irexec_cost", "missing.xml", graph.id, {}, graph).error
