"""Parts of a model as models of their own: what is left runs, validates, and gives what the model gave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.analysis.submodel import extract, frontier, with_shapes
from irexec.errors import ModelError
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from tests.support.equality import differences
from tests.support.paths import ROOT

CLASSIFIER = ROOT / "samples" / "digits" / "classifier.xml"
INPUT = np.random.default_rng(3).random((1, 1, 8, 8), np.float32)


def layers(model: irexec.Model) -> list[Node]:
    return [node for node in model.nodes if node.type not in ("Parameter", "Constant", "Result")]


def declared(value: Value) -> Fact | None:
    return value.fact


def test_all_layers_are_the_model_itself() -> None:
    model = irexec.read_model(CLASSIFIER)
    assert differences(model, extract(model, layers(model), declared).model, ports=True) == []


@pytest.mark.slow
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_part_gives_what_the_model_gave(data: st.DataObject) -> None:
    model = irexec.read_model(CLASSIFIER)
    values = [value for node in model.nodes for value in node.outputs]
    arrays = dict(zip(values, irexec.compile_model(model).values(INPUT, values), strict=True))
    keep = data.draw(st.sets(st.sampled_from(layers(model)), min_size=1))
    made = extract(model, keep, declared)
    assert [finding for finding in irexec.validate(made.model) if finding.code != "IR302"] == []
    assert {node.name for node in layers(made.model)} == {node.name for node in keep}
    assert list(made.results) == frontier(model, keep)
    given = [INPUT if value.node.type == "Parameter" else arrays[value] for value in made.feeds]
    results = irexec.compile_model(made.model)(given)
    for value, array in zip(made.results, results.values(), strict=True):
        np.testing.assert_allclose(array, arrays[value], rtol=1e-4, atol=1e-5)


def small() -> tuple[irexec.Model, dict[str, Value]]:
    """x -> relu -> sigmoid, x + sigmoid; top-k of the sum has two outputs."""
    builder = irexec.Builder("small")
    x = builder.parameter("f32", ("?", 6), "x")
    relu = builder.emit("Relu", x, name="relu")
    sigmoid = builder.emit("Sigmoid", relu, name="sigmoid")
    total = builder.emit("Add", x, sigmoid, name="total")
    best, indices = builder.emit("TopK", total, np.int64(2), axis=1, mode="max", sort="value", name="best")
    builder.result(builder.emit("Abs", best, name="abs"), "found")
    builder.result(indices, "where")
    named = {"x": x, "relu": relu, "sigmoid": sigmoid, "total": total, "best": best, "indices": indices}
    return builder.model(), named


def test_what_stands_for_a_value_has_its_names_and_id() -> None:
    model, values = small()
    made = extract(model, [values["total"].node], declared)
    assert [(node.id, node.name, node.type) for node in made.model.nodes[:3]] == [
        (values["x"].node.id, "x", "Parameter"), (values["sigmoid"].node.id, "sigmoid", "Parameter"), (values["total"].node.id, "total", "Add"),
    ]  # fmt: skip
    assert made.feeds == (values["x"], values["sigmoid"])


def test_several_outputs_of_a_layer_that_is_cut() -> None:
    model, values = small()
    readers = [node for node in model.nodes if node.name == "abs"]
    made = extract(
        model, readers, declared, results=[value for node in readers for value in node.outputs] + [values["indices"]]
    )
    assert [port.name for port in made.model.inputs] == ["best", "where"]
    assert [port.name for port in made.model.outputs] == ["found", "where"]
    assert (
        len({node.name for node in made.model.nodes})
        == len({node.id for node in made.model.nodes})
        == len(made.model.nodes)
    )


def test_a_known_value_becomes_a_constant() -> None:
    model, values = small()
    array = np.ones((2, 6), np.float32)
    made = extract(model, [values["total"].node], lambda value: Fact(irexec.f32, (2, 6), array))
    assert [node.type for node in made.model.nodes] == ["Parameter", "Constant", "Add", "Result"]
    np.testing.assert_array_equal(irexec.compile_model(made.model)(array)[0], 2 * array)


def test_a_layer_is_bypassed() -> None:
    model, values = small()
    keep = [values["relu"].node, values["total"].node]
    made = extract(model, keep, declared, bypass={values["sigmoid"]: values["relu"]})
    assert [node.name for node in layers(made.model)] == ["relu", "total"]
    x = np.array([[-1, 2, 3, 4, 5, 6]], np.float32)
    np.testing.assert_array_equal(irexec.compile_model(made.model)(x)[0], x + np.maximum(x, 0))


def test_nothing_can_stand_for_an_unknown_value() -> None:
    model, values = small()
    with pytest.raises(ModelError, match="neither the type nor the rank of 'sigmoid':0 is known"):
        extract(model, [values["total"].node], lambda value: None)


def test_shapes_are_given_where_ports_leave_them_open() -> None:
    model, values = small()
    made = with_shapes(model, {values["x"].node.id: (3, 6)})
    assert [str(value.fact) for node in layers(made) for value in node.outputs] == [
        "f32[3,6]", "f32[3,6]", "f32[3,6]", "f32[3,2]", "i32[3,2]", "f32[3,2]",
    ]  # fmt: skip
    assert values["relu"].fact is not None and not values["relu"].fact.is_static


def test_a_wrong_declaration_stays() -> None:
    model, values = small()
    values["relu"].fact = Fact(irexec.f32, (9, 7))
    made = with_shapes(model, {values["x"].node.id: (3, 6)})
    assert (
        {finding.code for finding in irexec.validate(made)}
        == {finding.code for finding in irexec.validate(model)}
        == {"IR201"}
    )


def test_damage_is_left_behind() -> None:
    model = irexec.read_model(ROOT / "samples" / "digits" / "damaged.xml")
    facts = infer_shapes(model, tolerant=True).facts
    convolution = next(node for node in model.nodes if node.type == "Convolution")
    made = extract(model, [convolution], lambda value: value.fact or facts.get(value))
    assert made.model.problems == []
    assert [node.type for node in made.model.nodes] == ["Parameter", "Parameter", "Convolution", "Result"]
    irexec.io.write_text(made.model)
