"""Runs models with a release of OpenVINO or ONNX Runtime: a program of that release's Python, which has only the
release and NumPy. It is started by path and must run in Python 3.7.

Requests and answers are those of irexec.tools.engines.runtimes.worker: a line of JSON each.
"""

from __future__ import annotations

import json
import os
import sys
import xml.etree.ElementTree as tree
from collections.abc import Mapping
from typing import Any

import numpy as np


class OpenVINO:
    """Runs of a model, with state from run to run. Inputs have names of Parameters or tensors."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        module, self.version = openvino()
        core = module.Core()
        model = core.read_model(job["model"])
        self.index = {
            name: i
            for i, port in enumerate(model.inputs)
            for name in [*port.get_names(), port.get_node().get_friendly_name()]
        }
        properties = dict(known(module, job["device"], job["preferred"]), PERFORMANCE_HINT="LATENCY")
        core.get_versions(job["device"])
        if "LP_TRANSFORMS_MODE" in properties:
            # 2022.3 looks for "NO" among the properties of the plugin alone, and computes in 8 bits without it.
            core.set_property(job["device"], {"LP_TRANSFORMS_MODE": properties["LP_TRANSFORMS_MODE"]})
        properties.update(job["options"])
        if job["threads"]:
            properties["INFERENCE_NUM_THREADS"] = job["threads"]
        compiled = core.compile_model(model, job["device"], properties)
        self.request, self.count = compiled.create_infer_request(), len(compiled.outputs)
        self.precision = precision_of(compiled, properties)

    def __call__(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        given = {self.index[name]: array for name, array in feeds.items()}
        for index in [i for i, array in given.items() if array.shape == () and array.dtype.kind not in "OSU"]:
            # The bits of a bf16 are f16 here, which infer takes for arrays, and not for a scalar. With NumPy 2 release
            # 2023.3 reads other memory in place of a scalar. The data of strings are a copy.
            tensor = self.request.get_input_tensor(index)
            if tuple(tensor.shape) == ():
                tensor.data[...] = given.pop(index)
        # With one thread, ``infer`` loses the errors of layers since 2025.2.
        self.request.start_async(given)
        self.request.wait()
        return [np.array(self.request.get_output_tensor(i).data) for i in range(self.count)]


class InferenceEngine:
    """Runs of a model in a release of OpenVINO before 2022.1. Inputs have names of Parameters."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        from openvino.inference_engine import IECore, get_version

        core, self.version = IECore(), get_version()
        network = core.read_network(job["model"])
        # Inputs that no layer reads are left out of the network.
        self.inputs, self.outputs = set(network.input_info), layer_outputs(job["model"])
        properties = dict({"ENFORCE_BF16": "NO"}, **job["options"])
        self.network = core.load_network(network, job["device"], properties)
        self.precision = "f32" if properties["ENFORCE_BF16"] == "NO" else ""

    def __call__(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        found = self.network.infer({name: array for name, array in feeds.items() if name in self.inputs})
        return [found[name] for name in self.outputs]


def layer_outputs(path: str) -> list[str]:
    """The names of outputs in releases before 2022.1: those of the layers that give them, in the order of the file."""
    net = tree.parse(path).getroot()
    layers = {layer.get("id"): layer for layer in net.iterfind("layers/layer")}
    sources = {edge.get("to-layer"): edge for edge in net.iterfind("edges/edge")}
    outputs = []
    for number in [number for number, layer in layers.items() if layer.get("type") == "Result"]:
        source = layers[sources[number].get("from-layer")]
        ports = [port.get("id") for port in source.iterfind("output/port")]
        of_many = f".{ports.index(sources[number].get('from-port'))}" if len(ports) > 1 else ""
        outputs.append(f"{source.get('name')}{of_many}")
    return outputs


def openvino_runs(job: Mapping[str, Any]) -> Any:
    """Runs of a model in OpenVINO, by the API that the release has."""
    try:
        return OpenVINO(job)
    except ImportError:
        return InferenceEngine(job)


def openvino() -> tuple[Any, str]:
    """The module with Core, and the version of the release."""
    import openvino as module

    if not hasattr(module, "Core"):
        import openvino.runtime as module
    return module, module.get_version()


def known(module: Any, device: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that the plugin of the release takes: each is tried on a Core of its own."""
    found = {}
    for name, value in properties.items():
        core = module.Core()
        # Before the plugin is loaded, any property is taken, and the plugin fails to load with a wrong one.
        core.get_versions(device)
        try:
            core.set_property(device, {name: value})
        except Exception:
            # Releases say in different ways that they do not have a property.
            continue
        found[name] = value
    return found


def precision_of(compiled: Any, properties: Mapping[str, str]) -> str:
    """The type that the plugin computes floats in; "" where it does not say."""
    name = "INFERENCE_PRECISION_HINT"
    if name in properties:
        # 2022.1 takes the property, and cannot return it.
        return properties[name]
    if name in compiled.get_property("SUPPORTED_PROPERTIES"):
        return str(compiled.get_property(name).get_type_name())
    return ""


class ONNXRuntime:
    """Runs of a model. Inputs have the names of the model."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if job["threads"]:
            options.intra_op_num_threads = job["threads"]
        for entry in {**job["preferred"], **job["options"]}.items():
            options.add_session_config_entry(*entry)
        self.version, self.precision = onnxruntime.__version__, ""
        self.session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])

    def __call__(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        return list(self.session.run(None, feeds))


ENGINES: dict[str, Any] = {"openvino": openvino_runs, "onnxruntime": ONNXRuntime}


def served(request: Mapping[str, Any]) -> dict[str, str]:
    """The answer to a request, after its runs."""
    job = request["job"]
    run = ENGINES[job["engine"]](job)
    for files in request["runs"]:
        with np.load(files["inputs"]) as read:
            feeds = {name: read[name] for name in read.files}
        given = run(feeds)
        with open(files["outputs"], "wb") as file:
            np.savez(file, **{str(i): array for i, array in enumerate(given)})
    return {"version": run.version, "precision": run.precision}


def main() -> None:
    """Serve requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    # Text that a library prints must not come between the answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = served(json.loads(line))
        except Exception as error:
            # Engines raise errors of their own, without a common base.
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
