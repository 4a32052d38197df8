"""Write the classifier as an IR of version 5, as Model Optimizer wrote them in 2019: classifier_v5.xml and its .bin.

    python samples/digits/make_old_ir.py [FOLDER]

They are written to FOLDER, or else to build/digits. Weights are in the blobs of their layers, ports are numbered
through, and there are neither parameters nor results: every output that no layer reads is one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import irexec

HERE = Path(__file__).parent
WINDOW = 'dilations="1,1" group="1" kernel="3,3" pads_begin="1,1" pads_end="1,1" strides="1,1"'
POOL = (
    'exclude-pad="true" kernel="2,2" pads_begin="0,0" pads_end="0,0" pool-method="max" rounding_type="floor" '
    'strides="2,2"'
)
LAYERS = [
    ("image", "Input", "", (1, 1, 8, 8), None),
    ("conv0", "Convolution", f'{WINDOW} output="16"', (1, 16, 8, 8), "conv0"),
    ("relu1", "ReLU", 'negative_slope="0.0"', (1, 16, 8, 8), None),
    ("maxpool2", "Pooling", POOL, (1, 16, 4, 4), None),
    ("conv3", "Convolution", f'{WINDOW} output="32"', (1, 32, 4, 4), "conv3"),
    ("relu4", "ReLU", 'negative_slope="0.0"', (1, 32, 4, 4), None),
    ("maxpool5", "Pooling", POOL, (1, 32, 2, 2), None),
    ("dense6", "FullyConnected", 'out-size="10"', (1, 10), "dense6"),
    ("probabilities", "SoftMax", 'axis="1"', (1, 10), None),
]


def port(number: int, shape: tuple[int, ...]) -> str:
    dims = "".join(f"\t\t\t\t\t<dim>{size}</dim>\n" for size in shape)
    return f'\t\t\t\t<port id="{number}">\n{dims}\t\t\t\t</port>\n'


def weights(model: irexec.Model, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The weights, for a FullyConnected with an output in each row, and the biases."""
    names = [f"{name}.w", f"{name}.b" if name == "dense6" else f"{name}.b_1"]
    found = irexec.compile_model(model).run({"image": np.zeros((1, 1, 8, 8), np.float32)}, names)
    filters, biases = (found[key] for key in names)
    return filters.T if filters.ndim == 2 else filters, biases.reshape(-1)


def main(folder: Path) -> None:
    model = irexec.read_model(HERE / "classifier.xml")
    text, data, shape = "", b"", (1, 1, 8, 8)
    for i, (name, kind, attributes, output, blobs) in enumerate(LAYERS):
        text += f'\t\t<layer id="{i}" name="{name}" precision="FP32" type="{kind}">\n'
        text += f"\t\t\t<data {attributes}/>\n" if attributes else ""
        text += f"\t\t\t<input>\n{port(0, shape)}\t\t\t</input>\n" if i else ""
        # The ports of weights and biases count, although no edge leads to them.
        text += f"\t\t\t<output>\n{port(3 if blobs else int(i > 0), output)}\t\t\t</output>\n"
        if blobs:
            text += "\t\t\t<blobs>\n"
            for tag, array in zip(("weights", "biases"), weights(model, blobs), strict=True):
                part = np.ascontiguousarray(array, "<f4").tobytes()
                text += f'\t\t\t\t<{tag} offset="{len(data)}" size="{len(part)}"/>\n'
                data += part
            text += "\t\t\t</blobs>\n"
        text += "\t\t</layer>\n"
        shape = output
    edges = "".join(
        f'\t\t<edge from-layer="{i}" from-port="{3 if LAYERS[i][4] else int(i > 0)}" to-layer="{i + 1}" to-port="0"/>\n'
        for i in range(len(LAYERS) - 1)
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "classifier_v5.xml").write_text(
        '<?xml version="1.0" ?>\n<net batch="1" name="digits" version="5">\n'
        f"\t<layers>\n{text}\t</layers>\n\t<edges>\n{edges}\t</edges>\n</net>\n"
    )
    (folder / "classifier_v5.bin").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/digits"))
