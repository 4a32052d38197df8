"""When tensors are alive: compared with a search that follows the definition, and with counts by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.display import Curve, TextFormat, lines
from irexec.tools.inspect.memory import liveness, memory


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


def test_what_is_not_known_is_said() -> None:
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
