"""What a builder refuses, and that nothing is left of what it has refused."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.errors import OpError


def test_a_value_of_another_builder() -> None:
    builder, other = irexec.Builder("one"), irexec.Builder("two")
    foreign = other.parameter("f32", (2,), "x")
    for use in (
        lambda: builder.emit("Relu", foreign),
        lambda: builder.result(foreign),
        lambda: builder.clone_node(foreign.node, foreign),
    ):
        with pytest.raises(OpError, match=r"^<Value 'x'.*> is a value of another builder than <Builder 'one'"):
            use()
    assert builder.graph.nodes == []


def test_a_body_has_no_values_of_the_graph_around_it() -> None:
    """IR gives them to a body through its Parameters."""
    around = irexec.Builder("around")
    x = around.parameter("f32", (2,), "x")
    with pytest.raises(OpError, match=r"^<Value 'x'.*> is a value of another builder"):
        irexec.Builder("body", inside=around).emit("Relu", x)


def test_a_value_that_was_dropped() -> None:
    builder = irexec.Builder("dropped")
    x = builder.parameter("f32", (2,), "x")
    builder.result(builder.emit("Relu", x))
    unused = builder.emit("Exp", x)
    builder.drop_unused()
    with pytest.raises(OpError, match="is a value of another builder"):
        builder.result(unused)


def test_nothing_is_left_of_an_operation_that_is_refused() -> None:
    builder = irexec.Builder("undone")
    x = builder.parameter("f32", (2, 3), "x")
    with pytest.raises(irexec.NodeError, match="'sum'"):
        builder.emit("Add", x, np.zeros((5, 5), np.float32), name="sum")
    builder.result(builder.emit("Add", x, np.float32(1), name="sum"))
    assert [node.name for node in builder.graph.nodes if node.type != "Constant"] == ["x", "sum", "sum/sink_port_0"]
    assert irexec.validate(builder.model()) == []


@pytest.mark.parametrize("array", [[[1], [1, 2]], [np.zeros(2), np.zeros(3)]])
def test_a_constant_that_is_no_array(array: list[object]) -> None:
    with pytest.raises(OpError, match="a constant is not an array"):
        irexec.Builder().constant(array)
