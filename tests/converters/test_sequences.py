"""Sequences of tensors and optionals, resolved when a model is converted."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from tests.support.onnx_models import model_of, run

X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = X + 10


def test_inserted_erased_and_joined() -> None:
    graph = """(float[3,2] x, float[3,2] y) => (float z) <int64 first = {0}> {
        a = SequenceConstruct (x, y) b = SequenceInsert (a, y, first) c = SequenceErase (b) z = ConcatFromSequence <axis: int = 1> (c) }"""
    np.testing.assert_array_equal(run(model_of(graph), X, Y)[0], np.concatenate([Y, X], 1))


def test_stacked() -> None:
    graph = """(float[3,2] x, float[3,2] y) => (float z) {
        a = SequenceConstruct (x, y) z = ConcatFromSequence <axis: int = -1, new_axis: int = 1> (a) }"""
    np.testing.assert_array_equal(run(model_of(graph), X, Y)[0], np.stack([X, Y], -1))


def test_split_into_a_length_and_what_is_left() -> None:
    graph = """(float[3,2] x) => (float z, int64 n) <int64 two = {2}, int64 last = {-1}> {
        a = SplitToSequence (x, two) z = SequenceAt (a, last) n = SequenceLength (a) }"""
    part, count = run(model_of(graph), X)
    np.testing.assert_array_equal(part, X[2:])
    assert count == 2


def test_split_into_ones_without_their_axis() -> None:
    graph = """(float[3,2] x) => (float z) <int64 one = {1}> {
        a = SplitToSequence <keepdims: int = 0> (x) z = SequenceAt (a, one) }"""
    np.testing.assert_array_equal(run(model_of(graph), X)[0], X[1])


def test_lengths_known_only_when_it_runs() -> None:
    graph = """(float[3,2] x, int64[2] lengths) => (float z) <int64 one = {1}> { a = SplitToSequence (x, lengths) z = SequenceAt (a, one) }"""
    np.testing.assert_array_equal(run(model_of(graph), X, np.array([1, 2]))[0], X[1:])


def test_a_position_known_only_when_it_runs() -> None:
    graph = """(float[3,2] x, float[3,2] y, int64 position) => (float z) { a = SequenceConstruct (x, y) z = SequenceAt (a, position) }"""
    for position in (0, 1, -1, -2):
        np.testing.assert_array_equal(run(model_of(graph), X, Y, np.int64(position))[0], [X, Y][position])


def test_a_body_for_each() -> None:
    graph = """(float[3,2] x, float[3,2] y, float[2] z) => (float out) {
        a = SequenceConstruct (x, y)
        b = SequenceMap (a, a, z) <body = each (float[3,2] p, float[3,2] q, float[2] r) => (float[3,2] s) { t = Mul (p, q) s = Add (t, r) }>
        out = ConcatFromSequence <axis: int = 0> (b) }"""
    z = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(model_of(graph), X, Y, z)[0], np.concatenate([X * X + z, Y * Y + z]))


def test_a_sequence_from_around_a_subgraph() -> None:
    graph = """(float[3,2] x, float[3,2] y, bool c) => (float out) <int64 one = {1}> {
        a = SequenceConstruct (x, y)
        out = If (c) <then_branch = yes () => (float[3,2] p) { p = SequenceAt (a, one) }, else_branch = no () => (float[3,2] q) { q = Neg (x) }> }"""
    np.testing.assert_array_equal(run(model_of(graph), X, Y, np.True_)[0], Y)
    np.testing.assert_array_equal(run(model_of(graph), X, Y, np.False_)[0], -X)


def test_optionals() -> None:
    graph = """(float[3,2] x) => (bool has, float y) { a = Optional (x) has = OptionalHasElement (a) y = OptionalGetElement (a) }"""
    has, same = run(model_of(graph), X)
    assert has
    np.testing.assert_array_equal(same, X)


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (
            "(float[3] x) => (float y) { a = SequenceConstruct (x) y = Relu (a) }",
            "'a' is not a tensor, and IR has tensors only",
        ),
        ("(float[3] x) => (float y) { a = SequenceConstruct (x) y = Identity (a) }", "'a' is not a tensor"),
        ("(float[3] x) => (float a) { a = SequenceConstruct (x) }", "output 'a' of the graph: 'a' is not a tensor"),
        (
            "(float[3] x) => (float y) <int64 n = {3}> { a = SequenceConstruct (x) y = SequenceAt (a, n) }",
            "position 3 is out of range",
        ),
        ("(float[3] x) => (int64 y) { y = SequenceLength (x) }", "its input is not a sequence of tensors"),
        ("(float[?] x) => (int64 y) { a = SplitToSequence (x) y = SequenceLength (a) }", "the number of tensors that"),
        (
            "(float[3] x) => (float y) { a = SequenceEmpty () y = ConcatFromSequence <axis: int = 0> (a) }",
            "an empty sequence",
        ),
        (
            "(float[3] x, float[2] z, int64 n) => (float y) { a = SequenceConstruct (x, z) y = SequenceAt (a, n) }",
            "of different shapes",
        ),
    ],
)
def test_what_is_refused(graph: str, says: str) -> None:
    import converters

    with pytest.raises(irexec.ConversionError, match=says):
        converters.convert(model_of(graph))
