"""Transposes and changes of shape are merged, and moved after element-wise operations where these join what gives the tensor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec import Model
from irexec.analysis.builder import Builder
from irexec.compile.passes.move_transposes import Move, permutation
from irexec.dtypes.elements import F32
from irexec.ir.dims import Dim, PartialShape
from irexec.ir.graph import Value
from tests.support.passes import assert_agrees, optimized, refusals, types

Make = Callable[[Builder, Value], Value | tuple[Value, ...]]
SHAPE = (2, 3, 4)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def t(b: Builder, x: Value, *order: int) -> Value:
    return b.emit("Transpose", x, np.array(order, np.int64))


def r(b: Builder, x: Value, *shape: int) -> Value:
    return b.emit("Reshape", x, np.array(shape, np.int64), special_zero=False)


def product(b: Builder, x: Value) -> Value:
    """Of shape (2, 3, 6)."""
    return b.emit("MatMul", x, numbers(4, 6))


def case(name: str, make: Make, left: list[str], shape: PartialShape = SHAPE):
    return pytest.param(make, left, shape, id=name)


MERGED = [
    case("two Transposes", lambda b, x: t(b, t(b, x, 1, 0, 2), 2, 0, 1), ["Transpose"]),
    case("inverses", lambda b, x: t(b, t(b, x, 1, 2, 0), 2, 0, 1), []),
    case("three", lambda b, x: t(b, t(b, t(b, x, 1, 2, 0), 1, 2, 0), 1, 2, 0), []),
    case("reversed axes", lambda b, x: t(b, t(b, x)), []),
    case("the first is read elsewhere", lambda b, x: (lambda y: (y, t(b, y, 2, 0, 1)))(t(b, x, 1, 2, 0)), ["Transpose"]),
    case("axes of size 1", lambda b, x: t(b, x, 1, 0, 2), ["Reshape"], (2, 1, 4)),
    case("changes of shape", lambda b, x: b.emit("Squeeze", b.emit("Unsqueeze", r(b, x, 6, 4), [0]), [0]), ["Reshape"]),
    case("and back", lambda b, x: r(b, b.emit("Unsqueeze", x, [1]), *SHAPE), []),
    case("a Transpose as change of shape", lambda b, x: r(b, t(b, b.emit("Unsqueeze", x, [0]), 1, 0, 2, 3), *SHAPE), []),
    case("of unknown shape", lambda b, x: b.emit("Unsqueeze", b.emit("Unsqueeze", x, [0]), [0]), ["Unsqueeze", "Unsqueeze"], (Dim(), 2)),
    case("a Transpose between", lambda b, x: r(b, t(b, r(b, x, 6, 4), 1, 0), 2, 12), ["Reshape", "Transpose", "Reshape"]),
    case("MatMul", lambda b, x: b.emit("MatMul", x, t(b, x, 0, 2, 1)), ["MatMul"]),
    case("MatMul that is transposed", lambda b, x: b.emit("MatMul", t(b, x, 0, 2, 1), x, transpose_a=True, transpose_b=True), ["MatMul"]),
    case("both", lambda b, x: b.emit("MatMul", t(b, x, 0, 2, 1), t(b, x, 0, 2, 1), transpose_b=True), ["MatMul"]),
    case("all axes", lambda b, x: b.emit("MatMul", t(b, x, 2, 1, 0), numbers(2, 5)), ["Transpose", "MatMul"]),
    case("other axes", lambda b, x: b.emit("MatMul", t(b, x, 1, 0, 2), numbers(4, 2)), ["Transpose", "MatMul"]),
]  # fmt: skip

SUNK = [
    case("an activation", lambda b, x: b.emit("Relu", t(b, product(b, x), 0, 2, 1)), ["MatMul", "Relu", "Transpose"]),
    case("a chain", lambda b, x: b.emit("Tanh", b.emit("Add", t(b, product(b, x), 0, 2, 1), numbers(6, 1))), ["MatMul", "Add", "Tanh", "Transpose"]),
    case("a constant of smaller rank", lambda b, x: b.emit("Add", t(b, product(b, x), 2, 0, 1), numbers(3)), ["MatMul", "Add", "Transpose"]),
    case("a scalar", lambda b, x: b.emit("Maximum", 0.5, r(b, product(b, x), 6, 6)), ["MatMul", "Maximum", "Reshape"]),
    case("until they cancel", lambda b, x: t(b, b.emit("Relu", t(b, product(b, x), 1, 2, 0)), 2, 0, 1), ["MatMul", "Relu"]),
    case("both from Transposes", lambda b, x: (lambda y: b.emit("Add", t(b, y, 0, 2, 1), t(b, b.emit("Exp", x), 0, 2, 1)))(
        b.emit("MatMul", x, numbers(4, 4))), ["Exp", "MatMul", "Add", "Transpose"]),
    case("another operand", lambda b, x: b.emit("Add", t(b, b.emit("MatMul", x, numbers(4, 4)), 0, 2, 1), r(b, x, 2, 4, 3)),
         ["MatMul", "Reshape", "Transpose", "Add"]),
    case("a residual in another shape", lambda b, x: b.emit("Add", r(b, b.emit("MatMul", r(b, x, 6, 4), numbers(4, 4)), *SHAPE), x),
         ["Reshape", "MatMul", "Reshape", "Add", "Reshape"]),
    case("a bias before a merge of axes", lambda b, x: b.emit("Add", r(b, product(b, x), 2, 18), numbers(18)), ["MatMul", "Add", "Reshape"]),
    case("a bias of merged axes", lambda b, x: b.emit("Add", r(b, product(b, x), 2, 3, 2, 3), numbers(2, 1)), ["MatMul", "Reshape", "Add"]),
    case("a bias of split axes", lambda b, x: b.emit("Add", r(b, product(b, x), 2, 3, 2, 3), numbers(3, 1, 1)), ["MatMul", "Add", "Reshape"]),
    case("it broadcasts", lambda b, x: b.emit("Add", b.emit("Unsqueeze", product(b, x), [0]), numbers(5, 1, 1, 1)), ["MatMul", "Unsqueeze", "Add"]),
    case("two readers", lambda b, x: (lambda y: b.emit("Multiply", b.emit("Sigmoid", y), b.emit("Relu", y)))(t(b, product(b, x), 0, 2, 1)),
         ["MatMul", "Transpose", "Sigmoid", "Relu", "Multiply"]),
    case("nothing to join", lambda b, x: b.emit("Relu", t(b, x, 0, 2, 1)), ["Transpose", "Relu"]),
    case("another type", lambda b, x: b.emit("IsNaN", t(b, product(b, x), 0, 2, 1)), ["MatMul", "Transpose", "IsNaN"]),
    case("slopes by channel", lambda b, x: b.emit("PRelu", t(b, product(b, x), 0, 2, 1), numbers(6)), ["MatMul", "Transpose", "PRelu"]),
    case("pdpd", lambda b, x: b.emit("Add", t(b, product(b, x), 0, 2, 1), numbers(2), auto_broadcast="pdpd"), ["MatMul", "Transpose", "Add"]),
]  # fmt: skip


def model_of(make: Make, shape: PartialShape) -> Model:
    builder = Builder("m")
    made = make(builder, builder.parameter(F32, shape, "x"))
    for value in made if isinstance(made, tuple) else (made,):
        builder.result(value)
    return builder.model()


@pytest.mark.parametrize(
    ("name", "make", "left", "shape"),
    [pytest.param(name, *row.values, id=str(row.id)) for name, rows in (("merge transposes", MERGED), ("sink transposes", SUNK)) for row in rows],
)  # fmt: skip
def test_cases(name: str, make: Make, left: list[str], shape: PartialShape) -> None:
    model = model_of(make, shape)
    graph, _ = optimized(model, [name])
    assert types(graph) == left
    x = numbers(*(size if isinstance(size, int) else 5 for size in shape or ()))
    for names in ([name], True):
        assert_agrees(model, [x], names, tolerance=1e-5)


def test_what_is_left_has_a_reason() -> None:
    for row, name, reason in (
        (MERGED[-1], "merge transposes", "it moves other axes than those of a matrix"),
        (SUNK[6], "sink transposes", "another operand would have to be moved"),
    ):
        values: Sequence[Any] = row.values
        make, _, shape = values
        _, rewriting = optimized(model_of(make, shape), [name])
        assert [(name, reason)] in refusals(rewriting.report)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_backwards_undoes_every_permutation(order: tuple[int, ...]) -> None:
    operand = numbers(*SHAPE)
    assert permutation(SHAPE, order).backwards(operand.transpose(order).shape) == SHAPE


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_backwards_is_the_shape_that_broadcasts_alike(sizes: list[int], data: st.DataObject) -> None:
    """A tensor that broadcasts to the shape after a move, moved back, broadcasts to the shape before it and gives the same elements."""
    before = tuple(sizes)
    array = np.arange(np.prod(before, dtype=int)).reshape(before)
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(range(len(before))))
        move = permutation(before, order)
    else:
        factors = [2] * data.draw(st.integers(0, 2)) + [1]
        after = tuple(data.draw(st.permutations([*factors, array.size // int(np.prod(factors))])))
        if int(np.prod(after)) != array.size:
            return
        move = Move(before, after)
    operand = np.arange(1, 1 + np.prod(move.after, dtype=int)).reshape(move.after)
    for axis in range(operand.ndim):
        if data.draw(st.booleans()):
            operand = operand.take([0], axis)
    back = move.backwards(operand.shape)
    if back is not None:
        inverse = operand.reshape(back) if move.order is None else operand.transpose(np.argsort(move.order))
        moved = array.reshape(move.after) if move.order is None else array.transpose(move.order)
        together = array * inverse
        assert inverse.shape == back
        np.testing.assert_array_equal(
            together.reshape(move.after) if move.order is None else together.transpose(move.order), moved * operand
        )
