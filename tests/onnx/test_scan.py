"""Scan from ONNX."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx.control import Row, check_gives, check_refused, f32

SCANNED = {
    "h": f32([[0.5, -1, 2], [1, 0, -0.5]]),
    "x": (np.arange(24, dtype=np.float32).reshape(4, 2, 3) - 10) / 8,
    "r": f32([[0.5, -0.25, 0], [0.1, 0.3, -0.2], [-0.4, 0, 0.6]]),
}


def _running(order: str, then: str) -> tuple[str, list[np.ndarray]]:
    """A recurrent network as a Scan, with a captured weight matrix."""
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


ROWS = [
    *(
        Row(f"scan, {then} of {order}", *(lambda made: (made[0], SCANNED, made[1]))(_running(order, then)))
        for order in ("t, m", "m, t")
        for then in ("Relu", "Tanh")
    ),
    Row(
        "scan, axes and directions of several, and an output that is not a state",
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
        "scan, sizes that are known at run time",
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


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_gives(row: Row, live: bool) -> None:
    check_gives(row, live)


_REFUSED = {
    "num_scan_inputs is 3 of 2 inputs": """g (float s, float[3] x) => (float y) {
        y = Scan (s, x) <num_scan_inputs = 3, body = b (float v, float p) => (float w) { w = Add (v, p) }>
    }""",
    "scan_input_axes are [0, 0]": """g (float s, float[3] x) => (float y) {
        y = Scan (s, x) <num_scan_inputs = 1, scan_input_axes = [0, 0], body = b (float v, float p) => (float w) { w = Add (v, p) }>
    }""",
}


@pytest.mark.parametrize("message", _REFUSED)
def test_refuses(message: str) -> None:
    check_refused(_REFUSED[message], message)
