"""Make the sample IRs from the trained ONNX models.

    pip install '.[onnx]'
    python samples/digits/make_ir.py [FOLDER]

They are written to FOLDER, or else to build/digits. classifier.xml and denoiser.xml are converted;
denoiser_onednn.xml is the denoiser with oneDNN Graph's ConvTranspose, channels last, in place of
GroupConvolutionBackpropData; damaged.xml is the classifier with a few things wrong.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import irexec

HERE = Path(__file__).parent
UP = "GroupConvolutionBackpropData"


def numbers(node: irexec.Node, name: str) -> list[int]:
    return [int(part) for part in node.attributes[name].split(",")]


def with_conv_transpose(model: irexec.Model) -> irexec.Model:
    """The same network with ConvTranspose in NXC / XIO for every grouped transposed convolution."""
    builder = irexec.Builder(f"{model.name}, oneDNN")
    made: dict[irexec.Value, irexec.Value] = {}
    weights = irexec.compile_model(model).run(
        {port.name: np.zeros(port.shape, np.float32) for port in model.inputs},
        [node.inputs[1].node.name for node in model.nodes if node.type == UP],
    )
    for node in model.nodes:
        inputs = [made[value] for value in node.inputs if value is not None]
        if node.type == "Result":
            builder.result(inputs[0], node.name)
        elif node.type == UP:
            made[node.outputs[0]] = channels_last(builder, node, inputs[0], weights[node.inputs[1].node.name])
        else:
            made.update(zip(node.outputs, builder.clone_node(node, *inputs), strict=True))
    builder.drop_unused()
    return builder.model()


def channels_last(builder: irexec.Builder, node: irexec.Node, x: irexec.Value, weights: np.ndarray) -> irexec.Value:
    """One transposed convolution; its weights (G, I/G, O/G, k, k) become (k, k, I, O/G)."""
    groups, inputs, outputs, *kernel = weights.shape
    xio = weights.reshape(groups * inputs, outputs, *kernel).transpose(2, 3, 0, 1)
    last = builder.emit("Transpose", x, [0, 2, 3, 1], name=f"{node.name}/last")
    y = builder.emit(
        "ConvTranspose", last, builder.constant(np.ascontiguousarray(xio)), version="onednn", name=node.name,
        data_format="NXC",
        filter_format="XIO", groups=groups, strides=numbers(node, "strides"), pads_begin=numbers(node, "pads_begin"),
        pads_end=numbers(node, "pads_end"), dilations=numbers(node, "dilations"),
    )  # fmt: skip
    return builder.emit("Transpose", y, [0, 3, 1, 2], name=f"{node.name}/first", names=node.outputs[0].names)


def damaged(text: str) -> str:
    """A wrong dim, a missing attribute, an edge to nothing and a constant of the wrong type."""
    text = re.sub(r"(<port id=\"2\" precision=\"FP32\"[^>]*>\s*<dim>1</dim>\s*<dim>)16", r"\g<1>17", text, count=1)
    text = re.sub(r' strides="1, 1"', "", text, count=1)
    text = re.sub(r'(to-layer=")(\d+)(" to-port="1")', r"\g<1>999\3", text, count=1)
    return text.replace('element_type="f32" shape="128, 10"', 'element_type="f64" shape="128, 10"', 1)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    classifier = irexec.convert(HERE / "classifier.onnx")
    irexec.save_model(classifier, folder / "classifier.xml")
    denoiser = irexec.convert(HERE / "denoiser.onnx")
    irexec.save_model(denoiser, folder / "denoiser.xml")
    irexec.save_model(with_conv_transpose(denoiser), folder / "denoiser_onednn.xml")
    text = (folder / "classifier.xml").read_text(encoding="utf-8")
    (folder / "damaged.xml").write_text(damaged(text), encoding="utf-8")
    (folder / "damaged.bin").write_bytes((folder / "classifier.bin").read_bytes())


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit("usage: python make_ir.py [FOLDER], by default build/digits")
    main(Path(*sys.argv[1:] or ["build/digits"]))
