"""The networks of the benchmark have the published sizes."""

from __future__ import annotations

import onnx
import pytest

from tests.benchmarks.models import NETWORKS, graph

NAMES = list(NETWORKS)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_multiply_accumulates_are_the_published_ones(name: str) -> None:
    made, published = graph(name), NETWORKS[name]
    assert made.parameters / 1e6 == pytest.approx(published.parameters, rel=0.02)
    assert made.macs / 1e9 == pytest.approx(published.gmacs, rel=0.02)


@pytest.mark.parametrize("name", ["mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "yolov8n"])
def test_model_is_valid_and_has_the_counted_weights(name: str) -> None:
    """Those that are small enough to be made here; ONNX infers the shapes itself and compares them with those declared."""
    made = graph(name)
    model = made.model()
    onnx.checker.check_model(model, full_check=True)
    stored = sum(
        onnx.numpy_helper.to_array(tensor).size
        for tensor in model.graph.initializer
        if tensor.name.startswith("weight")
    )
    assert stored == made.parameters


def test_weights_are_the_same_every_time() -> None:
    assert graph("mobilenet_v3").model() == graph("mobilenet_v3").model()
