"""Write docs/inside-openvino.md: what OpenVINO's CPU plugin makes of ten recorded networks, with pictures.

    python -m tests.networks.inside

It needs openvino. Of each network the picture shows the layer that stands for most kinds of layers of the source, and these.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import irexec
from irexec.ir.graph import Node
from irexec.tools.graph import draw, write_graph
from irexec.tools.inside import Inside
from tests.support.networks import unpacked
from tests.support.paths import ROOT

NETWORKS = {
    "resnet50": "ResNet-50", "mobilenet_v3": "MobileNetV3", "yolo": "YOLO", "unet": "U-Net", "vit_sdpa": "ViT",
    "bert_sdpa": "BERT", "llama_int4_asym": "Llama, weights of 4 bits", "whisper_encoder": "Whisper's encoder",
    "gru_tagger": "a tagger with GRU", "resnet18_quantised": "ResNet-18, quantised by NNCF",
}  # fmt: skip
_PAGE, _PICTURES = ROOT / "docs" / "inside-openvino.md", ROOT / "docs" / "_static" / "inside"
_NO_LAYERS = ("Constant", "Parameter", "Result")
_SHOWN = {
    "MatMul",
    "Convolution",
    "GroupConvolution",
    "ScaledDotProductAttention",
    "FakeQuantize",
    "MVN",
    "Swish",
    "Power",
}
"""Types of layers that a picture is about: what is done with sizes and masks is none."""
_REWRITES, _LARGEST = 6, 16
_WORDS = {
    "FullyConnected": "a product with constant weights, with its bias",
    "FullyConnectedCompressed": "the same with weights of few bits, which are unpacked while they are multiplied",
    "FullyConnectedQuantizedLegacy": "the same in integers",
    "Subgraph": "layers that are compiled as one kernel",
    "RMS": "a normalization by the root of the mean square",
    "RoPE": "a rotary position embedding",
    "ScaledDotProductAttentionWithKVCache": "attention with its cache",
    "GRUSequence": "a recurrent layer over all its steps",
    "SwishCPU": "Swish with a constant factor",
    "NormalizeL2": "a normalization by the Euclidean norm",
}
"""Operations of the plugin in words; those that occur are explained on the page."""


def main() -> None:
    """Write the page and the pictures anew."""
    shutil.rmtree(_PICTURES, ignore_errors=True)
    _PICTURES.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        made = {name: _made(name, Path(folder)) for name in NETWORKS}
    version = next(iter(made.values())).version.partition("-")[0]
    pictures = [text for name, found in made.items() for text in _pictured(name, found)]
    operations = {name for found in made.values() for name in found.after}
    lines = [
        "# Inside OpenVINO: ten networks", "",
        f"What OpenVINO {version} makes of ten networks on a CPU before it runs them, as [`irexec inside`](commands/inside.md) shows it. Layers are",
        "counted without constants, inputs and results; layers in subgraphs count. `python -m tests.networks.inside` writes this page.", "",
        "| network | layers | inside | operations whose numbers change most |", "| --- | ---: | ---: | --- |",
        *(row(name, found) for name, found in made.items()), "",
        *(f"- `{name}`: {text}." for name, text in _WORDS.items() if name in operations), "",
        *pictures,
    ]  # fmt: skip
    _PAGE.write_text("\n".join(lines).rstrip() + "\n", "utf-8")


def _made(name: str, folder: Path) -> Inside:
    path = unpacked(name, folder)
    found = irexec.inside(path)
    source = irexec.read_model(path)
    types = {node.name: node.type for node in source.nodes}
    layer, names = max(
        _stands_for(found, source), key=lambda one: len({types[name] for name in one[1]}), default=("", [])
    )
    if layer:
        for label, model, shown, hops in (("before", source, names, 0), ("inside", found.model, [layer], 1)):
            write_graph(draw(model, around=shown, hops=hops), str(_PICTURES / f"{name}-{label}.svg"), columns=1)
    return found


def _stands_for(found: Inside, source: irexec.Model) -> Iterator[tuple[str, list[str]]]:
    """Layers of a transformed model, each with the layers of the source that it stands for."""
    own: dict[str, Node] = {node.name: node for node in source.nodes if node.type not in _NO_LAYERS}
    for node in found.model.nodes:
        names = [name for name in found.fused.get(node.name, ()) if name in own]
        is_shown = not _SHOWN.isdisjoint(own[name].type for name in names)
        if node.type not in _NO_LAYERS and 1 < len(names) <= _LARGEST and is_shown:
            yield node.name, names


def row(name: str, found: Inside) -> str:
    """The row of a network."""
    before, after = (
        {one: count for one, count in counts.items() if one not in _NO_LAYERS} for counts in (found.before, found.after)
    )
    gaps = {one: after.get(one, 0) - before.get(one, 0) for one in {*before, *after}}
    order = sorted((one for one in gaps if gaps[one]), key=lambda one: (-abs(gaps[one]), one))[:_REWRITES]
    texts = ", ".join(f"{one} {before.get(one, 0)} → {after.get(one, 0)}" for one in order)
    return f"| {NETWORKS[name]} | {sum(before.values())} | {sum(after.values())} | {texts} |"


def _pictured(name: str, found: Inside) -> Iterator[str]:
    if (_PICTURES / f"{name}-before.svg").exists():
        title = NETWORKS[name][0].upper() + NETWORKS[name][1:]
        yield f"## {title}"
        yield ""
        yield "| layers of the source | what the plugin runs in their place, in published operations |"
        yield "| --- | --- |"
        images = (f"![{title}, {label}](_static/inside/{name}-{label}.svg)" for label in ("before", "inside"))
        yield f"| {' | '.join(images)} |"
        yield ""


if __name__ == "__main__":
    main()
