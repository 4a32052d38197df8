"""Bodies are inferred once from the same facts, and from a bounded number of different ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import MAX_INFERENCES, UNKNOWN, ShapeInference, infer_shapes
from irexec.dtypes.elements import F32
from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node
from tests.support.nested_loops import growing_loops


@pytest.fixture
def inferences(monkeypatch: pytest.MonkeyPatch) -> Counter[Graph]:
    """How often each graph was inferred."""
    counted: Counter[Graph] = Counter()
    plain = ShapeInference.graph

    def count(self: ShapeInference, graph: Graph, given: Mapping[Node, Fact]) -> None:
        counted[graph] += 1
        plain(self, graph, given)

    monkeypatch.setattr(ShapeInference, "graph", count)
    return counted


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_each_loop_in_a_loop_of_constants_is_inferred_as_often_as_one_alone(
    depth: int, inferences: Counter[Graph]
) -> None:
    model = growing_loops(depth, of_constants=True)
    irexec.validate(model)
    # From [1], then from [1..2], then from an unknown size.
    assert max(inferences.values()) == 3
    # Frozen axes are looked for in single layers.
    assert len([graph for graph in inferences if len(graph.nodes) > 1]) == 1 + depth


def test_loops_that_start_from_the_state_around_them_are_inferred_a_bounded_number_of_times(
    inferences: Counter[Graph],
) -> None:
    irexec.validate(growing_loops(6, of_constants=False))
    assert max(inferences.values()) <= 2 + 2 * 6


def test_the_facts_of_a_body_are_those_of_its_last_inference() -> None:
    model = growing_loops(2, of_constants=False)
    (outer,) = (node.bodies["body"].graph for node in model.nodes if node.bodies)
    (inner,) = (node.bodies["body"].graph for node in outer.nodes if node.bodies)
    walk = ShapeInference(tolerant=False)
    walk.graph(model, {})
    settled = {
        value: str(walk.inference[value]) for graph in (outer, inner) for node in graph.nodes for value in node.outputs
    }

    walk.body(outer, "loop2/body", [Fact(F32, (5,))])
    assert walk.inference[outer.parameters[0].outputs[0]].shape == (5,)
    assert {value: str(walk.inference[value]) for value in settled} != settled
    walk.body(outer, "loop2/body", [Fact(F32, (ANY,))])
    assert {value: str(walk.inference[value]) for value in settled} == settled


def test_after_many_different_facts_nothing_is_taken_to_be_known(inferences: Counter[Graph]) -> None:
    model = growing_loops(1, of_constants=True)
    (body,) = (node.bodies["body"].graph for node in model.nodes if node.bodies)
    walk = ShapeInference(tolerant=False)
    for length in range(2 * MAX_INFERENCES):
        walk.body(body, "loop1/body", [Fact(F32, (length,))])
    assert inferences[body] == MAX_INFERENCES + 1
    assert str(walk.inference[body.parameters[0].outputs[0]]) == str(UNKNOWN)


@pytest.mark.parametrize("of_constants", [True, False])
def test_the_deepest_loops_that_are_read_compile_and_run(of_constants: bool) -> None:
    model = growing_loops(60, of_constants=of_constants)
    source = model.results[0].inputs[0]
    assert source is not None
    (y,) = irexec.compile_model(model)([np.ones(1, np.float32)]).values()
    assert y.tolist() == [1, 1]
    assert infer_shapes(model).facts[source].shape == (ANY,)
