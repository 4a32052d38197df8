"""States in the rows of a table: their intervals follow from step to step, hold, and stay narrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Interval, caches_after, graph_bounds
from irexec.dtypes.elements import element
from irexec.ir.graph import Value
from irexec.tools.judge import judge
from tests.tools.judge.faulty import plant

H, G, K, V = 4, 2, 8, 6
TOKENS = {
    "x": (V,),
    "q": (G, K),
    "k": (G, K),
    "v": (H, V),
    "gate": (H,),
    "beta": (H,),
    "dt": (H,),
    "b": (G, K),
    "c": (G, K),
}
OPERATIONS: dict[str, tuple[list[str], tuple[int, ...], dict[str, Any]]] = {
    "PagedGatedDeltaNet": (["q", "k", "v", "table", "gate", "beta"], (H, V, K), {"use_qk_l2norm": True}),
    "PagedSelectiveSSM": (["a", "dt", "b", "v", "c", "table"], (H, V, K), {}),
    "PagedCausalConv1D": (["x", "table", "weight", "bias"], (V, 4), {}),
}
"""The inputs, the shape of a row of the table, and the attributes."""


def steps_of(type: str, count: int, kind: str = "f32") -> tuple[irexec.Model, list[dict[str, np.ndarray]]]:
    """A model of one layer, and the inputs of steps of two sequences, each with three new tokens."""
    names, row, attributes = OPERATIONS[type]
    carrier, rng = np.float16 if kind == "f16" else np.float32, np.random.default_rng(5)
    shapes = TOKENS | {"table": (5, *row), "a": (H,), "weight": (V, 1, 4), "bias": (V,)}
    lead = {name: (6, *shape) if name in TOKENS else shape for name, shape in shapes.items()}
    builder = irexec.Builder("m")
    values = [builder.parameter(kind, lead[name], name) for name in names]
    places = [
        builder.parameter("i32", (-1,), name) for name in ("begins", "blocks", "block_begins", "past", "interval")
    ]
    builder.result(builder.emit(type, *values, *places, version="extension", name="layer", **attributes))
    given = []
    for step in range(count):
        low = {"gate": -0.1, "a": -0.1, "beta": 0, "dt": 0}
        arrays = {name: rng.uniform(low.get(name, -1), 0 if name in ("gate", "a") else 1, lead[name]) for name in names}
        fixed = {name: array for name, array in given[0].items() if name in ("a", "weight", "bias")} if given else {}
        blocks = np.int32([0, 1, 3, 2]) if step % 2 else np.int32([1, 0, 2, 3])
        # An interval above 0 writes a row as well as no interval, where the state does not end one.
        every = np.int32([0, 0]) if type != "PagedSelectiveSSM" else np.int32([100, 100])
        placed = {
            "begins": [0, 3, 6],
            "blocks": blocks,
            "block_begins": [0, 2, 4],
            "past": [3 * step] * 2,
            "interval": every,
        }
        given.append(
            {name: array.astype(carrier) for name, array in arrays.items()} | fixed
            | {name: np.int32(array) for name, array in placed.items()}
        )  # fmt: skip
        given[-1]["table"] = given[0]["table"]
    return builder.model(), given


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("type", OPERATIONS)
def test_results_of_later_steps_are_in_their_intervals(type: str, kind: str) -> None:
    model, given = steps_of(type, 12, kind)
    facts, session = infer_shapes(model).facts, irexec.compile_model(model)
    (node,) = [node for node in model.nodes if node.type == type]
    inputs = {port.name: port.node.outputs[0] for port in model.inputs}
    table: dict[Value, Interval] = {}
    for step in given:
        y = np.asarray(session(step)[0])
        arrays = {inputs[name]: array for name, array in step.items()} | table
        bound = graph_bounds([node], arrays, facts, ARITHMETICS[kind])[node.outputs[0]]
        assert isinstance(bound, Interval)
        assert not bound.outside(y).any()
        assert bound.outside(y + np.abs(y).max() * (0.03 if kind == "f32" else 0.5)).all()
        assert bound.radius.max() < (1e-4 if kind == "f32" else 0.6) * np.abs(bound.exact).max()
        left = caches_after(node, arrays, facts, ARITHMETICS[kind])
        table = {inputs["table"]: left[next(iter(left))]}
    assert element(kind) is facts[inputs["table"]].element


@pytest.mark.parametrize("type", OPERATIONS)
def test_judge_names_the_step_of_a_fault(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = steps_of(type, 5)
    found = judge(model, given, runtime=plant(monkeypatch))
    assert found.verdict == "agrees", found.sentence
    assert [one.state for one in found.layers if one.layer.type == type] == ["inside"]
    calls = []

    def changed(value: Value, array: np.ndarray) -> np.ndarray:
        calls.append(value)
        return array * np.float32(1.001) if value.node.type == type and (array_is_late(array, given[3])) else array

    def array_is_late(array: np.ndarray, step: dict[str, np.ndarray]) -> bool:
        return bool(np.array_equal(array, outputs[3]))

    session = irexec.compile_model(model)
    outputs = [np.array(session(step)[0]) for step in given]
    found = judge(model, given, runtime=plant(monkeypatch, change=changed))
    assert (found.verdict, found.step, found.at[0].layer.name) == ("bug", 4, "layer"), found.sentence


def test_a_row_that_another_sequence_writes_has_no_bound() -> None:
    model, given = steps_of("PagedCausalConv1D", 1)
    (node,) = [node for node in model.nodes if node.type == "PagedCausalConv1D"]
    step = given[0] | {"blocks": np.int32([1, 0, 0, 3])}
    arrays = {port.node.outputs[0]: step[port.name] for port in model.inputs}
    bound = graph_bounds([node], arrays, infer_shapes(model).facts, ARITHMETICS["f32"])[node.outputs[0]]
    assert "begins with a row that another one writes" in str(bound)
