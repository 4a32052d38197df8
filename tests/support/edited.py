"""Networks that are edited: what an edit leaves is validated, loaded and run by OpenVINO, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from tests.support.networks import difference, feeds, unpacked

NAMES = (
    "resnet18", "mobilenet_v3", "unet", "yolo", "convnext", "swin", "vit_sdpa", "bert_sdpa", "gpt2_sdpa", "t5", "rnn_tagger", "whisper_encoder", "segformer",
)  # fmt: skip
DEFAULT = ("bert_sdpa",)
"""The network of the default tier."""
IMAGES = (
    "resnet18", "mobilenet_v3", "unet", "yolo", "convnext", "swin", "vit_sdpa", "segformer", "ssd", "super_resolution", "resnet50",
)  # fmt: skip
"""Networks of images, NCHW."""
TOLERANCE = 3e-5


class Original:
    """A network as it was, and the inputs that it is run on."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.path = unpacked(name, folder)
        model = irexec.read_model(self.path)
        self.compiled = irexec.compile_model(model, precision="as-written")
        self.feed = dict(zip([port.name for port in model.inputs], feeds(self.path, model.inputs)[0], strict=True))
        self.outputs = [port.name for port in model.outputs]

    def model(self) -> irexec.Model:
        """The model, read anew."""
        return irexec.read_model(self.path)

    def values(self, *tensors: str, feed: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """The values of tensors; of all outputs unless any are named."""
        wanted = list(tensors) or self.outputs
        found = self.compiled.session().run(dict(feed or self.feed), wanted)
        return [found[name] for name in wanted]

    def middle(self, *, floats: bool = True) -> irexec.Node:
        """A layer in the middle of the network, whose only output is a float tensor and depends on the inputs."""
        model = self.compiled.model
        computed = {node for node in model.parameters if node.type == "Parameter"}
        found = []
        for node in model.nodes:
            if any(value is not None and value.node in computed for value in node.inputs):
                computed.add(node)
                if len(node.outputs) == 1 and node.outputs[0].fact.element in (irexec.f32, irexec.f16):
                    found.append(node)
        return found[len(found) // 2]


def saved(model: irexec.Model, folder: Path, name: str = "edited") -> Path:
    """The .xml of a model in which ``validate`` finds no error."""
    assert [finding for finding in irexec.validate(model) if finding.severity == "error"] == []
    path = folder / f"{name}.xml"
    model.save(path)
    again = irexec.read_model(path)
    assert [finding for finding in irexec.validate(again) if finding.severity == "error"] == []
    return path


def by_openvino(path: Path, feed: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs that OpenVINO computes of a saved model at f32, with inputs in order."""
    ov = pytest.importorskip("openvino")
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    )
    request = compiled.create_infer_request()
    request.infer(list(feed))
    return [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]


def check_values(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError unless arrays agree pair by pair."""
    assert len(found) == len(expected)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.shape == other.shape, f"output {index}: {one.shape}, expected {other.shape}"
        assert difference(one, other) < tolerance, f"output {index} differs by {difference(one, other):.3g}"


def content(model: irexec.Model) -> tuple[bytes, bytes]:
    """The bytes of both files of a model."""
    return io.write_text(model)
