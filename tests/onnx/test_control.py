"""Control flow from ONNX: If, Loop and Scan through IR text; expected values are worked out by hand in NumPy.

With ``--oracle`` ONNX Runtime runs the model and OpenVINO the IR beside irexec.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import parser

import converters
import irexec
from irexec import io


class Row(NamedTuple):
    """A graph in ONNX's text, what goes in and what must come out.

    ``openvino`` is why OpenVINO cannot run the IR, ``runtime`` why ONNX Runtime cannot run the model.
    """

    name: str
    graph: str
    feeds: dict[str, np.ndarray]
    gives: list[np.ndarray]
    opset: int = 17
    openvino: str = ""
    runtime: str = ""


def f32(*numbers: object) -> np.ndarray:
    return np.array(numbers[0] if len(numbers) == 1 else numbers, np.float32)


X = np.arange(24, dtype=np.float32).reshape(4, 2, 3) - 10
YES, NO = np.array(True), np.array(False)
COUNT = """g (int64 n, float[2] x) => (float[2] y, float[k, 2] all) {
    c = Constant <value = bool {1}> ()
    y, all = Loop (n, c, x) <body = b (int64 i, bool go, float[2] v) => (bool more, float[2] w, float[2] part) {
        more = Identity (go)
        f = Cast <to = 1> (i)
        w = Add (v, f)
        part = Mul (w, w)
    }>
}"""
CHOICE = """g (bool c, float[2, 3] x) => (float[a, b] y) {
    two = Constant <value = float {2.0}> ()
    y = If (c) <then_branch = t () => (float[2, 3] p) { p = Mul (x, two) }, else_branch = e () => (float[2, 1] q) {
        one = Constant <value_ints = [1]> ()
        q = ReduceSum (x, one)
    }>
}"""


def _while(declared: str, given: str) -> str:
    """Doubles until more than 50; ``given`` are the trip count and the condition."""
    return f"""g ({declared}float x) => (float y, int64 count) {{
        zero = Constant <value = int64 {{0}}> ()
        y, count = Loop ({given}, x, zero) <body = b (int64 i, bool go, float v, int64 k) => (bool more, float w, int64 k2) {{
            w = Add (v, v)
            most = Constant <value = float {{50.0}}> ()
            more = LessOrEqual (w, most)
            one = Constant <value = int64 {{1}}> ()
            k2 = Add (k, one)
        }}>
    }}"""


def _running(order: str, then: str) -> tuple[str, list[np.ndarray]]:
    """A plain network over time as a Scan, whose matrix comes from around it."""
    graph = f"""g (float[2, 3] h, float[4, 2, 3] x, float[3, 3] r) => (float[2, 3] last, float[4, 2, 3] all) {{
        last, all = Scan (h, x) <num_scan_inputs = 1, body = b (float[2, 3] s, float[2, 3] t) => (float[2, 3] s2, float[2, 3] o) {{
            m = MatMul (s, r)
            a = Add ({order})
            s2 = {then} (a)
            o = Identity (s2)
        }}>
    }}"""
    state, parts = SCANNED["h"], []
    for row in SCANNED["x"]:
        state = {"Relu": lambda v: np.maximum(v, 0), "Tanh": np.tanh}[then](row + state @ SCANNED["r"])
        parts.append(state)
    return graph, [state, np.stack(parts)]


SCANNED = {"h": f32([[0.5, -1, 2], [1, 0, -0.5]]), "x": X / 8, "r": f32([[0.5, -0.25, 0], [0.1, 0.3, -0.2], [-0.4, 0, 0.6]])}
COUNTED = f32([[1, 2], [2, 3], [4, 5]])
ROWS = [
    Row("if, then", CHOICE, {"c": YES, "x": X[0]}, [X[0] * 2]),
    Row("if, else", CHOICE, {"c": NO, "x": X[0]}, [X[0].sum(1, keepdims=True)]),
    Row("if, condition of one dimension", CHOICE.replace("bool c", "bool[1] c"), {"c": np.array([True]), "x": X[0]}, [X[0] * 2]),
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
        "if, several outputs, one as it comes in",
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
        "if, a rank that is known decides: the other branch could not even be built",
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
        runtime="it looks into both branches",
    ),
    Row("loop, three times", COUNT, {"n": np.array(3), "x": f32(1, 2)}, [f32(4, 5), f32([[1, 4], [4, 9], [16, 25]])]),
    Row("loop, once", COUNT, {"n": np.array(1), "x": f32(1, 2)}, [f32(1, 2), f32([[1, 4]])]),
    Row("loop, not at all", COUNT, {"n": np.array(0), "x": f32(1, 2)}, [f32(1, 2), np.zeros((0, 2), np.float32)]),
    Row("loop, a negative number of times", COUNT, {"n": np.array(-1), "x": f32(1, 2)}, [f32(1, 2), np.zeros((0, 2), np.float32)]),
    Row(
        "loop, vectors of one for numbers",
        COUNT.replace("int64 n", "int64[1] n").replace("int64 i", "int64[1] i").replace("bool {1}", "bool[1] {1}").replace("bool go", "bool[1] go").replace("bool more", "bool[1] more"),
        {"n": np.array([3]), "x": f32(1, 2)},
        [f32(4, 5), f32([[1, 4], [4, 9], [16, 25]])],
    ),
    Row("loop, for and while, the count ends it", _while("int64 n, bool c, ", "n, c"), {"n": np.array(3), "c": YES, "x": f32(3)}, [f32(24), np.array(3)]),
    Row("loop, for and while, the condition ends it", _while("int64 n, bool c, ", "n, c"), {"n": np.array(9), "c": YES, "x": f32(3)}, [f32(96), np.array(5)]),
    Row("loop, a condition that fails at once", _while("int64 n, bool c, ", "n, c"), {"n": np.array(9), "c": NO, "x": f32(3)}, [f32(3), np.array(0)]),
    Row("loop, while", _while("bool c, ", '"", c'), {"c": YES, "x": f32(3)}, [f32(96), np.array(5)]),
    # The specification would go on to the count; ONNX Runtime and OpenVINO do not.
    Row("loop, for without a condition", _while("int64 n, ", 'n, ""'), {"n": np.array(9), "x": f32(3)}, [f32(96), np.array(5)]),
    Row("loop, neither", _while("", '"", ""'), {"x": f32(3)}, [f32(96), np.array(5)]),
    Row(
        "loop, the greatest count is none",
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
        "loop, two states change places",
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
        "loop, one value is two states",
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
        runtime="it warns of the rank that the body declares",
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
            f"loop, a state that nobody reads, {count} times",
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
        "loop, a state that becomes what comes from around",
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
            ("joined", "s0 = SequenceEmpty ()", "y = ConcatFromSequence <axis = 0> (s)", "float[k]", f32(2, 4, 3, 6, 4, 8)),
            ("one taken", "s0 = SequenceEmpty ()", "y = SequenceAt (s, one)", "float[2]", f32(3, 6)),
            ("counted", "s0 = SequenceConstruct (z)", "y = SequenceLength (s)", "int64", np.array(4)),
            ("behind others, joined", "s0 = SequenceConstruct (z, x)", "y = ConcatFromSequence <axis = 0> (s)", "float[k]", f32(7, 8, 1, 2, 2, 4, 3, 6, 4, 8)),
            ("behind others, stacked", "s0 = SequenceConstruct (z, x)", "y = ConcatFromSequence <axis = 1, new_axis = 1> (s)", "float[2, k]", f32([[7, 1, 2, 3, 4], [8, 2, 4, 6, 8]])),
        )
    ),
    Row(
        "loop, sizes that are known only when it runs",
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
        "loop inside a loop, with what comes from both around",
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
        "if inside a loop that goes through a tensor by number",
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
    *(
        Row(f"scan, {then} of {order}", *(lambda made: (made[0], SCANNED, made[1]))(_running(order, then)))
        for order in ("t, m", "m, t")
        for then in ("Relu", "Tanh")
    ),
    Row(
        "scan, axes and directions of several, and an output that is no state",
        """g (float[2] s, float[2, 4] x, float[4, 2] z) => (float[2] last, float[2, 4] up, float[4, 2] down, float[4] sums) {
            last, up, down, sums = Scan (s, x, z) <num_scan_inputs = 2, scan_input_axes = [-1, 0], scan_input_directions = [0, 1],
                scan_output_axes = [-1, 0, 0], scan_output_directions = [0, 1, 0], body = b (float[2] v, float[2] p, float[2] q) => (float[2] w, float[2] o1, float[2] o2, float o3) {
                    w = Add (v, q)
                    o1 = Mul (w, p)
                    o2 = Sub (p, q)
                    o3 = ReduceSum <keepdims = 0> (p)
                }>
        }""",
        {"s": f32(1, 2), "x": f32([[1, 2, 3, 4], [5, 6, 7, 8]]), "z": f32([[1, 0], [2, 0], [3, 1], [4, 1]])},
        [f32(11, 4), f32([[5, 16, 30, 44], [15, 24, 28, 32]]), f32([[3, 8], [1, 7], [-1, 5], [-3, 4]]), f32(6, 8, 10, 12)],
    ),
    Row(
        "scan, without a state",
        """g (float[3, 2] x) => (float[3, 2] y) {
            y = Scan (x) <num_scan_inputs = 1, body = b (float[2] p) => (float[2] o) { o = Neg (p) }>
        }""",
        {"x": f32([[1, 2], [3, 4], [5, 6]])},
        [-f32([[1, 2], [3, 4], [5, 6]])],
    ),
    Row(
        "scan, sizes that are known only when it runs",
        """g (float[b] s, float[n, b] x) => (float[b] last, float[n, b] all) {
            last, all = Scan (s, x) <num_scan_inputs = 1, body = b (float[b] v, float[b] p) => (float[b] w, float[b] o) {
                w = Add (p, v)
                o = Identity (w)
            }>
        }""",
        {"s": f32(1, 2), "x": f32([[1, 2], [3, 4], [5, 6]])},
        [f32(10, 14), f32([[2, 4], [5, 8], [10, 14]])],
    ),
    Row(
        "scan, over nothing",
        """g (float[2] s, float[n, 2] x) => (float[2] last, float[n, 2] all) {
            last, all = Scan (s, x) <num_scan_inputs = 1, body = b (float[2] v, float[2] p) => (float[2] w, float[2] o) {
                w = Add (p, v)
                o = Identity (w)
            }>
        }""",
        {"s": f32(1, 2), "x": np.zeros((0, 2), np.float32)},
        [f32(1, 2), np.zeros((0, 2), np.float32)],
        openvino="its CPU plugin refuses an axis of size 0",
        runtime="it refuses an axis of size 0",
    ),
    Row(
        "scan, integers and booleans from the end to the end",
        """g (int64[n] x, bool[n] m) => (int64 last, int64[n] all) {
            z = Constant <value = int64 {0}> ()
            last, all = Scan (z, x, m) <num_scan_inputs = 2, scan_input_directions = [1, 1], scan_output_directions = [1],
                body = b (int64 s, int64 p, bool q) => (int64 t, int64 o) {
                    a = Add (s, p)
                    t = Where (q, a, s)
                    o = Identity (t)
                }>
        }""",
        {"x": np.array([1, 2, 3, 4]), "m": np.array([True, False, True, True])},
        [np.array(8), np.array([8, 7, 7, 4])],
    ),
    Row(
        "scan, whose tensor only counts",
        """g (float[2] s, float[3, 2] x) => (float[3, 2] all) {
            last, all = Scan (s, x) <num_scan_inputs = 1, body = b (float[2] v, float[2] p) => (float[2] w, float[2] o) {
                w = Add (v, v)
                o = Identity (w)
            }>
        }""",
        {"s": f32(1, 2), "x": np.zeros((3, 2), np.float32)},
        [f32([[2, 4], [4, 8], [8, 16]])],
    ),
    Row(
        "scan, of which the one output that is used has nothing to do with its tensor",
        """g (float[2] s, float[2] t, float[3, 2] x) => (float[2] second) {
            first, second, all = Scan (s, t, x) <num_scan_inputs = 1,
                body = b (float[2] v, float[2] u, float[2] p) => (float[2] w, float[2] z, float[2] o) {
                w = Add (v, v)
                z = Identity (v)
                o = Identity (p)
            }>
        }""",
        {"s": f32(1, 2), "t": f32(0, 0), "x": np.zeros((3, 2), np.float32)},
        [f32(4, 8)],
    ),
    Row(
        "scan from the end inside a scan from the end",
        """g (float s, float[2, 3] x) => (float last, float[3, 2] all) {
            last, all = Scan (s, x) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [1],
                body = b (float v, float[3] row) => (float w, float[3] o) {
                w, o = Scan (v, row) <num_scan_inputs = 1, scan_input_directions = [1], body = b2 (float p, float q) => (float r, float o2) {
                    r = Add (p, q)
                    o2 = Identity (r)
                }>
            }>
        }""",
        {"s": f32(0), "x": f32([[1, 2, 3], [4, 5, 6]])},
        [f32(21), f32([[18, 6], [20, 11], [21, 15]])],
    ),
    Row(
        "scan inside a scan",
        """g (float s, float[2, 3] x) => (float last, float[2, 3] all) {
            last, all = Scan (s, x) <num_scan_inputs = 1, body = b (float v, float[3] row) => (float w, float[3] o) {
                w, o = Scan (v, row) <num_scan_inputs = 1, body = b2 (float p, float q) => (float r, float o2) {
                    r = Add (p, q)
                    o2 = Mul (r, s)
                }>
            }>
        }""",
        {"s": f32(2), "x": f32([[1, 2, 3], [4, 5, 6]])},
        [f32(23), f32([[6, 10, 16], [24, 34, 46]])],
    ),
    Row(
        "scan-8, two sequences of their own lengths",
        """g (int64[2] n, float[2, 2] s, float[2, 3, 2] x) => (float[2, 2] last, float[2, 3, 2] all) {
            last, all = Scan (n, s, x) <num_scan_inputs = 1, body = b (float[2] v, float[2] p) => (float[2] w, float[2] o) {
                w = Add (v, p)
                o = Identity (w)
            }>
        }""",
        {"n": np.array([2, 3]), "s": f32([[1, 1], [2, 2]]), "x": f32([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]])},
        [f32([[5, 7], [29, 32]]), f32([[[2, 3], [5, 7], [0, 0]], [[9, 10], [18, 20], [29, 32]]])],
        opset=8,
    ),
    Row(
        "scan-8, from the end of each sequence",
        """g (int64[2] n, float[2] s, float[2, 3] x) => (float[2] last, float[2, 3] all) {
            last, all = Scan (n, s, x) <num_scan_inputs = 1, directions = [1], body = b (float v, float p) => (float w, float o) {
                w = Add (v, p)
                o = Identity (w)
            }>
        }""",
        {"n": np.array([2, 3]), "s": f32(1, 2), "x": f32([[1, 2, 3], [4, 5, 6]])},
        [f32(4, 17), f32([[3, 4, 0], [8, 13, 17]])],
        opset=8,
    ),
    Row(
        "scan-8, two states and two tensors, all lengths",
        """g (float[2] s, float[2] t, float[2, 3] x, float[2, 3] z) => (float[2] p, float[2] q, float[2, 3] all) {
            p, q, all = Scan ("", s, t, x, z) <num_scan_inputs = 2, directions = [0, 1], body = b (float s1, float t1, float x1, float z1) => (float s2, float t2, float o) {
                    s2 = Add (s1, x1)
                    t2 = Mul (t1, z1)
                    o = Sub (s2, t2)
                }>
        }""",
        {"s": f32(1, 2), "t": f32(1, 2), "x": f32([[1, 2, 3], [4, 5, 6]]), "z": f32([[1, 2, 3], [2, 1, 3]])},
        [f32(7, 17), f32(6, 12), f32([[-1, -2, 1], [0, 5, 5]])],
        opset=8,
    ),
]  # fmt: skip


def _model(row: Row) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {row.opset}]>\n{row.graph}')


def _compare(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_gives(row: Row, live: bool) -> None:
    model = _model(row)
    converted = converters.convert(model)
    assert [str(finding) for finding in irexec.validate(converted) if finding.severity == "error"] == []
    read = io.read_text(*io.write_text(converted))
    for optimize in (False, True):
        _compare(list(irexec.compile_model(read, optimize=optimize)(row.feeds).values()), row.gives)
    if live:
        _ask_others(row, model, converted)


def _ask_others(row: Row, model: onnx.ModelProto, converted: irexec.Model) -> None:
    ort, ov = pytest.importorskip("onnxruntime"), pytest.importorskip("openvino")
    if not row.runtime:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        _compare(session.run(None, row.feeds), row.gives)
    if row.openvino:
        return
    with tempfile.TemporaryDirectory() as folder:
        irexec.save_model(converted, Path(folder) / "m.xml")
        core = ov.Core()
        compiled = core.compile_model(core.read_model(Path(folder) / "m.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled([row.feeds[port.any_name] for port in compiled.inputs])
        _compare([results[port] for port in compiled.outputs], row.gives)


_REFUSED = {
    "its body takes 2 values and gives 2, expected 3 and at least 2": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go) => (bool go, float w) { w = Constant <value = float {1.0}> () }>
    }""",
    "what goes from one iteration to the next is f32[] before and i64[] after it": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go, float v) => (bool go, float w) { w = Cast <to = 7> (v) }>
    }""",
    "nothing produces 'nowhere'": """g (int64 n, float x) => (float y) {
        y = Loop (n, "", x) <body = b (int64 i, bool go, float v) => (bool go, float w) { w = Add (v, nowhere) }>
    }""",
    "its branches give f32 and i64": """g (bool c, float x) => (float y) {
        y = If (c) <then_branch = t () => (float p) { p = Neg (x) }, else_branch = e () => (int64 q) { q = Cast <to = 7> (x) }>
    }""",
    "its body does more to a sequence than put one tensor behind it": """g (int64 n, float[2] x) => (float[k, 2] s) {
        s0 = SequenceEmpty ()
        y = Loop (n, "", s0) <body = b (int64 i, bool go, seq(float[2]) s1) => (bool go, seq(float[2]) s3) {
            s2 = SequenceInsert (s1, x)
            s3 = SequenceInsert (s2, x)
        }>
        s = ConcatFromSequence <axis = 0, new_axis = 1> (y)
    }""",
    "num_scan_inputs is 3 of 2 inputs": """g (float s, float[3] x) => (float y) {
        y = Scan (s, x) <num_scan_inputs = 3, body = b (float v, float p) => (float w) { w = Add (v, p) }>
    }""",
    "scan_input_axes are [0, 0]": """g (float s, float[3] x) => (float y) {
        y = Scan (s, x) <num_scan_inputs = 1, scan_input_axes = [0, 0], body = b (float v, float p) => (float w) { w = Add (v, p) }>
    }""",
}


@pytest.mark.parametrize("says", _REFUSED)
def test_refuses(says: str) -> None:
    """The message names the node, and for what is inside a body the nodes around it."""
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{_REFUSED[says]}'))
    assert "node 'y' (ai.onnx." in str(caught.value)
    assert says in str(caught.value)


def test_a_body_sees_constants_as_constants_and_nothing_twice() -> None:
    """What is captured comes in once, whatever uses it; weights are not inputs."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
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
    assert [value.node.type for value in loop.inputs if value is not None] == ["Maximum", "Constant", "Parameter", "Negative"]
    assert sorted(node.type for node in loop.bodies["body"].graph.nodes).count("Parameter") == 2


def test_branches_in_place_of_their_if_share_no_tensor_names() -> None:
    """Graphs beside each other may use the same names, tensors of one IR may not."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
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
