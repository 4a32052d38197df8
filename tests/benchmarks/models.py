"""The twelve networks of the benchmark: built once from their published configurations, with random weights, into a folder.

    python -m tests.benchmarks.models [names] [--folder DIR] [--primitives]      needs openvino and onnx

``NAME.onnx`` is the network as an exporter writes it; ``NAME.xml`` and ``NAME.bin`` are what OpenVINO's converter makes of it, which
is layer by layer what it makes of the same network in PyTorch: attention is one operation, MatMul has its weights as transpose_b.
``--primitives`` also writes the transformers with attention as two MatMul and a Softmax, as converters did before.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import convolutional, transformers
from tests.benchmarks.onnx_graph import Graph, Input


@dataclass(frozen=True)
class Published:
    """A network, and what is stated of it.

    Attributes:
        title: name and input, as tables show them.
        build: fills a graph.
        parameters: millions of parameters.
        gmacs: thousand millions of multiply-accumulates.
        source: where both figures come from.
        attention: whether it is a transformer.
    """

    title: str
    build: Callable[[Graph], None]
    parameters: float
    gmacs: float
    source: str
    attention: bool = False


NETWORKS = {
    "resnet50": Published("ResNet-50", convolutional.resnet50, 25.557, 4.09, "torchvision"),
    "mobilenet_v2": Published("MobileNetV2", convolutional.mobilenet_v2, 3.505, 0.301, "torchvision"),
    "mobilenet_v3": Published("MobileNetV3-Large", convolutional.mobilenet_v3, 5.483, 0.217, "torchvision"),
    "efficientnet_b0": Published("EfficientNet-B0", convolutional.efficientnet_b0, 5.289, 0.386, "torchvision"),
    "vgg16": Published("VGG-16", convolutional.vgg16, 138.358, 15.47, "torchvision"),
    "vit_b16": Published("ViT-B/16", transformers.vit_b16, 86.568, 17.56, "torchvision", True),
    "unet": Published("U-Net 256", convolutional.unet, 7.763, 12.07, "brain-segmentation-pytorch; multiply-accumulates by hand"),
    "dcgan": Published("DCGAN 256", convolutional.dcgan, 12.816, 0.698, "by hand from the layers of the paper"),
    "yolov8n": Published("YOLOv8n 640", convolutional.yolov8n, 3.152, 4.35, "Ultralytics: 8.7 GFLOP"),
    "bert_base": Published("BERT-base 128", transformers.bert_base, 109.482, 11.25, "Hugging Face; Jiao et al. 2019: 22.5 GFLOP", True),
    "gpt2": Published("GPT-2 64", transformers.gpt2, 124.440, 7.98, "Hugging Face; multiply-accumulates by hand", True),
    "whisper_tiny_encoder": Published("Whisper-tiny encoder", transformers.whisper_tiny_encoder, 8.208, 18.47, "by hand from the configuration", True),
}  # fmt: skip
PRIMITIVES = "_primitives"
# To be raised when a network changes: models that were built before are not found then.
EDITION = 1


def graph(name: str) -> Graph:
    """The graph of a network, its weights not drawn yet."""
    made = Graph(name)
    NETWORKS[name].build(made)
    return made


def default_folder() -> Path:
    """A directory in the user's cache directory, or in the temporary one where there is none."""
    cache = Path.home() / ".cache"
    base = os.environ.get("XDG_CACHE_HOME") or (cache if cache.is_dir() else tempfile.gettempdir())
    return Path(base) / f"irexec-benchmarks-{EDITION}"


def ensure(name: str, folder: Path, primitives: bool = False) -> Path:
    """The .xml of a network, built unless it exists already; written last, so that what exists is complete."""
    path = folder / f"{name}{PRIMITIVES if primitives else ''}.xml"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    made = graph(name)
    written = made.model().SerializeToString()
    save(folder / f"{name}.onnx", written)
    save(path.with_suffix(".json"), json.dumps({"runs": [[random_input(spec) for spec in made.inputs]]}).encode())
    save_ir(written, path, primitives)
    return path


def random_input(spec: Input) -> dict[str, Any]:
    """How an input is filled, as tests/support/networks.py reads it, with the input's name."""
    return {
        "name": spec.name, "integer": spec.integer, "shape": spec.shape, "low": spec.low, "high": spec.high,
        "values": spec.values,
    }  # fmt: skip


def save(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def save_ir(onnx_model: bytes, path: Path, primitives: bool) -> None:
    """Convert with OpenVINO and write the .bin, then the .xml."""
    import io

    import openvino as ov

    model = ov.convert_model(io.BytesIO(onnx_model))
    if primitives:
        split_attention(model)
    part = path.with_name(f"{path.stem}.part.xml")
    ov.save_model(model, part, compress_to_fp16=False)
    part.with_suffix(".bin").replace(path.with_suffix(".bin"))
    part.replace(path)


def split_attention(model: Any) -> None:
    """Write every ScaledDotProductAttention as MatMul, Multiply, Add of the mask, Softmax, MatMul."""
    from openvino import opset13

    for node in model.get_ordered_ops():
        if node.get_type_name() == "ScaledDotProductAttention":
            q, k, v, mask, scale = (node.input_value(i) for i in range(5))
            scores = opset13.multiply(opset13.matmul(q, k, False, True), scale)
            if len(mask.get_partial_shape()):  # a scalar stands for no mask
                scores = opset13.add(scores, mask)
            seen = opset13.matmul(opset13.softmax(scores, -1), v, False, False)
            for consumer in node.output(0).get_target_inputs():
                consumer.replace_source_output(seen.output(0))
    model.validate_nodes_and_infer_types()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}; all unless given")
    parser.add_argument("--folder", type=Path, default=default_folder())
    parser.add_argument("--primitives", action="store_true", help="transformers also without ScaledDotProductAttention")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NETWORKS):
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    for name in arguments.names or NETWORKS:
        start = time.perf_counter()
        ensure(name, arguments.folder)
        if arguments.primitives and NETWORKS[name].attention:
            ensure(name, arguments.folder, primitives=True)
        made = graph(name)
        print(
            f"{name}: {made.parameters / 1e6:.3f} M parameters, {made.macs / 1e9:.3f} GMAC, {time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
