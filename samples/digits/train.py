"""Train the two sample networks on the 1,797 handwritten digits inside scikit-learn, and write them as ONNX.

    pip install scikit-learn onnx pillow numpy
    python samples/digits/train.py

The last fifth of the digits is never trained on: accuracy is measured on it and the sample images
are taken from it. The seed is fixed; the figures are those in the README.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from layers import Adam, Conv, Dense, GroupedUpConv, MaxPool, Relu
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
SEED = 7
BATCH = 64


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(train images, train labels, held-out images, held-out labels); images (N, 1, 8, 8) in 0..1."""
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(SEED).permutation(len(images))
    cut = len(order) * 4 // 5
    return images[order[:cut]], data.target[order[:cut]], images[order[cut:]], data.target[order[cut:]]


def forward(layers: list, x: np.ndarray) -> np.ndarray:
    for layer in layers:
        x = layer.forward(x)
    return x


def backward(layers: list, gradient: np.ndarray) -> None:
    for layer in reversed(layers):
        gradient = layer.backward(gradient)


def shifted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Now and then the images are moved by at most one pixel."""
    if rng.random() > 0.3:
        return x
    dy, dx = rng.integers(-1, 2, 2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return padded[:, :, 1 + dy : 9 + dy, 1 + dx : 9 + dx]


def noisy(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """The images with noise, in the 256 steps of a PNG."""
    spoiled = np.clip(x + rng.normal(0, 0.25, x.shape), 0, 1)
    return (np.rint(spoiled * 255) / 255).astype(np.float32)


def train_classifier(x: np.ndarray, labels: np.ndarray) -> list:
    rng = np.random.default_rng(SEED)
    layers = [
        Conv(rng, 1, 16, 3, 1, 1),
        Relu(),
        MaxPool(),
        Conv(rng, 16, 32, 3, 1, 1),
        Relu(),
        MaxPool(),
        Dense(rng, 128, 10),
    ]
    optimiser = Adam(layers, 2e-3)
    for epoch in range(60):
        optimiser.rate = 2e-3 * 0.95**epoch
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            some = order[start : start + BATCH]
            scores = forward(layers, shifted(rng, x[some]))
            odds = np.exp(scores - scores.max(1, keepdims=True))
            odds /= odds.sum(1, keepdims=True)
            odds[np.arange(len(some)), labels[some]] -= 1
            backward(layers, (odds / len(some)).astype(np.float32))
            optimiser.step()
    return layers


def train_denoiser(x: np.ndarray) -> list:
    rng = np.random.default_rng(SEED)
    layers = [
        Conv(rng, 1, 32, 3, 1, 1), Relu(), Conv(rng, 32, 32, 3, 2, 1), Relu(), Conv(rng, 32, 64, 3, 2, 1), Relu(),
        GroupedUpConv(rng, 64, 32, 4), Relu(), GroupedUpConv(rng, 32, 32, 2), Relu(), Conv(rng, 32, 1, 3, 1, 1),
    ]  # fmt: skip
    optimiser = Adam(layers, 2e-3)
    for epoch in range(40):
        optimiser.rate = 2e-3 * 0.95**epoch
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            clean = x[order[start : start + BATCH]]
            y = 1 / (1 + np.exp(-forward(layers, noisy(rng, clean))))
            backward(layers, ((y - clean) * y * (1 - y) * 2 / len(clean)).astype(np.float32))
            optimiser.step()
    return layers


def tensor(name: str, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)


def as_onnx(name: str, layers: list, last: str, output: tuple[str, list]) -> onnx.ModelProto:
    """The layers and a last activation as an ONNX model with a batch of 1."""
    nodes, weights, value = [], [], "image"
    for i, layer in enumerate(layers):
        kind = type(layer).__name__
        result, names = f"{kind.lower()}{i}", [f"{kind.lower()}{i}.w", f"{kind.lower()}{i}.b"]
        if hasattr(layer, "w"):
            weights += [tensor(names[0], layer.w), tensor(names[1], layer.b)]
        if kind == "Conv":
            texts = {"pads": [layer.pad] * 4, "strides": [layer.stride] * 2}
            nodes.append(helper.make_node("Conv", [value, *names], [result], result, **texts))
        elif kind == "GroupedUpConv":
            texts = {"pads": [layer.pad] * 4, "strides": [layer.stride] * 2, "group": layer.groups}
            nodes.append(helper.make_node("ConvTranspose", [value, *names], [result], result, **texts))
        elif kind == "Dense":
            nodes.append(helper.make_node("Flatten", [value], [f"{result}.flat"], f"{result}.flat"))
            nodes.append(helper.make_node("Gemm", [f"{result}.flat", *names], [result], result))
        elif kind == "MaxPool":
            nodes.append(helper.make_node("MaxPool", [value], [result], result, kernel_shape=[2, 2], strides=[2, 2]))
        else:
            nodes.append(helper.make_node(kind, [value], [result], result))
        value = result
    nodes.append(helper.make_node(last, [value], [output[0]], output[0]))
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])
    gives = helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])
    graph = helper.make_graph(nodes, name, [given], [gives], weights)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="irexec samples"
    )
    onnx.checker.check_model(model)
    return model


def save_image(path: Path, image: np.ndarray) -> None:
    Image.fromarray(np.rint(image * 255).astype(np.uint8), "L").save(path)


def main() -> None:
    x, labels, held_out, answers = digits()
    classifier = train_classifier(x, labels)
    accuracy = float((forward(classifier, held_out).argmax(1) == answers).mean())
    print(f"classifier: {accuracy:.4f} of {len(answers)} held-out digits are right")
    onnx.save(as_onnx("digits classifier", classifier, "Softmax", ("probabilities", [1, 10])), HERE / "classifier.onnx")

    denoiser = train_denoiser(x)
    rng = np.random.default_rng(SEED + 1)
    spoiled = noisy(rng, held_out)
    cleaned = 1 / (1 + np.exp(-forward(denoiser, spoiled)))
    before, after = (float(np.sqrt(((y - held_out) ** 2).mean())) for y in (spoiled, cleaned))
    print(f"denoiser: root mean square error {before:.4f} before, {after:.4f} after")
    onnx.save(as_onnx("digits denoiser", denoiser, "Sigmoid", ("cleaned", [1, 1, 8, 8])), HERE / "denoiser.onnx")

    for digit in range(10):
        first = int(np.flatnonzero(answers == digit)[0])
        save_image(HERE / f"digit_{digit}.png", held_out[first, 0])
        if digit in (3, 8):
            save_image(HERE / f"noisy_{digit}.png", spoiled[first, 0])
    names = "zero one two three four five six seven eight nine"
    (HERE / "labels.txt").write_text("\n".join(names.split()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
