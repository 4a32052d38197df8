"""The twelve networks of the benchmark: built once from their published configurations, with random weights, into a folder.

    python -m tests.benchmarks.models [names] [--folder DIR] [--primitives] [--quantised]      needs openvino and onnx

``NAME.onnx`` is the network as an exporter writes it; ``NAME.xml`` and ``NAME.bin`` are what OpenVINO's converter makes of it, which
is layer by layer what it makes of the same network in PyTorch: attention is one operation, MatMul has its weights as transpose_b.
``--primitives`` also writes the transformers with attention as two MatMul and a Softmax, as converters did before.
``--quantised`` also writes INT8 of all but the language models by NNCF, which it needs.
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
from tests.benchmarks.engines import random_feeds
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
PRIMITIVES, QUANTISED = "_primitives", "_int8"
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


def variants(name: str) -> list[str]:
    """The names of a network and of what else is made of it."""
    made = [name, *([name + PRIMITIVES] if NETWORKS[name].attention else [])]
    return [*made, *([name + QUANTISED] if name not in ("bert_base", "gpt2") else [])]


def ensure(name: str, folder: Path, variant: str = "") -> Path:
    """The .xml of a network, built unless it exists already; written last, so that what exists is complete."""
    path = folder / f"{name}{variant}.xml"
    if path.exists():
        return path
    if variant == QUANTISED:
        save_quantised(ensure(name, folder), path, NETWORKS[name].attention)
        return path
    folder.mkdir(parents=True, exist_ok=True)
    made = graph(name)
    written = made.model().SerializeToString()
    save(folder / f"{name}.onnx", written)
    save(path.with_suffix(".json"), json.dumps({"runs": [[random_input(spec) for spec in made.inputs]]}).encode())
    save_ir(written, path, variant == PRIMITIVES)
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
    save_model(model, path)


def save_quantised(source: Path, path: Path, attention: bool) -> None:
    """Quantise with NNCF, whose ranges are those of three random inputs, and write the files."""
    import nncf
    import openvino as ov

    model = ov.Core().read_model(source)
    feeds = [random_feeds(source, seed) for seed in range(3)]
    rows = [[feed[next(iter(port.names & feed.keys()))] for port in model.inputs] for feed in feeds]
    kind = nncf.ModelType.TRANSFORMER if attention else None
    made = nncf.quantize(model, nncf.Dataset(rows), subset_size=len(rows), model_type=kind)
    save(path.with_suffix(".json"), source.with_suffix(".json").read_bytes())
    save_model(made, path)


def ensure_qdq(name: str, folder: Path) -> None:
    """The .onnx of a network that ONNX Runtime quantises, beside the files of NNCF: QDQ, with a scale for each channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source, path = folder / f"{name}.onnx", folder / f"{name}{QUANTISED}.onnx"
    if path.exists():
        return

    class Feeds(CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter([random_feeds(source.with_suffix(".xml"), seed) for seed in range(3)])

        def get_next(self) -> Any:
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory(dir=folder) as room:
        prepared, made = Path(room) / "prepared.onnx", Path(room) / path.name
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, made, Feeds(), QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8)
        made.replace(path)


def save_model(model: Any, path: Path) -> None:
    """Write the .bin, then the .xml."""
    import openvino as ov

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
    parser.add_argument("--quantised", action="store_true", help="also in INT8, by NNCF")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NETWORKS):
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    for name in arguments.names or NETWORKS:
        start = time.perf_counter()
        wanted = {"", *([PRIMITIVES] * arguments.primitives), *([QUANTISED] * arguments.quantised)}
        for variant in sorted(wanted & {one.removeprefix(name) for one in variants(name)}):
            ensure(name, arguments.folder, variant)
        made = graph(name)
        print(
            f"{name}: {made.parameters / 1e6:.3f} M parameters, {made.macs / 1e9:.3f} GMAC, {time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
