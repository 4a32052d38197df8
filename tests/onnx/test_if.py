"""If from ONNX."""

from __future__ import annotations

import numpy as np
import pytest

import converters
import irexec
from tests.onnx.control import NO, YES, Row, check_gives, check_refused, f32, model_of

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 10
CHOICE = """g (bool c, float[2, 3] x) => (float[a, b] y) {
    two = Constant <value = float {2.0}> ()
    y = If (c) <then_branch = t () => (float[2, 3] p) { p = Mul (x, two) }, else_branch = e () => (float[2, 1] q) {
        one = Constant <value_ints = [1]> ()
        q = ReduceSum (x, one)
    }>
}"""
ROWS = [
    Row("if, then", CHOICE, {"c": YES, "x": X}, [X * 2]),
    Row("if, else", CHOICE, {"c": NO, "x": X}, [X.sum(1, keepdims=True)]),
    Row("if, condition of one dimension", CHOICE.replace("bool c", "bool[1] c"), {"c": np.array([True]), "x": X}, [X * 2]),
    Row("if, condition of two dimensions", CHOICE.replace("bool c", "bool[1, 1] c"), {"c": np.array([[False]]), "x": X}, [X.sum(1, keepdims=True)]),
    Row(
        "if, inside another, with two captures and a constant",
        """g (bool c, bool d, float[2] x, float[2] z) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] p) {
                    s = Add (x, z)
                    p = If (d) <then_branch = t2 () => (float[2] y) { y = Mul (s, x) }, else_branch = e2 () => (float[2] y) { y = Neg (s) }>
                },
                else_branch = e () => (float[2] y) { y = Constant <value_floats = [7.0, 8.0]> () }
            >
        }""",
        {"c": YES, "d": NO, "x": f32(1, 2), "z": f32(5, 6)},
        [f32(-6, -8)],
    ),
    Row(
        "if, several outputs, one of which is an input",
        """g (bool c, float[2] x) => (float[2] y, int64[n] z) {
            y, z = If (c) <
                then_branch = t () => (float[2] p, int64[1] q) { p = Identity (x)  q = Constant <value_ints = [1]> () },
                else_branch = e () => (float[2] p, int64[3] q) { p = Neg (x)  q = Constant <value_ints = [1, 2, 3]> () }
            >
        }""",
        {"c": YES, "x": f32(1, 2)},
        [f32(1, 2), np.array([1])],
    ),
    Row(
        "if, a known rank decides: the other branch would be invalid",
        """g (float[1, 3] x) => (float[a] y) {
            s = Shape (x)
            zero = Constant <value = int64 {0}> ()
            one = Constant <value = int64 {1}> ()
            size = Gather (s, zero)
            c = Equal (size, one)
            y = If (c) <
                then_branch = t () => (float[3] p) { a = Constant <value_ints = [0]> ()  p = Squeeze (x, a) },
                else_branch = e () => (float[3] p) { a = Constant <value_ints = [5]> ()  p = Squeeze (x, a) }
            >
        }""",
        {"x": f32([[1, 2, 3]])},
        [f32(1, 2, 3)],
        runtime="it checks both branches",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_gives(row: Row, live: bool) -> None:
    check_gives(row, live)


_REFUSED = {
    "its branches return f32 and i64": """g (bool c, float x) => (float y) {
        y = If (c) <then_branch = t () => (float p) { p = Neg (x) }, else_branch = e () => (int64 q) { q = Cast <to = 7> (x) }>
    }""",
}


@pytest.mark.parametrize("message", _REFUSED)
def test_refuses(message: str) -> None:
    check_refused(_REFUSED[message], message)


def test_branches_that_replace_their_if_share_no_tensor_names() -> None:
    """Two subgraphs may use the same names; tensors of one IR may not."""
    model = model_of("""
        g (float[2] x) => (float[2] y) {
            c = Constant <value = bool {1}> ()
            a = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) }, else_branch = e () => (float[2] p) { p = Abs (x) }>
            b = If (c) <then_branch = t () => (float[2] p) { p = Exp (a) }, else_branch = e () => (float[2] p) { p = Abs (a) }>
            y = Neg (b)
        }""")
    converted = converters.convert(model)
    names = [name for node in converted.nodes for value in node.outputs for name in value.names]
    assert sorted(names) == ["a", "b", "p", "x", "y"]
    np.testing.assert_allclose(irexec.compile_model(converted)([f32(1, 2)])[0], -np.exp(-f32(1, 2)), rtol=1e-6)
