"""The table of passes: their order, errors that name a pass, and the check of what a pass leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.backend.recording import CHECK_PASSES
from irexec.compile import passes
from irexec.compile.graph import CompileGraph
from irexec.compile.passes import PASSES, Pass, check_order
from irexec.compile.rewriting import Rewriting
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
