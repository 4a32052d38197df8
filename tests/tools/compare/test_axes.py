"""Faults that move axes, and layers in the bodies of loops and branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, Model
from irexec.analysis.builder import packed
from irexec.ir.constants import constant_value
from irexec.ir.graph import Value
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.compare.layers import KnownConstants
from irexec.tools.compare.options import opened_runtime
from irexec.tools.observing.alone import Alone
from irexec.tools.observing.observe import Observed
from irexec.tools.observing.sides import ModelSide
from tests.support.paths import IRS
from tests.support.tiers import some
from tests.tools.compare.models import W2, branching, chain, changed, growing, nested, nested_deeper
from tests.tools.compare.test_evidence import likely

RNG = np.random.default_rng(17)
SQUARE, SHIFT, HEAD = (RNG.normal(size=size).astype(np.float32) for size in ((6, 6), 6, (6, 5)))


@pytest.mark.parametrize("is_exchanged", [False, True])
@pytest.mark.parametrize("shape", [(6,), (1, 6)])
def test_a_product_with_swapped_operands_is_named_alone(shape: tuple[int, ...], is_exchanged: bool) -> None:
    """The layer after it computes what A's layer does, whatever axes of size 1 its constant has, and in any order of
    its operands."""
    square = SQUARE + SQUARE.T

    def model(name: str, swapped: bool) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (6, 6), "x"), name=f"{name}.tanh")
        product = b.emit("MatMul", *((square, x) if swapped else (x, square)), name=f"{name}.product")
        shift = b.constant(SHIFT.reshape(shape if swapped else (6,)))
        operands = (shift, product) if swapped and is_exchanged else (product, shift)
        total = b.emit("Add", *operands, name=f"{name}.shift")
        b.result(b.emit("Softmax", total, axis=1, name=f"{name}.y"))
        return b.model()

    values = RNG.normal(size=(6, 6)).astype(np.float32)
    found = compare(model("A", False), model("B", True), {"x": values + values.T})
    assert likely(found) == ["B.product"]
    assert found.first is not None
    assert "'B.shift' reads in A's order" in found.first.row.agreement.message


def test_a_transpose_in_front_of_a_computed_shape_is_named_alone() -> None:
    """The shape that the Reshape reads is right: its result has A's shape."""

    def model(name: str, axes: list[int]) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (1, 6, 6, 4), "x"), name=f"{name}.tanh")
        moved = b.emit("Transpose", x, np.array(axes), name=f"{name}.move")
        size = b.emit("Gather", b.emit("ShapeOf", x), np.array([3]), np.array(0), name=f"{name}.size")
        shape = b.emit("Concat", size, np.array([36]), axis=0, name=f"{name}.shape")
        x = b.emit("Reshape", moved, shape, special_zero=False, name=f"{name}.flat")
        b.result(b.emit("Softmax", x, axis=1, name=f"{name}.y"))
        return b.model()

    assert likely(compare(model("A", [0, 3, 1, 2]), model("B", [0, 3, 2, 1]))) == ["B.move"]


def recurrent(name: str, axes: list[int], closing: list[int] | None) -> Model:
    """Features along the sequence, then a head; ``closing`` brings the axis of the batch to the front at the end."""
    b = Builder(name)
    x = b.emit("Tanh", b.parameter("f32", (1, 7, 2, 3), "x"), name=f"{name}.tanh")
    x = b.emit("Transpose", x, np.array(axes), name=f"{name}.move")
    shape = [1, 7, 6] if axes[0] == 0 else [7, 1, 6]
    x = b.emit("Reshape", x, np.array(shape), special_zero=False, name=f"{name}.flat")
    x = b.emit("Add", b.emit("MatMul", x, HEAD, name=f"{name}.head"), SHIFT[:5], name=f"{name}.shift")
    x = x if closing is None else b.emit("Transpose", x, np.array(closing), name=f"{name}.close")
    b.result(b.emit("LogSoftmax", x, axis=2 if closing else -1, name=f"{name}.y"))
    return b.model()


def test_a_transpose_far_ahead_that_moves_an_axis_of_size_1_is_in_the_set() -> None:
    """Layers between pass the axes on: the set has the layers that move axes, and no product or sum."""
    right = recurrent("B", [0, 1, 2, 3], None)
    assert compare(recurrent("A", [1, 0, 2, 3], [1, 0, 2]), right).agrees
    found = compare(recurrent("A", [1, 0, 2, 3], [1, 0, 2]), recurrent("B", [1, 0, 2, 3], None))
    assert not found.agrees
    assert "B.move" in likely(found) and len(likely(found)) <= 5


@pytest.mark.parametrize("keep", [False, True])
def test_a_result_of_another_shape_has_its_layer(keep: bool) -> None:
    """The elements are those of A, so that values alone show no fault; rounding is not the reason."""

    def model(name: str, keep_dims: bool) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (1, 6, 6), "x"), name=f"{name}.tanh")
        x = b.emit("ReduceMax", x, np.array([1]), keep_dims=keep_dims, name=f"{name}.max")
        b.result(b.emit("Add", b.emit("MatMul", x, HEAD, name=f"{name}.head"), SHIFT[:5], name=f"{name}.y"))
        return b.model()

    found = compare(model("A", keep), model("B", not keep))
    assert not found.agrees and not found.verdict
    assert likely(found) == ["B.max"]


def test_an_attribute_is_at_fault_although_later_tensors_are_within_the_tolerance() -> None:
    """Layers after it hide the difference, and the last one shows it again."""

    def model(name: str, eps: float) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (4, 8), "x")
        x = b.emit(
            "MVN", x, np.array([1]), normalize_variance=True, eps=eps, eps_mode="inside_sqrt", name=f"{name}.norm"
        )
        high = b.emit("Add", x, np.float32(40), name=f"{name}.high")
        b.result(b.emit("Subtract", high, np.float32(40), name=f"{name}.y"))
        return b.model()

    x = {"x": RNG.normal(size=(4, 8)).astype(np.float32)}
    found = compare(model("A", 1e-5), model("B", 8e-4), x)
    assert likely(found) == ["B.norm"]


def test_an_axis_counted_from_the_end_is_not_a_difference() -> None:
    def model(name: str, axis: int, weights: np.ndarray) -> Model:
        b = Builder(name)
        x = b.emit("MatMul", b.parameter("f32", (2, 3, 6), "x"), weights, name=f"{name}.product")
        b.result(b.emit("Softmax", x, axis=axis, name=f"{name}.y"))
        return b.model()

    found = compare(model("A", 2, HEAD), model("B", -1, HEAD * 2))
    assert likely(found) == ["B.product"]
    found = compare(model("A", 2, HEAD), model("B", 1, HEAD))
    assert found.first is not None and found.first.suspect.attributes == {"axis": ("2", "1")}


def test_a_bias_with_a_folded_factor_is_known() -> None:
    def model(bias: np.ndarray) -> Model:
        b = Builder("m")
        x = b.emit("Add", b.parameter("f32", (1, 32), "x"), bias)
        b.result(b.emit("Add", x, np.ones(48, np.float32)[:32]))
        return b.model()

    bias = RNG.normal(size=32).astype(np.float32)
    assert not KnownConstants(model(bias)).unknown(model(bias * np.float32(0.35)))


def test_a_layer_that_does_not_fit_hides_no_other() -> None:
    """A tensor of another number of elements stops the layer that reads it, and no other of the same batch."""
    b = Builder("m")
    x = b.parameter("f32", (2, 3), "x")
    good = b.emit("Relu", x, name="good")
    other = b.emit("Tanh", x, name="other")
    bad = b.emit("Reshape", other, np.array([3, 2]), special_zero=False, name="bad")
    b.result(good)
    b.result(bad)
    side = ModelSide("m", b.model(), "irexec")
    copies = {node.name: node.outputs[0] for node in side.model.nodes if node.outputs}
    arrays = {copies["x"]: [np.ones((2, 3), np.float32)], copies["other"]: [np.ones(5, np.float32)]}
    alone = Alone(side, set(arrays), {})
    asked = [copies["good"], copies["bad"]]
    found = alone.observed_each(
        asked, Observed(arrays), 1, lambda model: opened_runtime(CompareOptions(), "irexec", model)
    )
    assert list(found.arrays) == [copies["good"]] and list(found.failures) == [copies["bad"]]


def attention(name: str, *, fused: bool, tokens: int = 5, causal: str = "", exchanged: bool = False) -> Model:
    """Two layers of attention, as layers with transposed keys or as one layer; the last arguments are faults."""
    b = Builder(name)
    x, mask = b.parameter("f32", (2, tokens, 8), "x"), b.parameter("f32", (2, 1, tokens, tokens), "mask")
    operands = (b.constant(np.float32(1)), mask)
    mask = b.emit("Subtract", *(operands[::-1] if exchanged else operands), name=f"{name}.inverse")
    mask = b.emit("Multiply", mask, np.float32(-1e4), name=f"{name}.mask")
    rng = np.random.default_rng(4)

    def heads(kind: str, source: Value, order: list[int]) -> Value:
        made = b.emit("MatMul", source, rng.normal(size=(8, 8)).astype(np.float32), name=f"{name}.{kind}")
        made = b.emit("Reshape", made, np.array([0, 0, 4, 2]), special_zero=True, name=f"{name}.{kind}.heads")
        return b.emit("Transpose", made, np.array(order), name=f"{name}.{kind}.moved")

    for i in "01":
        keys = [0, 2, 1, 3] if fused else [0, 2, 3, 1]
        q, k, v = (heads(f"{kind}{i}", x, keys if kind == "k" else [0, 2, 1, 3]) for kind in "qkv")
        if fused:
            inputs = [q, k, v, mask, b.constant(np.float32(0.5))]
            x2 = b.emit("ScaledDotProductAttention", *inputs, causal=causal == i, version=13, name=f"{name}.mixed{i}")
        else:
            weights = b.emit("MatMul", b.emit("Multiply", q, np.float32(0.5)), k, name=f"{name}.weights{i}")
            weights = b.emit("Add", weights, mask, name=f"{name}.masked{i}")
            x2 = b.emit(
                "MatMul", b.emit("Softmax", weights, axis=-1, name=f"{name}.soft{i}"), v, name=f"{name}.mixed{i}"
            )
        x2 = b.emit("Transpose", x2, np.array([0, 2, 1, 3]), name=f"{name}.back{i}")
        x = b.emit("Add", x, b.emit("Reshape", x2, np.array([0, 0, 8]), special_zero=True), name=f"{name}.sum{i}")
    b.result(x)
    return b.model()


def changed_weight(model: Model, name: str) -> Model:
    """The model with other weights in a product."""
    source = next(node for node in model.nodes if node.name == name).inputs[1]
    assert source is not None and source.node.constant is not None
    weights = constant_value(source.node.constant).copy()
    weights[2, 3] += 2.0
    source.node.constant = packed(weights, source.node.constant.element)
    return model


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("fault", ["B.q0", "B.v0", "B.v1", "B.mixed1", "B.inverse"])
@pytest.mark.covering(1)
def test_keys_that_one_exporter_transposes_are_not_blamed(fault: str, tokens: int) -> None:
    """They are A's keys with axes in another order, or with axes of size 1 elsewhere. The mask outweighs them."""
    right = attention("A", fused=False, tokens=tokens)
    if fault == "B.inverse":
        wrong = attention("B", fused=True, tokens=tokens, exchanged=True)
    elif fault == "B.mixed1":
        wrong = attention("B", fused=True, tokens=tokens, causal="1")
    else:
        wrong = changed_weight(attention("B", fused=True, tokens=tokens), fault)
    assert compare(right, attention("B", fused=True, tokens=tokens)).agrees
    found = compare(right, wrong)
    if tokens == 1 and fault in ("B.mixed1", "B.inverse"):
        assert found.agrees
    else:
        assert likely(found) == [fault]


# compare: layers in the bodies of loops and branches.


def body_of(model: Model) -> irexec.ir.graph.Graph:
    return next(body.graph for node in model.nodes for body in node.bodies.values())


def replaced(graph: irexec.ir.graph.Graph, old: str, new: str) -> str:
    """Make the layer of one type one of another; its name."""
    node = next(node for node in graph.nodes if node.type == old)
    node.type = new
    return node.name


@pytest.mark.parametrize(
    ("file", "old", "new", "iteration"),
    [
        ("tensor_iterator", "Tanh", "Sigmoid", (0,)),
        ("tensor_iterator", "Add", "Multiply", (0,)),
        ("loop", "Add", "Maximum", (0,)),
    ],
)
def test_a_layer_in_a_body(file: str, old: str, new: str, iteration: tuple[int, ...]) -> None:
    a, b = irexec.read_model(IRS / f"{file}.xml"), irexec.read_model(IRS / f"{file}.xml")
    name = replaced(body_of(b), old, new)
    found = compare(a, b)
    assert found.first is not None
    assert found.first.row.b.name.endswith(f"/body/{name}")
    assert found.first.row.iteration == iteration
    assert [layer.name for layer in found.independent] == [found.first.row.b.name]
    assert compare(a, a, options=CompareOptions(a_runtime="reference")).agrees


def test_a_later_iteration() -> None:
    """Inputs of which only the third step differs: a layer that clips above 5 is the same before."""

    def model(limit: float) -> Model:
        made = irexec.read_model(IRS / "tensor_iterator.xml")
        node = next(node for node in body_of(made).nodes if node.type == "Tanh")
        node.type, node.attributes = "Clamp", {"min": "-100", "max": str(limit)}
        return made

    x = np.ones((2, 4, 3), np.float32)
    inputs = {"x": x, "start": np.zeros((2, 3), np.float32)}
    found = compare(model(2.5), model(100), inputs)
    assert found.first is not None
    assert found.first.row.iteration == (2,)
    assert found.first.inputs_agree is True


def test_tensors_whose_shape_changes_from_iteration_to_iteration() -> None:
    """A row of ones is 2, 4, 8 and 16 after the iterations: above 10 in the last one."""
    x = {"x": np.ones((1, 3), np.float32)}
    whole = compare(growing(), growing(), x)
    assert (whole.agrees, whole.uncompared) == (True, ())
    assert [row.b.name for row in whole.rows if row.b.type != "Constant"] == [
        "loop/body/longer",
        "loop/body/doubled",
        "loop/body/clipped",
        "loop",
    ]
    found = compare(growing(), growing(limit=10), x)
    assert found.uncompared == ()
    assert found.first is not None
    assert (found.first.row.b.name, found.first.row.iteration, found.first.row.shape) == (
        "loop/body/clipped",
        (3,),
        (5, 3),
    )
    assert found.first.inputs_agree is True


def test_a_loop_whose_tensors_grow_that_runs_longer() -> None:
    found = compare(growing(trips=3), growing(trips=4), {"x": np.ones((1, 3), np.float32)})
    row = next(row for row in found.rows if row.b.name == "loop/body/longer")
    assert row.agreement.message == "B computes it 4 times, A 3 times"


def test_tensors_that_grow_in_openvino() -> None:
    pytest.importorskip("openvino")
    found = compare(growing(), inputs={"x": np.ones((1, 3), np.float32)}, options=CompareOptions(b_runtime="openvino"))
    assert (found.agrees, found.uncompared, len(found.rows)) == (True, (), 5)


RUNTIMES = ["reference", "openvino"]
ONES = {"x": np.ones((2, 3), np.float32)}


def _options(runtime: str) -> CompareOptions:
    if runtime == "openvino":
        pytest.importorskip("openvino")
    return CompareOptions(b_runtime=runtime)


def _first(found: Comparison) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    assert found.first is not None
    assert found.first.inputs_agree is True
    row = found.first.row
    return row.b.name, row.iteration, row.shape


@pytest.mark.parametrize("runtime", some(RUNTIMES, ["reference"]))
@pytest.mark.parametrize(("first", "grows"), [(1, False), (0, False), (1, True)])
def test_an_inner_loop_whose_number_of_iterations_changes(runtime: str, first: int, grows: bool) -> None:
    model = nested(first=first, grows=grows)
    found = compare(model, model, ONES, options=_options(runtime))
    assert (found.agrees, found.uncompared) == (True, ())
    row = next(row for row in found.rows if row.b.name == "outer/body/inner/body/clipped")
    assert row.iteration == (1 - first, 0)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", some(RUNTIMES, ["reference"]))
def test_a_layer_of_an_inner_loop(runtime: str) -> None:
    """A row of ones is 4, 10 and 20, 42 and 84 and 168 in the iterations: above 60 in (2, 1)."""
    options = _options(runtime)
    clipped = "outer/body/inner/body/clipped"
    assert _first(compare(nested(), nested(limit=60), ONES, options=options)) == (clipped, (2, 1), (2, 3))
    growing_too = compare(nested(grows=True), nested(limit=60, grows=True), ONES, options=options)
    assert _first(growing_too) == (clipped, (2, 1), (7, 3))


def test_an_inner_loop_from_files(tmp_path: Path) -> None:
    """Ports have ids in a file."""
    nested().save(tmp_path / "a.xml")
    nested(limit=60).save(tmp_path / "b.xml")
    found = compare(irexec.read_model(tmp_path / "a.xml"), irexec.read_model(tmp_path / "b.xml"), ONES)
    assert _first(found) == ("outer/body/inner/body/clipped", (2, 1), (2, 3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_loop_in_a_loop_in_a_loop(runtime: str) -> None:
    """The innermost loop runs 0 times in every first iteration; OpenVINO keeps the slices of its last run."""
    options = _options(runtime)
    found = compare(nested_deeper(), nested_deeper(), ONES, options=options)
    assert (found.agrees, found.uncompared) == (True, ())
    changed_limit = compare(nested_deeper(), nested_deeper(limit=8), ONES, options=options)
    assert _first(changed_limit) == ("outer/body/inner/body/innermost/body/clipped", (2, 1, 0), (2, 3))


def test_an_inner_loop_that_runs_more_often() -> None:
    found = compare(nested(first=1), nested(first=2), ONES)
    row = next(row for row in found.rows if row.b.name == "outer/body/inner/body/clipped")
    assert (row.iteration, row.agreement.message) == ((0, 1), "B computes it 9 times, A 6 times")


@pytest.mark.parametrize("runtime", some(RUNTIMES, ["reference"]))
def test_branches_in_a_loop(runtime: str) -> None:
    options = _options(runtime)
    inside = "outer/body/choice/then_body/"
    found = compare(branching(1), branching(1), ONES, options=options)
    assert (found.agrees, found.uncompared) == (True, ())
    assert next(row.iteration for row in found.rows if row.b.name == f"{inside}clipped") == (1,)
    assert _first(compare(branching(1), branching(1, limit=2), ONES, options=options))[:2] == (f"{inside}clipped", (1,))
    never = compare(branching(5), branching(5), ONES, options=options)
    assert never.agrees
    assert {one.reason for one in never.uncompared} == {"its body does not run with these inputs"}
    assert not [row for row in never.rows if row.b.name.startswith(inside)]


def test_a_branch_that_is_not_taken_is_listed() -> None:
    a, b = irexec.read_model(IRS / "branch.xml"), irexec.read_model(IRS / "branch.xml")
    found = compare(a, b)
    assert found.agrees
    assert {one.reason for one in found.uncompared} == {"its body does not run with these inputs"}


def test_batches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(chain(), chain(w2=changed(W2)))
    parts: list[float] = []
    monkeypatch.setattr("irexec.tools.compare.evidence._BUDGET", 1)
    apart = compare(chain(), chain(w2=changed(W2)), advance=parts.append)
    assert apart.rows == whole.rows
    assert len(parts) > 2 * len(whole.rows)
    assert sum(parts) <= 1 + 1e-9
