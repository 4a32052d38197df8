"""Costs, memory and weights of a model: published figures, sums by hand, and NumPy in f64."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import converters
import irexec
from irexec import io
from irexec.analysis.cost import LayerCosts
from irexec.analysis.shape_inference import infer_shapes
from irexec.display import Curve, TextFormat, lines
from irexec.errors import InputError
from irexec.tools.inspect.cost import cost
from irexec.tools.inspect.memory import liveness, memory
from irexec.tools.inspect.precision import precision
from irexec.tools.inspect.summary import TreeBranch, tree
from irexec.tools.inspect.weights import WeightLine, weights
from tests.benchmarks.models import NETWORKS, graph
from tests.support.memory import traced_peak
from tests.support.networks import unpacked


@pytest.fixture(scope="module")
def resnet50() -> irexec.Model:
    return converters.convert(onnx.load_from_string(graph("resnet50").model().SerializeToString()))


@pytest.mark.slow
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


# When tensors are alive: compared with a search that follows the definition, and with counts by hand.


@st.composite
def models(draw: st.DrawFn) -> irexec.Model:
    """Graphs of layers that each read one or two tensors of different sizes; some results, some that nobody reads."""
    builder = irexec.Builder("random")
    values = [builder.parameter("f32", (draw(st.integers(1, 9)), 1), "x")]
    for i in range(draw(st.integers(1, 12))):
        a, b = (values[draw(st.integers(0, len(values) - 1))] for _ in range(2))
        values.append(
            builder.emit("Concat", a, b, axis=0, name=f"y{i}")
            if draw(st.booleans())
            else builder.emit("Relu", a, name=f"y{i}")
        )
    for value in draw(st.lists(st.sampled_from(values[1:]), min_size=1, max_size=3)):
        builder.result(value)
    return builder.model()


@given(models())
def test_the_peak_is_what_a_search_finds(model: irexec.Model) -> None:
    """At each layer every tensor counts that exists and that this layer, a later one or the caller still reads."""
    facts = infer_shapes(model).facts
    results = {node.inputs[0] for node in model.results}
    needed = set(results)
    for node in reversed(model.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
    found = memory(model, compiled=False)
    by_name = {
        node.name: node
        for node in model.nodes
        if node.type not in ("Parameter", "Result") and needed.intersection(node.outputs)
    }
    assert sorted(by_name) == sorted(found.order)
    order = [by_name[name] for name in found.order]
    for i, node in enumerate(order):
        assert {value.node for value in node.inputs if value is not None} <= {*order[:i], *model.parameters}
    expected = []
    for i in range(len(order)):
        made = [value for node in order[: i + 1] for value in node.outputs]
        alive = [
            v for v in made if v in results or any(v in node.inputs for node in order[i:]) or v in order[i].outputs
        ]
        expected.append(sum(4 * int(np.prod(facts[v].static_shape)) for v in alive))
    assert list(found.curve) == expected
    assert found.peak == max(expected, default=0)
    assert found.peak == sum(tensor.bytes or 0 for tensor in found.alive)


@given(models())
def test_the_plan_holds_what_is_alive(model: irexec.Model) -> None:
    """No plan holds less than the results, nor more tensors than there are; the arena has room for all that is in it at once."""
    report = memory(model)
    assert report.plan is not None
    plan = report.plan
    inside = [one for one in plan.held if one.offset is not None]
    for i in range(plan.steps):
        held = sorted((one.offset or 0, one.bytes) for one in inside if one.first <= i <= one.last)
        assert all(a + size <= b for (a, size), (b, _) in pairwise(held))
        assert all(offset + size <= plan.arena for offset, size in held)
    assert plan.tensors <= report.total


def _chain() -> irexec.Model:
    """Sizes 100, 400, 400, 100 and a Reshape, by hand."""
    builder = irexec.Builder("chain")
    x = builder.parameter("f32", (5, 5), "x")
    wide = builder.emit("Concat", x, x, x, x, axis=0, name="wide")
    relu = builder.emit("Sigmoid", wide, name="relu")
    flat = builder.emit("Reshape", relu, np.array([100]), special_zero=False, name="flat")
    builder.result(builder.emit("ReduceSum", flat, np.array([0]), keep_dims=True, name="sum"))
    return builder.model()


def test_a_chain_by_hand() -> None:
    report = memory(_chain(), threads=1)
    assert report.order == ("wide", "relu", "flat", "sum")
    assert report.curve == (400, 800, 800, 404)
    assert (report.peak, report.layer, report.total) == (800, "relu", 1204)
    assert [(t.name, t.bytes, t.first, t.last) for t in report.alive] == [("wide", 400, 0, 1), ("relu", 400, 1, 2)]
    assert (report.inputs, report.outputs, report.weights) == (100, 4, 16)
    assert report.plan is not None
    # The Sigmoid is written over its input, and the Reshape is a view of it.
    # The input and the result lie in the arena too, since they are small.
    assert report.plan.tensors <= 508


def test_the_state_of_a_loop_is_alive_from_the_start() -> None:
    model = irexec.read_model("tests/data/openvino/tensor_iterator.xml")
    report = memory(model, compiled=False)
    inside = [
        tensor for tensor in liveness(model, infer_shapes(model, tolerant=True).facts).every_tensor() if tensor.path
    ]
    assert {tensor.first for tensor in inside if tensor.type == "Parameter"} == {0}
    assert report.peak >= sum(tensor.bytes or 0 for tensor in report.alive if not tensor.path)


def test_a_memory_that_is_not_known() -> None:
    builder = irexec.Builder("open")
    x = builder.parameter("f32", ("?", 4), "x")
    builder.result(builder.emit("Relu", x, name="y"))
    report = memory(builder.model())
    assert report.unknown == ("y",)
    assert report.open_inputs == ("x: f32[?,4]",)
    assert (report.inputs, report.outputs) == (None, None)
    assert "peak at least 0 bytes" in str(report)


def test_why_there_is_no_plan() -> None:
    report = memory(irexec.read_model("samples/digits/damaged.xml"))
    assert report.plan is None
    assert report.no_plan
    assert f"the plan is not known: {report.no_plan}" in str(report)


@pytest.mark.parametrize("ascii", [False, True])
def test_html_and_text(ascii: bool) -> None:
    report = memory(_chain(), threads=1)
    assert "<table" in report._repr_html_()
    curve = next(content for content in report.sections() if isinstance(content, Curve))
    assert list(lines(curve, TextFormat(width=20, ascii=ascii))) == [
        [("", "=@@= 800 bytes" if ascii else "▄██▄ 800 bytes")]
    ]


# Statistics of constants: right whatever the blocks, and in little memory. The expected values come from NumPy on the
# whole array.


_BLOCK = 1 << 17


def _line(values: np.ndarray) -> WeightLine:
    builder = irexec.Builder("m")
    builder.result(builder.constant(values))
    (line,) = weights(builder.model())
    return line


def _normal(count: int, mean: float, std: float, type: str = "f4") -> np.ndarray:
    return np.random.default_rng(count).normal(mean, std, count).astype(type)


def _with(values: np.ndarray, **at: float) -> np.ndarray:
    for position, value in at.items():
        values[int(position[1:])] = value
    return values


ARRAYS = {
    "less than a block": _normal(1000, 3, 2),
    "exactly a block": _normal(_BLOCK, -1, 0.5),
    "several blocks": _normal(3 * _BLOCK + 17, 0, 1),
    "far from zero": _normal(2 * _BLOCK, 1e6, 1e-2, "f8"),
    "halves": _normal(_BLOCK + 1, 0, 100, "f2"),
    "integers": np.random.default_rng(0).integers(-128, 128, 2 * _BLOCK + 3).astype(np.int8),
    "64 bits": np.arange(-_BLOCK, _BLOCK),
    "booleans": np.arange(1000) % 3 == 0,
    "zeros": np.zeros(2 * _BLOCK + 1, np.float32),
    "NaN and infinities": _with(_normal(2 * _BLOCK, 5, 1), _0=np.nan, _7=np.inf, _140000=-np.inf),
    "a block of NaN alone": np.concatenate([np.full(_BLOCK, np.nan, np.float32), _normal(100, 2, 1)]),
    "near the limit": np.full(2 * _BLOCK, 1e300),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_statistics(name: str) -> None:
    values = ARRAYS[name]
    line = _line(values)
    finite = values[np.isfinite(values)].astype(np.float64)
    assert (line.min, line.max) == (finite.min(), finite.max())
    assert line.zeros == np.mean(finite == 0)
    assert line.not_finite == values.size - finite.size
    with np.errstate(over="ignore"):
        mean = np.mean(finite / 2**10) * 2**10
    np.testing.assert_allclose(line.mean, mean, rtol=1e-9, atol=1e-12)
    if name != "near the limit":
        np.testing.assert_allclose(line.std, np.std(finite), rtol=1e-6)


@pytest.mark.parametrize(
    "values", [np.full(3, np.nan, np.float32), np.zeros((2, 0), np.float32), np.array(["a", "b"], object)]
)
def test_where_there_is_nothing_to_measure(values: np.ndarray) -> None:
    line = _line(values)
    assert (line.min, line.max, line.mean, line.std, line.zeros) == (None, None, None, None, 0.0)
    assert line.not_finite == (3 if values.dtype == np.float32 and values.size else 0)


def test_packed_types_are_cut_between_bytes() -> None:
    """u3 is packed in groups of 8 values, u6 in groups of 4: blocks start at a group."""
    for type, bits in (("u1", 1), ("u2", 2), ("u3", 3), ("u4", 4), ("u6", 6)):
        count = _BLOCK + 8
        xml = f"""<net name="n" version="11"><layers><layer id="0" name="c" type="Const" version="opset1">
<data element_type="{type}" shape="{count}" offset="0" size="{count * bits // 8}"/>
<output><port id="0"><dim>{count}</dim></port></output></layer></layers><edges/></net>"""
        ones = bytes(count * bits // 8 - bits) + b"\xff" * bits
        (line,) = weights(io.read_text(xml, ones))
        # By hand: all bits of the last 8 values are set, and those are in a block of their own.
        assert (line.min, line.max) == (0, 2**bits - 1)
        assert line.mean == pytest.approx(8 * (2**bits - 1) / count)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("type", "width"), [("f32", 4), ("f16", 2), ("i8", 1), ("u4", 0.5)])
def test_a_large_constant_takes_little_memory(type: str, width: float, tmp_path: Path) -> None:
    """64 MB of a file take a few MB: the file itself is mapped, and the blocks of it are all that is allocated."""
    size = 64 << 20
    count = int(size / width)
    xml = f"""<net name="n" version="11"><layers><layer id="0" name="c" type="Const" version="opset1">
<data element_type="{type}" shape="{count}" offset="0" size="{size}"/>
<output><port id="0"><dim>{count}</dim></port></output></layer></layers><edges/></net>"""
    (tmp_path / "m.xml").write_text(xml)
    with (tmp_path / "m.bin").open("wb") as file:
        file.truncate(size)
    model = irexec.read_model(tmp_path / "m.xml")
    lines: list[WeightLine] = []
    assert traced_peak(lambda: lines.extend(weights(model))) < 8 << 20
    assert [(line.zeros, line.mean) for line in lines] == [(1, 0)]


def test_progress_counts_the_bytes() -> None:
    amounts: list[int] = []
    builder = irexec.Builder("m")
    builder.result(builder.constant(np.zeros(2 * _BLOCK, np.float32)))
    weights(builder.model(), amounts.append)
    assert amounts == [4 * _BLOCK, 4 * _BLOCK]
