"""Models of differences that need several layers or a body: no row of one operation shows them."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model
from irexec.ir.graph import BackEdge, Body, PortMap


def iterated(*, reads_slices: bool) -> Model:
    """A TensorIterator over three rows of its first input, whose body adds them to its second input, or doubles that each time."""
    builder = Builder("m")
    inner = Builder("body", inside=builder)
    row, state = inner.parameter("f32", (1, 4), "row"), inner.parameter("f32", (1, 4), "state")
    left = inner.emit("Add", state, row if reads_slices else state)
    results = [inner.result(left), inner.result(left)]
    graph = inner.model()
    sliced = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}
    body = Body(
        graph,
        port_maps=[
            PortMap("input", 0, row.node.id, dict(sliced)),
            PortMap("input", 1, state.node.id, {}),
            PortMap("output", 2, results[0].id, dict(sliced)),
        ],
        back_edges=[BackEdge(results[1].id, state.node.id)],
    )
    rows, start = builder.parameter("f32", (3, 4), "rows"), builder.parameter("f32", (1, 4), "start")
    (stacked,) = builder.emit("TensorIterator", rows, start, bodies={"body": body}, name="iterated")
    builder.result(stacked)
    return builder.model()


def quantised(*, by_channel: bool) -> Model:
    """A pooled convolution, scaled by channel or as a whole, and quantised with one range; all of it in f16."""
    rng = np.random.default_rng(0)
    builder = Builder("m")
    x = builder.parameter("f16", (1, 3, 12, 12), "x")
    weights = builder.constant(rng.standard_normal((16, 3, 1, 1)) * 0.5, "f16")
    same = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    x = builder.emit("Convolution", x, weights, dilations=(1, 1), **same)
    x, _ = builder.emit("MaxPool", x, dilations=(1, 1), kernel=(2, 2), **same | {"strides": (2, 2)})
    scale = np.exp2(np.arange(16) % 3).reshape(1, 16, 1, 1) if by_channel else np.full((1, 1, 1, 1), 2.0)
    x = builder.emit("Multiply", x, builder.constant(scale, "f16"))
    low, high = builder.constant(-4.0, "f16"), builder.constant(3.96875, "f16")
    builder.result(builder.emit("FakeQuantize", x, low, high, low, high, levels=256))
    return builder.model()


def strided(*, padded: bool) -> Model:
    """A Relu and a convolution of stride 2 by kernels of size 1."""
    builder = Builder("m")
    weights = np.random.default_rng(0).standard_normal((8, 4, 1, 1)).astype(np.float32)
    pads = (1, 1) if padded else (0, 0)
    x = builder.emit("Relu", builder.parameter("f32", (2, 4, 7, 5), "x"))
    x = builder.emit("Convolution", x, weights, strides=(2, 2), pads_begin=pads, pads_end=pads, dilations=(1, 1))
    builder.result(x)
    return builder.model()


SEVERAL_LAYERS = {
    "IR941": (iterated(reads_slices=True), iterated(reads_slices=False)),
    "IR942": (quantised(by_channel=False), quantised(by_channel=True)),
    "IR971": (strided(padded=False), strided(padded=True)),
}
"""By code, a model without the difference and a model with it."""
