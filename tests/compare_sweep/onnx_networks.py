"""Small ONNX models of twelve architectures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.benchmarks.onnx_graph import Graph, Input, Tensor
from tests.benchmarks.transformers import feed_forward, gelu, self_attention


def relu(g: Graph, x: Tensor) -> Tensor:
    return g.unary("Relu", x)


def residual(g: Graph) -> None:
    x = g.pool(relu(g, g.convolution(g.input(Input("image", (1, 3, 24, 24))), 8, 3)), 2, 2)
    for _ in range(3):
        y = g.convolution(relu(g, g.convolution(x, 8, 3)), 8, 3, gain=0.5)
        x = relu(g, g.binary("Add", x, y))
    g.output(g.softmax(g.linear(g.mean(x, (2, 3), keep=False), 10), 1))


def depthwise(g: Graph) -> None:
    x = g.convolution(g.input(Input("image", (1, 3, 16, 16))), 8, 3, 2)
    for _ in range(3):
        y = g.unary("HardSwish", g.convolution(x, 24, 1))
        y = g.unary("HardSwish", g.convolution(y, 24, 3, groups=24))
        scale = g.unary("HardSigmoid", g.convolution(relu(g, g.convolution(g.mean(y, (2, 3), keep=True), 6, 1)), 24, 1))
        x = g.binary("Add", x, g.convolution(g.binary("Mul", y, scale), 8, 1, gain=1))
    g.output(g.linear(g.mean(x, (2, 3), keep=False), 10))


def segmentation(g: Graph) -> None:
    one = relu(g, g.convolution(g.input(Input("image", (1, 2, 16, 16))), 6, 3))
    two = relu(g, g.convolution(g.pool(one, 2, 2), 12, 3))
    three = relu(g, g.convolution(g.pool(two, 2, 2), 24, 3))
    x = relu(g, g.convolution(g.concat([g.transposed_convolution(three, 12, 2, 2, 0), two], 1), 12, 3))
    x = relu(g, g.convolution(g.concat([g.transposed_convolution(x, 6, 2, 2, 0), one], 1), 6, 3))
    g.output(g.unary("Sigmoid", g.convolution(x, 1, 1, gain=1)))


def detector(g: Graph) -> None:
    x = g.unary("LeakyRelu", g.convolution(g.input(Input("image", (1, 3, 16, 16))), 8, 3, 2), alpha=0.1)
    levels = []
    for _ in range(2):
        x = g.unary("LeakyRelu", g.convolution(x, 16, 3, 2), alpha=0.1)
        size = x.shape[2] * x.shape[3]
        levels.append(g.reshape(g.convolution(x, 7, 1, gain=1), 1, 7, size))
    both = g.transpose(g.concat(levels, 2), 0, 2, 1)
    boxes, scores = g.split(both, [4, 3], 2)
    centres, sizes = g.split(boxes, [2, 2], 2)
    half = g.binary("Mul", g.unary("Exp", sizes), 0.5)
    g.output(g.concat([g.binary("Sub", centres, half), g.binary("Add", centres, half)], 2))
    g.output(g.transpose(g.unary("Sigmoid", scores), 0, 2, 1))


def encoder(g: Graph) -> None:
    x = g.input(Input("x", (1, 12, 32)))
    for _ in range(2):
        x = g.binary("Add", self_attention(g, g.layer_norm(x, 1e-5), 4), x)
        x = g.binary("Add", feed_forward(g, g.layer_norm(x, 1e-5)), x)
    g.output(g.unary("Tanh", g.linear(g.layer_norm(x, 1e-5), 16)))


def decoder(g: Graph) -> None:
    ids = g.input(Input("ids", (1, 10), True, 0, 50))
    x, table = g.embedding(ids, 50, 32)
    mask = g.node(
        "Where",
        [g.constant(np.tri(10)[None, None], np.bool_), g.constant(0, np.float32), g.constant(-1e9, np.float32)],
        (1, 1, 10, 10),
    )[0]
    for _ in range(2):
        x = g.binary("Add", self_attention(g, g.layer_norm(x, 1e-5), 2, mask), x)
        x = g.binary("Add", feed_forward(g, g.layer_norm(x, 1e-5)), x)
    g.output(g.tied(g.layer_norm(x, 1e-5), table))


def decoder_with_past(g: Graph) -> None:
    """One step of a decoder whose state is inputs and outputs."""
    x = g.input(Input("x", (1, 1, 16)))
    for i in range(2):
        y = g.layer_norm(x, 1e-5)
        q, k, v = (g.heads(g.linear(y, 16), 2) for _ in range(3))
        keys = g.concat([g.input(Input(f"past_key{i}", (1, 2, 5, 8))), k], 2)
        values = g.concat([g.input(Input(f"past_value{i}", (1, 2, 5, 8))), v], 2)
        x = g.binary("Add", x, g.linear(g.merge_heads(g.attend(q, keys, values, 8**-0.5)), 16))
        x = g.binary("Add", x, g.linear(gelu(g, g.linear(g.layer_norm(x, 1e-5), 32)), 16))
        g.output(keys)
        g.output(values)
    g.output(x)


def lstm(g: Graph) -> None:
    x = g.linear(g.input(Input("x", (6, 1, 8))), 12)
    for _ in range(2):
        weights = [g.weight((1, 48, 12), 0.3), g.weight((1, 48, 12), 0.3), g.weight((1, 96), 0.1)]
        y = g.node("LSTM", [x, *weights], (6, 1, 1, 12), hidden_size=12)[0]
        x = g.reshape(y, 6, 1, 12)
    g.output(g.softmax(g.linear(x, 5), 2))


def gru(g: Graph) -> None:
    x = g.linear(g.input(Input("x", (6, 1, 8))), 12)
    weights = [g.weight((2, 36, 12), 0.3), g.weight((2, 36, 12), 0.3), g.weight((2, 72), 0.1)]
    y = g.node("GRU", [x, *weights], (6, 2, 1, 12), hidden_size=12, direction="bidirectional", linear_before_reset=1)[0]
    y = g.reshape(g.transpose(y, 0, 2, 1, 3), 6, 1, 24)
    g.output(g.linear(g.unary("Tanh", g.linear(y, 8)), 5))


def loop(g: Graph) -> None:
    """A recurrence written as a Loop between products."""
    x = g.linear(g.input(Input("x", (1, 8))), 8)
    w = g.weight((8, 8), 0.4)
    nodes = [
        helper.make_node("MatMul", ["h_in", w.name], ["inside_product"]),
        helper.make_node("Tanh", ["inside_product"], ["inside_tanh"]),
        helper.make_node("Add", ["inside_tanh", x.name], ["h_out"]),
        helper.make_node("Identity", ["go_in"], ["go_out"]),
        helper.make_node("Identity", ["h_out"], ["every"]),
    ]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "body",
        [
            info("i", TensorProto.INT64, ()),
            info("go_in", TensorProto.BOOL, ()),
            info("h_in", TensorProto.FLOAT, (1, 8)),
        ],
        [
            info("go_out", TensorProto.BOOL, ()),
            info("h_out", TensorProto.FLOAT, (1, 8)),
            info("every", TensorProto.FLOAT, (1, 8)),
        ],
    )
    start = g.unary("Sigmoid", x)
    last, every = g.node("Loop", [g.constant(4), g.constant(True, np.bool_), start], (1, 8), (4, 1, 8), body=body)
    g.output(g.linear(last, 4))
    g.output(g.unary("Relu", every))


def scan(g: Graph) -> None:
    x = g.linear(g.input(Input("x", (5, 8))), 8)
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["h_in", "x_in"], ["sum_in"]), helper.make_node("Tanh", ["sum_in"], ["h_out"])]
    nodes.append(helper.make_node("Mul", ["h_out", "x_in"], ["y_out"]))
    body = helper.make_graph(
        nodes,
        "body",
        [info("h_in", TensorProto.FLOAT, (8,)), info("x_in", TensorProto.FLOAT, (8,))],
        [info("h_out", TensorProto.FLOAT, (8,)), info("y_out", TensorProto.FLOAT, (8,))],
    )
    last, every = g.node("Scan", [g.weight((8,), 0.5), x], (8,), (5, 8), body=body, num_scan_inputs=1)
    g.output(g.linear(every, 4))
    g.output(g.unary("Sigmoid", last))


def quantised(g: Graph) -> None:
    """QuantizeLinear and DequantizeLinear around activations, and weights of 8 bits."""
    rng = np.random.default_rng(5)
    x = g.input(Input("image", (1, 3, 12, 12)))
    for channels in (8, 8):
        scale, zero = g.constant(1 / 50, np.float32), g.constant(128, np.uint8)
        x = g.node("DequantizeLinear", [g.node("QuantizeLinear", [x, scale, zero], x.shape)[0], scale, zero], x.shape)[
            0
        ]
        shape = (channels, x.shape[1], 3, 3)
        whole = g.constant(rng.integers(-127, 128, shape), np.int8)
        per_channel = g.constant(0.002 * (1 + rng.random(channels)), np.float32)
        weights = g.node("DequantizeLinear", [whole, per_channel], shape, axis=0)[0]
        x = relu(
            g, g.node("Conv", [x, weights, g.weight((channels,), 0.1)], (1, channels, *x.shape[2:]), pads=[1] * 4)[0]
        )
    g.output(g.linear(g.mean(x, (2, 3), keep=False), 10))


NETWORKS: dict[str, Callable[[Graph], None]] = {
    build.__name__: build
    for build in (
        residual, depthwise, segmentation, detector, encoder, decoder, decoder_with_past, lstm, gru, loop, scan,
        quantised,
    )
}  # fmt: skip


def model(name: str) -> onnx.ModelProto:
    """A network with its weights drawn."""
    g = Graph(name)
    NETWORKS[name](g)
    return g.model()


def inputs(name: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Its inputs, random."""
    g = Graph(name)
    NETWORKS[name](g)
    rng = np.random.default_rng(seed)
    return {
        spec.name: rng.integers(int(spec.low), int(spec.high), spec.shape)
        if spec.integer
        else rng.uniform(spec.low, spec.high, spec.shape).astype(np.float32)
        for spec in g.inputs
    }
