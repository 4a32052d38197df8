"""Costs, element types and trees: published figures, and sums by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import converters
import irexec
from irexec.analysis.cost import LayerCosts
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import InputError
from irexec.tools.inspect.cost import cost
from irexec.tools.inspect.precision import precision
from irexec.tools.inspect.summary import TreeBranch, tree
from tests.benchmarks.models import NETWORKS, graph
from tests.support.networks import unpacked


@pytest.fixture(scope="module")
def resnet50() -> irexec.Model:
    return converters.convert(onnx.load_from_string(graph("resnet50").model().SerializeToString()))


def test_resnet50_has_its_published_figures(resnet50: irexec.Model) -> None:
    """4.1 GMACs and 25.6 M parameters of 4 bytes."""
    found = cost(resnet50)
    assert found.cost.macs == pytest.approx(4.1e9, rel=0.01)
    assert found.cost.parameters == pytest.approx(25.6e6, rel=0.01)
    assert found.cost == found.known
    assert sum(row.macs or 0 for row in found.layers) == found.cost.macs
    assert sum(row.macs or 0 for row in found.types) == found.cost.macs
    assert found.rows()[0].macs == max(row.macs or 0 for row in found.layers)
    # The 3 x 3 convolutions of the last stage have the most.
    assert found.rows("parameters")[0].parameters == 512 * 512 * 3 * 3
    assert precision(resnet50).weight_elements == found.cost.parameters
    assert precision(resnet50).bits_per_weight == 32
    assert tree(resnet50).root.cost.macs == found.cost.macs
    assert NETWORKS["resnet50"].gmacs == pytest.approx(4.1, rel=0.01)


SHAPES = {
    "gru_tagger": {0: [2, 7]}, "scripted_loop": {0: [2, 5, 8]}, "resnet50": {0: [1, 3, 64, 64]},
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["gru_tagger", "scripted_loop", "resnet50", "ssd", "llama_int4_asym", "resnet18_quantised"]
)
def test_rows_add_up_to_the_whole(name: str, tmp_path: Path) -> None:
    """Layers of bodies and those that are counted with others included."""
    model = irexec.read_model(unpacked(name, tmp_path))
    if name in SHAPES:
        model.reshape(SHAPES[name])
    costs = LayerCosts(model, infer_shapes(model, tolerant=True).facts)
    whole, found = costs.of(costs.layers), cost(model)
    assert (found.cost.macs, found.cost.parameters) == (whole.macs, whole.parameters)
    counted = [name for row in found.layers for name in (row.name, *row.constants)]
    assert len(counted) == sum(node.type not in ("Parameter", "Constant", "Result") for node in model.walk())


def _products(trips: int) -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (2, 8), "x")
    w = builder.constant(np.ones((8, 4), np.int8), "i8", "w")
    scaled = builder.emit(
        "Multiply", builder.emit("Convert", w, destination_type="f32", name="c"), np.float32(2), name="scaled"
    )
    builder.result(builder.emit("MatMul", x, scaled, transpose_a=False, transpose_b=False, name="product"))
    return builder.model()


def test_decompression_is_counted_with_the_product_that_reads_it() -> None:
    found = cost(_products(1))
    (row,) = found.layers
    assert (row.name, row.constants) == ("product", ("c", "scaled"))
    # 2 x 8 x 4 products; the input, the weights as they are stored, the scale; the result.
    assert (row.macs, row.parameters, row.read, row.written) == (64, 32, 4 * 16 + 32 + 4, 4 * 8)
    assert row.intensity == 2 * 64 / (64 + 32 + 4 + 32)


def test_what_is_not_known_is_said() -> None:
    builder = irexec.Builder("open")
    x = builder.parameter("f32", ("?", 8), "x")
    y = builder.emit("MatMul", x, np.ones((8, 4), np.float32), transpose_a=False, transpose_b=False, name="y")
    builder.result(y)
    model = builder.model()
    found = cost(model)
    assert (found.cost.macs, found.cost.bytes, found.cost.parameters) == (None, None, 32)
    assert (found.unknown, found.open_inputs) == (("y",), ("x: f32[?,8]",))
    assert "at least 0 MACs" in str(found)
    model.reshape([3, 8])
    assert cost(model).cost.macs == 3 * 8 * 4


@pytest.mark.parametrize(
    ("name", "element", "scheme", "bits"),
    [
        # 4 bits, a scale of 16 bits for 8 weights, a zero point of 4 bits for 8.
        ("llama_int4_asym", "u4", "zero point u4 for 8, scale f16 for 8", 4 + 16 / 8 + 4 / 8),
        ("llama_nf4", "nf4", "scale f16 for 8", 4 + 16 / 8),
        ("resnet50_half", "f16", "converted", 16),
    ],
)
def test_compressed_weights(name: str, element: str, scheme: str, bits: float, tmp_path: Path) -> None:
    found = precision(irexec.read_model(unpacked(name, tmp_path)))
    storage = found.weights[0]
    assert (storage.element, storage.scheme, storage.computed) == (element, scheme, "f32")
    # Scales of the whole rows that NNCF leaves at 8 bits, and of norms, are in groups of their own.
    assert storage.bits == pytest.approx(bits, rel=1e-9)
    assert storage.decompressed == 4 * storage.elements


def test_quantised_activations(tmp_path: Path) -> None:
    found = precision(irexec.read_model(unpacked("resnet18_quantised", tmp_path)))
    products = [row for row in found.layers if row.type in ("Convolution", "MatMul")]
    # One that reads the image, and one after a pooling, have inputs that are not quantised themselves.
    assert [row.levels for row in products].count(("256 levels",)) >= len(products) - 2
    assert {weights.element for row in products for weights in row.weights} == {"i8"}
    assert found.weights[0].scheme == "scale f32 per channel"


def test_weights_that_two_layers_read_count_once() -> None:
    builder = irexec.Builder("tied")
    x = builder.parameter("f32", (1, 4), "x")
    w = builder.constant(np.ones((4, 4), np.float16), "f16", "w")
    y = builder.emit("Convert", w, destination_type="f32")
    for i in range(2):
        x = builder.emit("MatMul", x, y, transpose_a=False, transpose_b=False, name=f"y{i}")
    builder.result(x)
    found = precision(builder.model())
    assert [weights.shared for row in found.layers for weights in row.weights] == [False, True]
    assert (found.weight_elements, found.stored, found.decompressed, found.bits_per_weight) == (16, 32, 64, 16)


def _named(*names: str) -> irexec.Model:
    builder = irexec.Builder("names")
    x = builder.parameter("f32", (1,), "x")
    for name in names:
        x = builder.emit("Relu", x, name=name)
    builder.result(x)
    return builder.model()


def _drawn(branch: TreeBranch) -> dict[str, object]:
    return {below.name: _drawn(below) or below.layers for below in branch.branches}


def test_a_tree_by_hand() -> None:
    model = _named("a/b.0/c", "a/b.0/d", "a/b.1/c", "stem", "/head//out", "stem/x")
    assert _drawn(tree(model).root) == {"a/b": {"0": {"c": 1, "d": 1}, "1/c": 1}, "stem": {"x": 1}, "head//out": 1}
    assert _drawn(tree(model, 1).root) == {"a/b": 3, "stem": 2, "head//out": 1}
    assert [branch.path for branch in tree(model, 1).root.branches] == ["a/b", "stem", "/head//out"]
    assert tree(model).root.layers == 6


def test_names_of_any_length() -> None:
    found = tree(_named("/".join("ab" * 5000), "." * 3000, "a/b"))
    assert found.root.layers == 3
    assert str(found)


@pytest.mark.parametrize("depth", [0, -1, True, 1.5])
def test_wrong_depth(depth: int) -> None:
    with pytest.raises(InputError, match="expected an integer of at least 1"):
        tree(_named("a"), depth)


def test_html() -> None:
    model = irexec.read_model("samples/digits/classifier.xml")
    for report in (cost(model), tree(model), precision(model)):
        assert "<table" in report._repr_html_()
        assert repr(report).startswith(f"<{type(report).__name__} 'digits classifier': ")
