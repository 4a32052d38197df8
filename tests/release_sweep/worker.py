"""Runs IRs with an old release of OpenVINO: a program of that release's Python, which has only openvino and numpy.

Requests and replies are pickles on stdin and stdout, each after its length in 8 bytes. A request is (xml, weights,
inputs): bytes, bytes, and arrays in the order of the inputs. A reply is (stage, message, arrays): the stage that failed,
"read", "compile" or "infer", with the message; or "done", with the outputs in order. An array is (type, shape, bytes),
because releases of NumPy do not read each other's pickles.
"""

import os
import pickle
import struct
import sys
import tempfile

import numpy as np

_STRUCT = struct.Struct("<q")
_FOLDER = tempfile.TemporaryDirectory()


class Failed(Exception):
    """A stage failed."""

    def __init__(self, stage, error):
        super().__init__(stage)
        self.stage = stage
        self.text = f"{type(error).__name__}: {error}"


class InferenceEngine:
    """Releases before 2022.1."""

    def __init__(self):
        from openvino.inference_engine import IECore

        self._core = IECore()

    def run(self, xml, weights, inputs):
        try:
            network = self._core.read_network(model=xml, weights=weights, init_from_buffer=True)
            names = _layers(xml)
        except Exception as error:
            raise Failed("read", error) from error
        try:
            loaded = self._core.load_network(network, "CPU", {"ENFORCE_BF16": "NO"})
        except Exception as error:
            raise Failed("compile", error) from error
        try:
            # Inputs that no layer reads are left out of the network.
            given = {name: inputs[i] for i, name in enumerate(names[0]) if name in network.input_info}
            found = loaded.infer(given)
            return [found[name] for name in names[1]]
        except Exception as error:
            raise Failed("infer", error) from error


def _layers(xml):
    """The names of inputs and outputs as that API has them: those of layers, in the order of the file."""
    import xml.etree.ElementTree as tree

    net = tree.fromstring(xml)
    layers = {layer.get("id"): layer for layer in net.find("layers")}
    inputs = [layer.get("name") for layer in layers.values() if layer.get("type") == "Parameter"]
    sources = {edge.get("to-layer"): edge for edge in net.find("edges")}
    outputs = []
    for layer in layers.values():
        if layer.get("type") == "Result":
            edge = sources[layer.get("id")]
            source = layers[edge.get("from-layer")]
            ports = [port.get("id") for port in source.find("output")]
            many = f".{ports.index(edge.get('from-port'))}" if len(ports) > 1 else ""
            outputs.append(source.get("name") + many)
    return inputs, outputs


class Runtime:
    """Releases from 2022.1 on."""

    def __init__(self):
        import openvino as module

        if not hasattr(module, "Core"):
            import openvino.runtime as module
        self._module, self._core = module, module.Core()

    def run(self, xml, weights, inputs):
        try:
            model = self._core.read_model(*_written(xml, weights))
        except Exception as error:
            raise Failed("read", error) from error
        try:
            compiled = self._core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        except Exception as error:
            raise Failed("compile", error) from error
        try:
            request = compiled.create_infer_request()
            request.infer(dict(enumerate(inputs)))
            return [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]
        except Exception as error:
            raise Failed("infer", error) from error


def _written(xml, weights):
    """The paths of two files: some releases free weights that are passed in memory."""
    files = {os.path.join(_FOLDER.name, name): data for name, data in (("one.xml", xml), ("one.bin", weights))}
    for path, data in files.items():
        with open(path, "wb") as file:
            file.write(data)
    return list(files)


def _runner():
    try:
        return Runtime()
    except ImportError:
        return InferenceEngine()


def main():
    """Answer requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "wb")
    # What a library prints must not come between the replies.
    os.dup2(2, 1)
    runner = _runner()
    while True:
        head = sys.stdin.buffer.read(_STRUCT.size)
        if len(head) < _STRUCT.size:
            return
        request = pickle.loads(sys.stdin.buffer.read(_STRUCT.unpack(head)[0]))
        xml, weights, arrays = request
        inputs = [np.frombuffer(data, kind).reshape(shape) for kind, shape, data in arrays]
        try:
            found = runner.run(xml, weights, inputs)
            reply = ("done", "", [(one.dtype.str, one.shape, one.tobytes()) for one in found])
        except Failed as failed:
            reply = (failed.stage, failed.text, [])
        data = pickle.dumps(reply, protocol=2)
        replies.write(_STRUCT.pack(len(data)) + data)
        replies.flush()


if __name__ == "__main__":
    main()
