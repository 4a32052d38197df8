"""If and Loop from ONNX."""

from __future__ import annotations

import numpy as np
import pytest

import converters
import irexec
from tests.onnx.control import NO, YES, Row, check_gives, check_refused, f32, model_of

X = np.arange(24, dtype=np.float32).reshape(4, 2, 3) - 10
COUNT = """g (int64 n, float[2] x) => (float[2] y, float[k, 2] all) {
    c = Constant <value = bool {1}> ()
    y, all = Loop (n, c, x) <body = b (int64 i, bool go, float[2] v) => (bool more, float[2] w, float[2] part) {
        more = Identity (go)
        f = Cast <to = 1> (i)
        w = Add (v, f)
        part = Mul (w, w)
    }>
}"""


def _while(declared: str, given: str) -> str:
    """Doubles x until it exceeds 50; ``given`` are the trip count and the condition."""
    return f"""g ({declared}float x) => (float y, int64 count) {{
        zero = Constant <value = int64 {{0}}> ()
        y, count = Loop ({given}, x, zero) <body = b (int64 i, bool go, float v, int64 k) => (bool more, float w, int64 k2) {{
            w = Add (v, v)
            limit = Constant <value = float {{50.0}}> ()
            more = LessOrEqual (w, limit)
            one = Constant <value = int64 {{1}}> ()
            k2 = Add (k, one)
        }}>
    }}"""


ROWS = [
    Row("loop, three times", COUNT, {"n": np.array(3), "x": f32(1, 2)}, [f32(4, 5), f32([[1, 4], [4, 9], [16, 25]])]),
    Row("loop, once", COUNT, {"n": np.array(1), "x": f32(1, 2)}, [f32(1, 2), f32([[1, 4]])]),
    Row("loop, not at all", COUNT, {"n": np.array(0), "x": f32(1, 2)}, [f32(1, 2), np.zeros((0, 2), np.float32)]),
    Row("loop, a negative number of times", COUNT, {"n": np.array(-1), "x": f32(1, 2)}, [f32(1, 2), np.zeros((0, 2), np.float32)]),
    Row(
        "loop, vectors of one element for scalars",
        COUNT.replace("int64 n", "int64[1] n").replace("int64 i", "int64[1] i").replace("bool {1}", "bool[1] {1}").replace("bool go", "bool[1] go").replace("bool more", "bool[1] more"),
        {"n": np.array([3]), "x": f32(1, 2)},
        [f32(4, 5), f32([[1, 4], [4, 9], [16, 25]])],
    ),
    Row("loop, for and while, the count ends it", _while("int64 n, bool c, ", "n, c"), {"n": np.array(3), "c": YES, "x": f32(3)}, [f32(24), np.array(3)]),
    Row("loop, for and while, the condition ends it", _while("int64 n, bool c, ", "n, c"), {"n": np.array(9), "c": YES, "x": f32(3)}, [f32(96), np.array(5)]),
    Row("loop, a condition that fails at once", _while("int64 n, bool c, ", "n, c"), {"n": np.array(9), "c": NO, "x": f32(3)}, [f32(3), np.array(0)]),
    Row("loop, while", _while("bool c, ", '"", c'), {"c": YES, "x": f32(3)}, [f32(96), np.array(5)]),
    # The specification would continue up to the count; ONNX Runtime and OpenVINO do not.
    Row("loop, for without a condition", _while("int64 n, ", 'n, ""'), {"n": np.array(9), "x": f32(3)}, [f32(96), np.array(5)]),
    Row("loop, neither", _while("", '"", ""'), {"x": f32(3)}, [f32(96), np.array(5)]),
    Row(
        "loop, the largest count means no limit",
        _while("bool c, ", "n, c").replace("zero = ", "n = Constant <value = int64 {9223372036854775807}> ()\n zero = ", 1),
        {"c": YES, "x": f32(3)},
        [f32(96), np.array(5)],
    ),
    Row(
        "loop, a state that grows",
        """g (int64 n, float[1, 2] x) => (float[k, 2] y) {
            y = Loop (n, "", x) <body = b (int64 i, bool go, float[m, 2] v) => (bool go, float[m2, 2] w) {
                minus = Neg (x)
                w = Concat <axis = 0> (v, minus)
            }>
        }""",
        {"n": np.array(2), "x": f32([[1, 2]])},
        [f32([[1, 2], [-1, -2], [-1, -2]])],
    ),
    Row(
        "loop, two states are exchanged",
        """g (int64 n, float a, float b) => (float x, float y, float[k] all) {
            x, y, all = Loop (n, "", a, b) <body = l (int64 i, bool go, float p, float q) => (bool go, float p2, float q2, float part) {
                p2 = Identity (q)
                q2 = Add (p, q)
                part = Identity (p)
            }>
        }""",
        {"n": np.array(6), "a": f32(0), "b": f32(1)},
        [f32(8), f32(13), f32(0, 1, 1, 2, 3, 5)],
    ),
    Row(
        "loop, one value for two states",
        """g (int64 n, float[2] a) => (float[2] x, float[2] y) {
            x, y = Loop (n, "", a, a) <body = l (int64 i, bool go, float[2] p, float[2] q) => (bool go, float[2] p2, float[2] q2) {
                p2 = Add (p, a)
                q2 = Mul (q, a)
            }>
        }""",
        {"n": np.array(3), "a": f32(1, 2)},
        [f32(4, 8), f32(1, 16)],
    ),
    Row(
        "loop, states of other types",
        """g (int64 n, float16[2] a, int32 k, bool[2] c) => (float16[2] y, int32 z, bool[2] d, float16[m, 2] all) {
            y, z, d, all = Loop (n, "", a, k, c) <body = b (int64 i, bool go, float16[2] v, int32 p, bool[2] e)
                => (bool go, float16[2] w, int32 q, bool[2] f, float16[2] part) {
                w = Add (v, v)
                q = Add (p, p)
                f = Not (e)
                part = Neg (w)
            }>
        }""",
        {"n": np.array(3), "a": np.array([1, 2], np.float16), "k": np.array(3, np.int32), "c": np.array([True, False])},
        [np.array([8, 16], np.float16), np.array(24, np.int32), np.array([False, True]), -np.array([[2, 4], [4, 8], [8, 16]], np.float16)],
    ),
    Row(
        "loop, a state whose rank changes",
        """g (int64 n, float[2] a) => (float[x, y, z] y) {
            y = Loop (n, "", a) <body = b (int64 i, bool go, float v) => (bool go, float w) {
                zero = Constant <value_ints = [0]> ()
                w = Unsqueeze (v, zero)
            }>
        }""",
        {"n": np.array(2), "a": f32(1, 2)},
        [f32([[[1, 2]]])],
        openvino="its CPU plugin has no Loop of unknown ranks",
        runtime="it refuses the rank that the body declares",
    ),
    Row(
        "loop in an if in a loop, with the counters of both",
        """g (int64 n, float x) => (float y) {
            y = Loop (n, "", x) <body = outer (int64 i, bool go, float v) => (bool go, float w) {
                two = Constant <value = int64 {2}> ()
                rest = Mod (i, two)
                odd = Cast <to = 9> (rest)
                w = If (odd) <
                    then_branch = t () => (float q) {
                        q = Loop (i, "", v) <body = inner (int64 j, bool go2, float u) => (bool go2, float u2) {
                            both = Add (i, j)
                            f = Cast <to = 1> (both)
                            u2 = Add (u, f)
                        }>
                    },
                    else_branch = e () => (float q) { q = Add (v, v) }
                >
            }>
        }""",
        {"n": np.array(4), "x": f32(1)},
        [f32(18)],
    ),
    *(
        Row(
            f"loop, a state that is not read, {count} times",
            """g (int64 n, float[2] x, float[k, 2] z) => (float[m, 2] y) {
                y = Loop (n, "", z) <body = l (int64 i, bool go, float[k, 2] v) => (bool go, float[1, 2] w) {
                    f = Cast <to = 1> (i)
                    a = Add (x, f)
                    zero = Constant <value_ints = [0]> ()
                    w = Unsqueeze (a, zero)
                }>
            }""",
            {"n": np.array(count), "x": f32(1, 2), "z": f32([[5, 6], [7, 8]])},
            [f32([[2, 3]]) if count else f32([[5, 6], [7, 8]])],
        )
        for count in (0, 2)
    ),
    Row(
        "loop, a state that becomes a captured value",
        """g (int64 n, float[2] x, float[2] z) => (float[2] y, float[k, 2] all) {
            y, all = Loop (n, "", x) <body = l (int64 i, bool go, float[2] v) => (bool go, float[2] w, float[2] part) {
                w = Identity (z)
                part = Add (v, x)
            }>
        }""",
        {"n": np.array(3), "x": f32(1, 2), "z": f32(5, 6)},
        [f32(5, 6), f32([[2, 4], [6, 8], [6, 8]])],
    ),
    *(
        Row(
            f"loop, a sequence that grows, {name}",
            f"""g (int64 n, float[2] x, float[2] z) => (float[...] y) {{
                {start}
                one = Constant <value = int64 {{1}}> ()
                last, s = Loop (n, "", x, s0) <body = l (int64 i, bool go, float[2] v, seq(float[2]) s1) => (bool go, float[2] w, seq(float[2]) s2) {{
                    w = Add (v, x)
                    s2 = SequenceInsert (s1, w)
                }}>
                {end}
            }}""".replace("float[...]", declared),
            {"n": np.array(3), "x": f32(1, 2), "z": f32(7, 8)},
            [gives],
        )
        for name, start, end, declared, gives in (
            ("stacked", "s0 = SequenceEmpty ()", "y = ConcatFromSequence <axis = 0, new_axis = 1> (s)", "float[k, 2]", f32([[2, 4], [3, 6], [4, 8]])),
            ("stacked last", "s0 = SequenceEmpty ()", "y = ConcatFromSequence <axis = -1, new_axis = 1> (s)", "float[2, k]", f32([[2, 3, 4], [4, 6, 8]])),
            ("concatenated", "s0 = SequenceEmpty ()", "y = ConcatFromSequence <axis = 0> (s)", "float[k]", f32(2, 4, 3, 6, 4, 8)),
            ("one taken", "s0 = SequenceEmpty ()", "y = SequenceAt (s, one)", "float[2]", f32(3, 6)),
            ("counted", "s0 = SequenceConstruct (z)", "y = SequenceLength (s)", "int64", np.array(4)),
            ("appended to others, concatenated", "s0 = SequenceConstruct (z, x)", "y = ConcatFromSequence <axis = 0> (s)", "float[k]", f32(7, 8, 1, 2, 2, 4, 3, 6, 4, 8)),
            ("appended to others, stacked", "s0 = SequenceConstruct (z, x)", "y = ConcatFromSequence <axis = 1, new_axis = 1> (s)", "float[2, k]", f32([[7, 1, 2, 3, 4], [8, 2, 4, 6, 8]])),
        )
    ),
    Row(
        "loop, sizes that are known at run time",
        """g (int64 n, float[b, k] x) => (float[b, k] y, float[m, b] all) {
            y, all = Loop (n, "", x) <body = l (int64 i, bool go, float[b, k] v) => (bool go, float[b, k] w, float[b] part) {
                w = Mul (v, x)
                one = Constant <value_ints = [1]> ()
                part = ReduceSum <keepdims = 0> (w, one)
            }>
        }""",
        {"n": np.array(2), "x": f32([[1, 2], [3, 1]])},
        [f32([[1, 8], [27, 1]]), f32([[5, 10], [9, 28]])],
    ),
    Row(
        "loop inside a loop, with values captured from both",
        """g (int64 n, int64 m, float x) => (float y, float[i, j] all) {
            y, all = Loop (n, "", x) <body = outer (int64 i, bool go, float v) => (bool go, float w, float[j] row) {
                f = Cast <to = 1> (i)
                w, row = Loop (m, "", v) <body = inner (int64 j, bool go2, float s) => (bool go2, float s2, float part) {
                    t = Add (s, f)
                    s2 = Add (t, x)
                    part = Mul (s2, x)
                }>
            }>
        }""",
        {"n": np.array(2), "m": np.array(3), "x": f32(2)},
        [f32(17), f32([[8, 12, 16], [22, 28, 34]])],
    ),
    Row(
        "if inside a loop that reads a tensor by index",
        """g (float[4, 2, 3] x) => (float[2, 3] y) {
            n = Constant <value = int64 {4}> ()
            zero = Constant <value = int64 {0}> ()
            first = Gather (x, zero)
            y = Loop (n, "", first) <body = b (int64 i, bool go, float[2, 3] v) => (bool go, float[2, 3] w) {
                row = Gather (x, i)
                two = Constant <value = int64 {2}> ()
                even = Mod (i, two)
                c = Cast <to = 9> (even)
                w = If (c) <then_branch = t () => (float[2, 3] w) { w = Sub (v, row) }, else_branch = e () => (float[2, 3] w) { w = Add (v, row) }>
            }>
        }""",
        {"x": X},
        [X[0] + X[0] - X[1] + X[2] - X[3]],
    ),
]  # fmt: skip
IF_X = np.arange(6, dtype=np.float32).reshape(2, 3) - 10
CHOICE = """g (bool c, float[2, 3] x) => (float[a, b] y) {
    two = Constant <value = float {2.0}> ()
    y = If (c) <then_branch = t () => (float[2, 3] p) { p = Mul (x, two) }, else_branch = e () => (float[2, 1] q) {
        one = Constant <value_ints = [1]> ()
        q = ReduceSum (x, one)
    }>
}"""
ROWS += [
    Row("if, then", CHOICE, {"c": YES, "x": IF_X}, [IF_X * 2]),
    Row("if, else", CHOICE, {"c": NO, "x": IF_X}, [IF_X.sum(1, keepdims=True)]),
    Row("if, condition of one dimension", CHOICE.replace("bool c", "bool[1] c"), {"c": np.array([True]), "x": IF_X}, [IF_X * 2]),
    Row("if, condition of two dimensions", CHOICE.replace("bool c", "bool[1, 1] c"), {"c": np.array([[False]]), "x": IF_X}, [IF_X.sum(1, keepdims=True)]),
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_gives(row: Row, live: bool) -> None:
    check_gives(row, live)


_REFUSED = {
    "its body has 2 inputs and 2 outputs, expected 3 and at least 2": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go) => (bool go, float w) { w = Constant <value = float {1.0}> () }>
    }""",
    "a state is f32[] before an iteration and i64[] after it": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go, float v) => (bool go, float w) { w = Cast <to = 7> (v) }>
    }""",
    "nothing produces 'nowhere'": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go, float v) => (bool go, float w) { w = Add (v, nowhere) }>
    }""",
    "its body does more to a sequence than append one tensor": """g (int64 n, float[2] x) => (float[k, 2] s) {
        s0 = SequenceEmpty ()
        y = Loop (n, "", s0) <body = b (int64 i, bool go, seq(float[2]) s1) => (bool go, seq(float[2]) s3) {
            s2 = SequenceInsert (s1, x)
            s3 = SequenceInsert (s2, x)
        }>
        s = ConcatFromSequence <axis = 0, new_axis = 1> (y)
    }""",
}
_REFUSED |= {
    "its branches return f32 and i64": """g (bool c, float x) => (float y) {
        y = If (c) <then_branch = t () => (float p) { p = Neg (x) }, else_branch = e () => (int64 q) { q = Cast <to = 7> (x) }>
    }"""
}


@pytest.mark.parametrize("message", _REFUSED)
def test_refuses(message: str) -> None:
    check_refused(_REFUSED[message], message)


def test_captures() -> None:
    """A captured value is one input, however often it is used; weights are not inputs."""
    model = model_of("""
        g (int64 n, float[2] x) => (float[2] y) {
            w = Constant <value_floats = [2.0, 3.0]> ()
            z = Neg (x)
            y = Loop (n, "", x) <body = b (int64 i, bool go, float[2] v) => (bool go, float[2] s) {
                a = Mul (v, w)
                c = Add (a, z)
                s = Sub (c, z)
            }>
        }""")
    loop = next(node for node in converters.convert(model).nodes if node.type == "Loop")
    assert [value.node.type for value in loop.inputs if value is not None] == [
        "Maximum",
        "Constant",
        "Parameter",
        "Negative",
    ]
    assert sorted(node.type for node in loop.bodies["body"].graph.nodes).count("Parameter") == 2


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
