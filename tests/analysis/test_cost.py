"""Multiply-accumulates, parameters and bytes: counted by hand, and published for whole networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

import converters
import irexec
from irexec.analysis.builder import Builder
from irexec.analysis.cost import Cost, LayerCosts
from irexec.analysis.shape_inference import infer_shapes
from irexec.ir.graph import BackEdge, Body, PortMap
from tests.benchmarks.models import NETWORKS, graph
from tests.compile.test_sequences import iterator

WINDOWS = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}


def costs_of(model: irexec.Model) -> LayerCosts:
    return LayerCosts(model, infer_shapes(model, tolerant=True).facts)


def cost_of(model: irexec.Model) -> Cost:
    costs = costs_of(model)
    return costs.of(costs.layers)


def layer(
    type: str, *shapes: tuple[int, ...] | np.ndarray, version: int | str | None = None, **attributes: Any
) -> irexec.Model:
    """A model of one layer, whose inputs are Parameters of the shapes, or the arrays as constants."""
    builder = Builder("one")
    inputs = [s if isinstance(s, np.ndarray) else builder.parameter("f32", s, f"x{i}") for i, s in enumerate(shapes)]
    made = builder.emit(type, *inputs, version=version, **attributes)
    builder.result(made[0] if isinstance(made, tuple) else made)
    return builder.model()


LENGTHS = np.array([5, 5], np.int64)

# Each count is written out from the shapes.
ROWS = [
    ("Convolution", [(2, 3, 8, 8), (4, 3, 3, 3)], WINDOWS, 2 * 4 * 8 * 8 * (3 * 3 * 3)),
    ("Convolution", [(1, 3, 9, 9), (4, 3, 3, 3)], WINDOWS | {"strides": (2, 2)}, 4 * 5 * 5 * (3 * 3 * 3)),
    ("Convolution", [(1, 6, 10), (2, 6, 5)], {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,)}, 2 * 6 * (6 * 5)),
    ("GroupConvolution", [(1, 6, 8, 8), (3, 4, 2, 3, 3)], WINDOWS, 12 * 8 * 8 * (2 * 3 * 3)),
    ("GroupConvolution", [(1, 6, 8, 8), (6, 1, 1, 3, 3)], WINDOWS, 6 * 8 * 8 * (3 * 3)),
    ("ConvolutionBackpropData", [(1, 3, 4, 4), (3, 5, 2, 2)], WINDOWS | {"strides": (2, 2)}, (3 * 4 * 4) * (5 * 2 * 2)),
    ("GroupConvolutionBackpropData", [(1, 6, 4, 4), (2, 3, 5, 2, 2)], WINDOWS | {"strides": (2, 2)}, (6 * 4 * 4) * (5 * 2 * 2)),
    ("DeformableConvolution", [(1, 4, 8, 8), (1, 18, 8, 8), (6, 2, 3, 3)], WINDOWS | {"group": 2}, 6 * 8 * 8 * (2 * 3 * 3)),
    ("MatMul", [(7, 5, 4), (4, 3)], {"transpose_a": False, "transpose_b": False}, 7 * 5 * 3 * 4),
    ("MatMul", [(4, 5), (3, 4)], {"transpose_a": True, "transpose_b": True}, 5 * 3 * 4),
    ("MatMul", [(2, 1, 5, 4), (1, 6, 4, 3)], {"transpose_a": False, "transpose_b": False}, 2 * 6 * 5 * 3 * 4),
    ("MatMul", [(4,), (4,)], {"transpose_a": True, "transpose_b": False}, 4),
    ("Einsum", [(2, 3, 4), (4, 5)], {"equation": "abc,cd->abd"}, 2 * 3 * 5 * 4),
    ("Einsum", [(2, 7, 3, 4), (1, 7, 4, 5)], {"equation": "...bc,...cd->...bd"}, 2 * 7 * 3 * 5 * 4),
    ("Einsum", [(2, 3)], {"equation": "ab->ba"}, 0),
    ("ScaledDotProductAttention", [(2, 6, 10, 8), (2, 6, 12, 8), (2, 6, 12, 16)], {"causal": False}, 2 * 6 * 10 * 12 * (8 + 16)),
    ("RNNCell", [(2, 3), (2, 4), (4, 3), (4, 4), (4,)], {"hidden_size": 4}, 2 * (4 * 3 + 4 * 4)),
    ("GRUCell", [(2, 3), (2, 4), (12, 3), (12, 4), (12,)], {"hidden_size": 4}, 2 * (12 * 3 + 12 * 4)),
    ("LSTMCell", [(2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,)], {"hidden_size": 4}, 2 * (16 * 3 + 16 * 4)),
    (
        "LSTMSequence",
        [(2, 5, 3), (2, 2, 4), (2, 2, 4), LENGTHS, (2, 16, 3), (2, 16, 4), (2, 16)],
        {"hidden_size": 4, "direction": "bidirectional"},
        2 * 5 * 2 * (16 * 3 + 16 * 4),
    ),
    ("GRUSequence", [(2, 5, 3), (2, 1, 4), LENGTHS, (1, 12, 3), (1, 12, 4), (1, 12)], {"hidden_size": 4, "direction": "forward"}, 2 * 5 * (12 * 3 + 12 * 4)),
    ("RNNSequence", [(2, 5, 3), (2, 1, 4), LENGTHS, (1, 4, 3), (1, 4, 4), (1, 4)], {"hidden_size": 4, "direction": "reverse"}, 2 * 5 * (4 * 3 + 4 * 4)),
    ("GroupedMatMul", [(3, 5, 4), (3, 6, 4)], {}, 3 * 5 * 6 * 4),
    ("GroupedMatMul", [(8, 4), (2, 6, 4), np.array([3, 8], np.int64)], {}, 8 * 6 * 4),
    ("Add", [(4, 5), (4, 5)], {}, 0),
    ("Softmax", [(4, 5)], {"axis": 1}, 0),
    ("MaxPool", [(1, 3, 8, 8)], {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("type", "inputs", "attributes", "macs"), ROWS, ids=[f"{i} {row[0]}" for i, row in enumerate(ROWS)]
)
def test_macs_by_hand(type: str, inputs: list[Any], attributes: dict[str, Any], macs: int) -> None:
    assert cost_of(layer(type, *inputs, **attributes)).macs == macs


@pytest.mark.parametrize(
    ("filter", "filter_format", "data_format", "data"),
    [
        ((5, 5, 4, 2), "XIO", "NXC", (1, 3, 3, 4)),
        ((2, 4, 5, 5), "OIX", "NCX", (1, 4, 3, 3)),
        ((5, 5, 2, 4), "XOI", "NXC", (1, 3, 3, 4)),
    ],
)
def test_macs_of_a_grouped_transposed_convolution_of_onednn(
    filter: tuple[int, ...], filter_format: str, data_format: str, data: tuple[int, ...]
) -> None:
    """Four channels in two groups with two outputs each: every element of the input meets two outputs of 5 x 5."""
    made = layer("ConvTranspose", data, filter, version="onednn", filter_format=filter_format, data_format=data_format, groups=2,
                 strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1))  # fmt: skip
    assert cost_of(made).macs == (4 * 3 * 3) * (2 * 5 * 5)


# EfficientNet and the small ones are quick to make; ResNet-50 is the one whose figure everybody knows.
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "yolov8n"])
def test_published_networks(name: str) -> None:
    published, model = NETWORKS[name], graph(name).model()
    found = cost_of(converters.convert(onnx.load_from_string(model.SerializeToString())))
    assert found.macs == pytest.approx(published.gmacs * 1e9, rel=0.01)
    assert found.parameters == pytest.approx(published.parameters * 1e6, rel=0.01)


def test_layers_that_are_computed_together_share_tensors() -> None:
    builder = Builder("chain")
    x = builder.parameter("f32", (10, 100), "x")
    product = builder.emit("MatMul", x, np.ones((100, 50), np.float32), transpose_a=False, transpose_b=False)
    builder.result(builder.emit("Relu", builder.emit("Add", product, np.ones(50, np.float32))))
    costs = costs_of(builder.model())
    apart = [costs.of([node]) for node in costs.layers]
    assert [cost.bytes for cost in apart] == [4 * (1000 + 5000 + 500), 4 * (500 + 50 + 500), 4 * (500 + 500)]
    together = costs.of(costs.layers)
    assert (together.read, together.written) == (4 * (1000 + 5000 + 50), 4 * 500)
    assert (together.macs, together.parameters) == (10 * 100 * 50, 5050)


def test_what_is_not_a_parameter() -> None:
    builder = Builder("indices")
    x = builder.parameter("f32", (10, 10), "x")
    y = builder.emit("Transpose", x, np.array([1, 0], np.int64))
    builder.result(builder.emit("Multiply", y, np.float32(2)))
    assert cost_of(builder.model()).parameters == 0


def test_compressed_weights_are_counted_as_they_are_stored() -> None:
    builder = Builder("i4")
    x = builder.parameter("f32", (3, 8), "x")
    weights = builder.emit("Convert", builder.constant(np.ones((8, 6)), irexec.i4), destination_type="f32")
    builder.result(builder.emit("MatMul", x, weights, transpose_a=False, transpose_b=False))
    costs = costs_of(builder.model())
    assert costs.of(costs.layers).parameters == 48
    assert costs.of(costs.layers[:1]).read == 24


def test_a_constant_that_two_layers_read_counts_once() -> None:
    builder = Builder("shared")
    x = builder.parameter("f32", (2, 3), "x")
    shared = builder.constant(np.ones((2, 3), np.float32))
    builder.result(builder.emit("Add", builder.emit("Multiply", x, shared), shared))
    assert cost_of(builder.model()).parameters == 6


def _body(macs_rows: int, name: str) -> tuple[irexec.Model, list[PortMap]]:
    """A body that multiplies its Parameter of (2, 3) by a matrix of (3, 3), ``macs_rows`` times in a row."""
    inner = Builder(name)
    value = part = inner.parameter("f32", (2, 3), "part")
    for _ in range(macs_rows):
        value = inner.emit("MatMul", value, np.ones((3, 3), np.float32), transpose_a=False, transpose_b=False)
    result = inner.result(value)
    return inner.model(), [PortMap("input", 0, part.node.id), PortMap("output", 1, result.id)]


def test_a_tensor_iterator_counts_its_body_for_every_slice() -> None:
    # Five steps of an LSTMCell of size 4, with 3 features and a batch of 2.
    assert cost_of(iterator("LSTMCell")).macs == 5 * 2 * (16 * 3 + 16 * 4)


def test_if_counts_the_larger_branch() -> None:
    bodies = {}
    for name, count in (("then_body", 1), ("else_body", 3)):
        model, maps = _body(count, name)
        bodies[name] = Body(model, [replace(entry, external=entry.external + 1) for entry in maps])
    builder = Builder("if")
    condition, x = builder.parameter("boolean", (), "condition"), builder.parameter("f32", (2, 3), "x")
    (value,) = builder.emit("If", condition, x, bodies=bodies)
    builder.result(value)
    assert cost_of(builder.model()).macs == 3 * (2 * 3 * 3)


@pytest.mark.parametrize(("trips", "macs"), [(7, 7 * 2 * 3 * 3), (-1, None)])
def test_a_loop_counts_its_trips_if_they_are_known(trips: int, macs: int | None) -> None:
    model, maps = _body(1, "body")
    maps = [replace(maps[0], external=2), replace(maps[1], external=3)]
    (part,), (last,) = model.parameters, model.results
    builder = Builder("loop")
    x = builder.parameter("f32", (2, 3), "x")
    body = {"body": Body(model, maps, [BackEdge(last.id, part.id)])}
    (value,) = builder.emit("Loop", builder.constant(trips, "i64"), builder.constant(True, "boolean"), x, bodies=body)
    builder.result(value)
    assert cost_of(builder.model()).macs == macs


def test_unknown_shapes_leave_the_count_open() -> None:
    builder = Builder("open")
    x = builder.parameter("f32", "?,4", "x")
    builder.result(
        builder.emit(
            "Relu", builder.emit("MatMul", x, np.ones((4, 3), np.float32), transpose_a=False, transpose_b=False)
        )
    )
    found = cost_of(builder.model())
    assert (found.macs, found.parameters, found.bytes) == (None, 12, None)


def test_ports_are_believed_where_nothing_can_be_inferred() -> None:
    model = layer("MatMul", (2, 3), (3, 4), transpose_a=False, transpose_b=False)
    assert LayerCosts(model, {}).macs(next(node for node in model.nodes if node.type == "MatMul")) == 2 * 3 * 4
