"""Patterns match every spelling of the same arithmetic, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from irexec.analysis.builder import Builder
from irexec.compile.passes import PASSES
from irexec.compile.pattern import Match, Pattern, array, call, either, number, root, value
from irexec.dtypes.elements import F32
from tests.support.passes import optimized

x, y, z = value("x"), value("y"), value("z")
Build = Callable[["_Terms"], Any]


class _Terms:
    """Operations on the inputs a, b, c of a model."""

    def __init__(self) -> None:
        self.builder = Builder("m")
        self.a, self.b, self.c = (self.builder.parameter(F32, (2, 3), name) for name in "abc")

    def __call__(self, type: str, *operands: Any, **attributes: Any) -> Any:
        constants = [
            self.builder.constant(one, F32) if isinstance(one, int | float | list) else one for one in operands
        ]
        return self.builder.emit(type, *constants, **attributes)


def _matches(pattern: Pattern, build: Build) -> list[dict[str, str]]:
    """What each name is bound to, for every match."""
    terms = _Terms()
    terms.builder.result(build(terms))
    graph = optimized(terms.builder.model(), [])[0]
    return [
        {name: bound.name for name, bound in match.values.items()} for match in pattern.match(graph.targets[0], Match())
    ]


MATCHED: dict[str, tuple[Pattern, Build]] = {
    "operands in another order": (x * call("Erf", x), lambda t: t("Multiply", t("Erf", t.a), t.a)),
    "another grouping": (x * y * call("Abs", z) * 6, lambda t: t("Multiply", t("Multiply", t.a, 2), t("Multiply", t("Abs", t.b), t("Multiply", 3, t.c)))),
    "a division by a number": (x * 0.25, lambda t: t("Divide", t.a, 4)),
    "a negation": (-x, lambda t: t("Negative", t.a)),
    "a product with -1": (-x, lambda t: t("Multiply", t.a, -1)),
    "a difference from a number": (x + 3, lambda t: t("Subtract", t.a, -3)),
    "numbers in two places": (x + y + 5, lambda t: t("Add", t("Add", t.a, 2), t("Add", t.b, 3))),
    "no number": (x + y, lambda t: t("Add", t.a, t.b)),
    "a square as a product": (x**2, lambda t: t("Multiply", t.a, t.a)),
    "a square as a power": (x**2, lambda t: t("Power", t.a, 2)),
    "a cube": (x**3, lambda t: t("Multiply", t.a, t("Multiply", t.a, t.a))),
    "a root as a power": (root(x), lambda t: t("Power", t.a, 0.5)),
    "a reciprocal as a power": (1 / x, lambda t: t("Power", t.a, -1)),
    "any number": (number("n") * x, lambda t: t("Multiply", t.a, 7)),
    "no number for a name": (number("n") * call("Abs", x), lambda t: t("Abs", t.a)),
    "a maximum in another order": (call("Maximum", x, 0), lambda t: t("Maximum", 0, t.a)),
    "one of two types": (call("Abs|Sign", x), lambda t: t("Sign", t.a)),
    "the second of two patterns": (either(call("Abs", x), call("Sign", x)), lambda t: t("Sign", t.a)),
    "a constant of several elements": (x / array("n"), lambda t: t("Divide", t.a, [1.0, 2.0, 3.0])),
    "the rounding of float32": (x * 0.7978845608028654, lambda t: t("Multiply", t.a, 0.7978845)),
}  # fmt: skip


@pytest.mark.parametrize("name", MATCHED)
def test_matched(name: str) -> None:
    pattern, build = MATCHED[name]
    assert _matches(pattern, build)


OTHERS: dict[str, tuple[Pattern, Build]] = {
    "another number": (x * 0.5, lambda t: t("Multiply", t.a, 0.5001)),
    "a name for two values": (x * call("Erf", x), lambda t: t("Multiply", t.a, t("Erf", t.b))),
    "a difference in another order": (x - y * 2, lambda t: t("Subtract", t("Multiply", t.a, 2), t.b)),
    "a quotient in another order": (call("Abs", x) / y, lambda t: t("Divide", t.a, t("Abs", t.b))),
    "another attribute": (call("Clamp", x, min=0.0, max=6.0), lambda t: t("Clamp", t.a, min=0.0, max=5.0)),
    "a factor too many": (x * call("Abs", y), lambda t: t("Multiply", t("Multiply", t.a, t.b), t("Sign", t.c))),
    "a number of several elements": (x * 2, lambda t: t("Multiply", t.a, [2.0, 2.0, 2.0])),
    "a value for a constant": (call("Maximum", x, array("n")), lambda t: t("Maximum", t.a, t.b)),
    "different constants of one name": (
        call("Maximum", call("Minimum", x, number("n")), number("n")),
        lambda t: t("Maximum", t("Minimum", t.a, 1), 2),
    ),
    "broadcasting of Caffe": (x + y, lambda t: t("Add", t.a, t.b, auto_broadcast="pdpd")),
    "the second output": (call("Split", x), lambda t: t("Split", t.a, t.builder.constant(1), num_splits=3)[1]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_not_matched(name: str) -> None:
    pattern, build = OTHERS[name]
    assert _matches(pattern, build) == []


def test_names_are_bound_to_the_operands() -> None:
    found = _matches(x - y, lambda t: t("Subtract", t.b, t.a))
    assert found == [{"x": "b", "y": "a"}]


def test_numbers_of_products_and_sums() -> None:
    terms = _Terms()
    terms.builder.result(terms("Divide", terms("Multiply", terms("Multiply", 3, terms("Add", terms.a, 4)), 2), 4))
    graph = optimized(terms.builder.model(), [])[0]
    match = next((number("scale") * (x + number("shift"))).match(graph.targets[0], Match()))
    assert (match.number("scale"), match.number("shift")) == (1.5, 4)
    assert [operation.type for operation in match.operations] == ["Divide", "Multiply", "Multiply", "Add"]


@pytest.mark.parametrize("name", ["recognise activations", "recognise normalizations", "recognise attention"])
def test_a_second_run_changes_nothing(name: str) -> None:
    t = _Terms()
    e = t("Exp", t("Subtract", t.a, t("ReduceMax", t.a, t.builder.constant([1]), keep_dims=True)))
    softmax = t("Divide", e, t("ReduceSum", e, t.builder.constant([1]), keep_dims=True))
    t.builder.result(t("Multiply", softmax, t("Sigmoid", softmax)))
    graph, rewriting = optimized(t.builder.model(), [name])
    before, rewriting.name = [one.type for one in graph.order()], name
    changes = dict(rewriting.report.applied)
    _pass(name)(graph, rewriting)
    assert [one.type for one in graph.order()] == before
    assert rewriting.report.applied == changes


def _pass(name: str) -> Callable[..., None]:
    return next(one.rewrite for one in PASSES if one.name == name)
