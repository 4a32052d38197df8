"""The table of passes: their order, errors that name a pass, and the check of what a pass leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.constants import ConstantSource
from irexec.backend.recording import CHECK_PASSES
from irexec.compile import passes
from irexec.compile.graph import CompileGraph, Operation, constant_value, problems
from irexec.compile.lower import lower
from irexec.compile.passes import PASSES, Pass, check_order
from irexec.compile.rewriting import Rewriting
from irexec.dtypes.elements import F32
from irexec.errors import InputError


def _relu() -> irexec.Model:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (3,), "x")))
    return builder.model()


def _replace(monkeypatch: pytest.MonkeyPatch, rewrite: Callable[[CompileGraph, Rewriting], None]) -> None:
    """Let ``rewrite`` run as the pass that removes no-ops."""
    table = tuple(Pass(one.name, rewrite) if one.name == "remove no-ops" else one for one in PASSES)
    monkeypatch.setattr(passes, "PASSES", table)


def _misplace_outputs(graph: CompileGraph, rewriting: Rewriting) -> None:
    for operation in graph:
        operation.output.index = 7


def _fail(graph: CompileGraph, rewriting: Rewriting) -> None:
    raise KeyError("axis")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((("a", ("b",), ()), ("b", (), ())), "pass 'b' must run before pass 'a'"),
        ((("a", (), ()), ("b", (), ("a",))), "pass 'b' must run before pass 'a'"),
        ((("a", ("a",), ()),), "pass 'a' must run before pass 'a'"),
        ((("a", ("c",), ()),), "pass 'a' names 'c' and 'a', one of which does not exist"),
    ],
)
def test_the_declared_order_is_checked(
    rows: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_order([Pass(name, _fail, after, before) for name, after, before in rows])


def test_an_order_that_is_kept() -> None:
    check_order([Pass("a", _fail, before=("c",)), Pass("b", _fail), Pass("c", _fail, after=("a", "b"))])


def test_an_exception_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace(monkeypatch, _fail)
    with pytest.raises(KeyError) as raised:
        irexec.compile_model(_relu())
    assert raised.value.__notes__ == ["in pass 'remove no-ops'"]


@pytest.mark.parametrize("value", ["1", " 1 "])
def test_what_a_pass_leaves_is_checked(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(CHECK_PASSES, value)
    _replace(monkeypatch, _misplace_outputs)
    with pytest.raises(
        AssertionError,
        match=r"^pass 'remove no-ops' leaves a graph in which <CompileValue .*> does not name <Relu .*> as its producer",
    ):
        irexec.compile_model(_relu())


@pytest.mark.parametrize("value", ["", "0"])
def test_without_the_variable_nothing_is_checked(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(CHECK_PASSES, value)
    _replace(monkeypatch, _misplace_outputs)
    model = irexec.compile_model(_relu())
    np.testing.assert_array_equal(model([np.float32([-1, 0, 2])])[0], [0, 0, 2])


def test_other_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECK_PASSES, "yes")
    with pytest.raises(InputError, match=r"^IREXEC_CHECK_PASSES is 'yes', expected 0 or 1$"):
        irexec.compile_model(_relu())


# The compile graph: uses, replacement, removal, order, and what its checker finds.


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
