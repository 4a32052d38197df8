"""Fake releases of OpenVINO: environments whose Python is this one, with a module openvino that runs Add and ReLU.

A release computes ReLU as Abs, or 0 of NaN, or refuses every model or those with a ReLU, or ends, as its fault says.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_MODULE = """
import os
from xml.etree import ElementTree
import numpy as np

FAULT = os.environ["FAKE_FAULT"]

def get_version():
    return os.environ["FAKE_VERSION"]

class Port:
    def __init__(self, name):
        self.name = name
    def get_names(self):
        return {self.name}
    def get_node(self):
        return self
    def get_friendly_name(self):
        return self.name

class Precision:
    def get_type_name(self):
        return "f32"

class Core:
    def __init__(self):
        self.loaded = False
    def get_versions(self, device):
        self.loaded = True
    def set_property(self, device, properties):
        if self.loaded and "KV_CACHE_PRECISION" in properties:
            raise RuntimeError("not a property of this release")
    def read_model(self, path):
        if FAULT == "refuses":
            raise RuntimeError("unsupported opset")
        if FAULT == "ends":
            os._exit(3)
        model = Model(ElementTree.parse(path).getroot())
        if FAULT == "no ReLU" and model.of("ReLU"):
            raise RuntimeError("ReLU is not supported")
        return model
    def compile_model(self, model, device, properties):
        assert "KV_CACHE_PRECISION" not in properties and properties["INFERENCE_PRECISION_HINT"] == "f32"
        return model

COMPUTED = {
    "Add": np.add,
    "ReLU": {"relu": np.abs, "drops": lambda x: np.fmax(x, 0)}.get(FAULT, lambda x: np.maximum(x, 0)),
    "Result": lambda x: x,
}

class Model:
    def __init__(self, net):
        self.layers = {layer.get("id"): layer for layer in net.find("layers")}
        self.sources = {}
        for edge in net.find("edges"):
            self.sources.setdefault(edge.get("to-layer"), []).append(edge.get("from-layer"))
        self.inputs = [Port(layer.get("name")) for layer in self.of("Parameter")]
        self.outputs = self.of("Result")
    def of(self, kind):
        return [layer for layer in self.layers.values() if layer.get("type") == kind]
    def get_property(self, name):
        return ["INFERENCE_PRECISION_HINT"] if name == "SUPPORTED_PROPERTIES" else Precision()
    def create_infer_request(self):
        return self
    def start_async(self, feeds):
        self.found = {layer.get("id"): feeds[i] for i, layer in enumerate(self.of("Parameter"))}
    def wait(self):
        pass
    def value(self, layer):
        if layer not in self.found:
            inputs = [self.value(source) for source in self.sources[layer]]
            self.found[layer] = COMPUTED[self.layers[layer].get("type")](*inputs)
        return self.found[layer]
    def get_output_tensor(self, i):
        self.data = self.value(self.outputs[i].get("id"))
        return self
"""


def fake_releases(folder: Path, faults: Mapping[str, str]) -> Path:
    """Write releases of OpenVINO into a folder, each with its fault by version: "", relu, drops, refuses, no ReLU,
    ends."""
    module = folder / "modules" / "openvino" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text(_MODULE)
    for version, fault in faults.items():
        python = folder / f"openvino-{version}" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(
            f"#!/bin/sh\nFAKE_FAULT='{fault}' FAKE_VERSION={version} PYTHONPATH='{module.parent.parent}' "
            f"exec '{sys.executable}' \"$@\"\n"
        )
        python.chmod(0o755)
    return folder
