"""The compile graph: uses, replacement, removal, order, and what its checker finds."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.constants import ConstantSource
from irexec.compile.graph import CompileGraph, Operation, constant_value, problems
from irexec.compile.lower import lower
from irexec.dtypes.elements import F32


def lowered() -> CompileGraph:
    """x -> Relu -> r; r + r -> s, r * 2 -> p; targets s and p."""
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2, 3), "x")
    r = builder.emit("Relu", x, name="r")
    builder.result(builder.emit("Add", r, r, name="s"))
    builder.result(builder.emit("Multiply", r, builder.constant(2.0), name="p"))
    model = builder.model()
    return lower(model, infer_shapes(model), {})


def named(graph: CompileGraph, name: str) -> Operation:
    return next(operation for operation in graph if operation.node.name == name)


def test_values_know_their_uses() -> None:
    graph = lowered()
    r, s, p = (named(graph, name) for name in "rsp")
    assert r.output.uses == [(s, 0), (s, 1), (p, 0)]
    assert r.output.readers == [s, p]
    assert [graph.is_target(operation.output) for operation in (r, s, p)] == [False, True, True]
    assert problems(graph) == []


def test_replacing_a_value_reaches_readers_and_targets() -> None:
    graph = lowered()
    r, s, p = (named(graph, name) for name in "rsp")
    graph.replace_all_uses_with(r.output, graph.inputs[0])
    graph.replace_all_uses_with(s.output, p.output)
    graph.remove(r)
    graph.remove_unused()
    assert list(graph) == [p]
    assert p.inputs[0] is graph.inputs[0]
    assert graph.targets == [p.output, p.output]
    assert problems(graph) == []


def test_what_is_used_cannot_be_removed() -> None:
    graph = lowered()
    with pytest.raises(ValueError, match="is removed while its outputs are used"):
        graph.remove(named(graph, "r"))


def test_operations_come_after_what_they_read() -> None:
    graph = lowered()
    r, s, _ = (named(graph, name) for name in "rsp")
    graph.set_inputs(s, [r.output, constant_value(ConstantSource.of(np.ones((2, 3), np.float32), F32))])
    s.rank = -0.5
    order = graph.order()
    assert order.index(r) < order.index(s)


def test_a_cycle_is_refused() -> None:
    graph = lowered()
    r, s, _ = (named(graph, name) for name in "rsp")
    graph.set_inputs(r, [s.output])
    with pytest.raises(ValueError, match="cycle"):
        graph.order()
    assert problems(graph) == ["the compile graph has a cycle"]


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (lambda r, s: s.output.uses.append((r, 0)), "is said to be used by"),
        (lambda r, s: r.output.uses.pop(), "does not count it among its uses"),
        (lambda r, s: setattr(r.output, "producer", s), "does not name"),
    ],
    ids=["a use that is none", "a use that is missing", "another producer"],
)
def test_the_checker_finds_damage(damage, finding: str) -> None:
    graph = lowered()
    damage(named(graph, "r"), named(graph, "s"))
    assert any(finding in problem for problem in problems(graph))
