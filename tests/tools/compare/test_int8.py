"""compare and verify: products of bytes that a runtime saturates, for which a stand-in of ONNX Runtime does so on any processor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.tools.compare import CompareOptions, compare, int8
from irexec.tools.compare.comparison import Known
from tests.tools.compare.recorded import Compute, Recorded, stand_in

onnx = pytest.importorskip("onnx")

X_SCALE, Y_SCALE, ZERO, Y_ZERO = np.float32(0.02), np.float32(0.5), 128, 100


def saturated(x: Sequence[int], w: Sequence[int]) -> int:
    """The sum of products of bytes as vpmaddubsw has it, by hand: pairs of neighbours are cut off."""
    terms = [int(a) * int(b) for a, b in zip(x, w, strict=True)]
    terms += [0] * (len(terms) % 2)
    return sum(max(-32768, min(32767, terms[i] + terms[i + 1])) for i in range(0, len(terms), 2))


def exact(x: Sequence[int], w: Sequence[int]) -> int:
    return sum(int(a) * int(b) for a, b in zip(x, w, strict=True))


Sum = Callable[[Sequence[int], Sequence[int]], int]


def convolved(x: np.ndarray, w: np.ndarray, total: Sum, zero: int, stride: int = 1) -> np.ndarray:
    """A 3x3 convolution with padding of 1, of raw bytes with channels innermost, minus the zero point's part."""
    padded = np.full((x.shape[1], x.shape[2] + 2, x.shape[3] + 2), zero, int)
    padded[:, 1:-1, 1:-1] = x[0]
    found = np.zeros((1, len(w), *((size - 1) // stride + 1 for size in x.shape[2:])), int)
    outputs = len(w) * w.shape[1] // x.shape[1]
    for m, i, j in np.ndindex(found.shape[1:]):
        own = padded[m // outputs * w.shape[1] :, i * stride :, j * stride :]
        taps = [(own[c, y, k], w[m, c, y, k]) for y in range(3) for k in range(3) for c in range(w.shape[1])]
        found[0, m, i, j] = total(*zip(*taps, strict=True)) - zero * int(w[m].astype(int).sum())
    return found


def requantized(sums: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
    return np.clip(np.rint(sums * np.float64(scale)) + Y_ZERO, 0, 255).astype(np.uint8)


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-127, 128, shape).astype(np.int8)


W_SCALE = np.array([0.01, 0.02, 0.005, 0.01], np.float32)
W = weights(4, 4, 3, 3)
W2 = weights(16, 5)
X = np.random.default_rng(1).integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)
X2 = np.random.default_rng(1).integers(0, 256, (3, 16)).astype(np.uint8)

X3 = np.random.default_rng(3).integers(-128, 128, (3, 16)).astype(np.int8)


def _saved(
    path: Path, nodes: list[object], x: np.ndarray, result: tuple[str, int], constants: Mapping[str, object]
) -> Path:
    from onnx import TensorProto, helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    inputs = [helper.make_tensor_value_info("x", kind, x.shape)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(*result, None)], tensors)
    assert TensorProto.UINT8 == 2
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


_QUANTIZED = {
    "xs": X_SCALE,
    "xz": np.uint8(ZERO),
    "ws": W_SCALE,
    "wz": np.zeros(4, np.int8),
    "ys": Y_SCALE,
    "yz": np.uint8(Y_ZERO),
}


def qlinear_conv(path: Path) -> Path:
    node = onnx.helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], pads=[1] * 4)
    return _saved(path, [node], X, ("y", 2), {**_QUANTIZED, "w": W})


def qlinear_conv_values(total: Sum, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    scale = (X_SCALE.astype(float) * W_SCALE / Y_SCALE).reshape(1, 4, 1, 1)
    return {"x": feeds["x"], "y": requantized(convolved(feeds["x"], W, total, ZERO), scale)}


GROUPED = weights(4, 2, 3, 3)


def grouped_conv(path: Path) -> Path:
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    node = onnx.helper.make_node("QLinearConv", inputs, ["y"], pads=[1] * 4, group=2, strides=[2, 2])
    return _saved(path, [node], X, ("y", 2), {**_QUANTIZED, "w": GROUPED})


def grouped_conv_values(total: Sum, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    scale = (X_SCALE.astype(float) * W_SCALE / Y_SCALE).reshape(1, 4, 1, 1)
    return {"x": feeds["x"], "y": requantized(convolved(feeds["x"], GROUPED, total, ZERO, 2), scale)}


def qdq_conv(path: Path) -> Path:
    make = onnx.helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        make("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        make("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        make("Conv", ["xd", "wd"], ["c"], pads=[1] * 4),
        make("QuantizeLinear", ["c", "ys", "yz"], ["yq"]),
        make("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    return _saved(path, nodes, X.astype(np.float32), ("y", 1), {**_QUANTIZED, "w": W})


def qdq_values(total: Sum, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    q = np.clip(np.rint(feeds["x"] / X_SCALE) + ZERO, 0, 255).astype(np.uint8)
    y = qlinear_conv_values(total, {"x": q})["y"]
    return {"x": feeds["x"], "xq": q, "yq": y, "y": (y.astype(np.float32) - np.float32(Y_ZERO)) * Y_SCALE}


def matmul_integer(path: Path) -> Path:
    node = onnx.helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])
    return _saved(path, [node], X2, ("y", 6), {"w": W2, "xz": np.uint8(ZERO)})


def matmul_integer_values(total: Sum, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    sums = [[total(row, column) - ZERO * int(column.astype(int).sum()) for column in W2.T] for row in feeds["x"]]
    return {"x": feeds["x"], "y": np.array(sums, np.int32)}


def signed_matmul(path: Path) -> Path:
    node = onnx.helper.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])
    constants = {"xz": np.int8(3), "w": W2, "ws": np.float32(0.01), "wz": np.int8(0), "yz": np.int8(-4)}
    return _saved(path, [node], X3, ("y", 3), {"xs": X_SCALE, "ys": Y_SCALE, **constants})


def signed_matmul_values(total: Sum, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ONNX Runtime adds 128 to signed activations."""
    x = feeds["x"].astype(int) + 128
    sums = np.array([[total(row, column) - (128 + 3) * int(column.astype(int).sum()) for column in W2.T] for row in x])
    return {"x": feeds["x"], "y": np.clip(np.rint(sums * (0.02 * 0.01 / 0.5)) - 4, -128, 127).astype(np.int8)}


TABLE = [
    (grouped_conv, grouped_conv_values, X),
    (signed_matmul, signed_matmul_values, X3),
    (qlinear_conv, qlinear_conv_values, X),
    (qdq_conv, qdq_values, (X.astype(np.float32) - ZERO) * X_SCALE),
    (matmul_integer, matmul_integer_values, X2),
]


def _explained(path: Path, compute: Compute, x: np.ndarray) -> Known | None:
    model = irexec.read_model(path)
    return int8.explain(model, Recorded("onnxruntime", model, compute), {"x": x}, CompareOptions())


@pytest.mark.parametrize(("make", "values", "x"), TABLE, ids=lambda one: getattr(one, "__name__", ""))
def test_saturated_sums_are_recognised(
    make: Callable[[Path], Path], values: Callable[..., Compute], x: np.ndarray, tmp_path: Path
) -> None:
    path = make(tmp_path / "m.onnx")
    assert _explained(path, functools.partial(values, exact), x) is None
    found = _explained(path, functools.partial(values, saturated), x)
    assert found is not None and found.right == "irexec"
    wrong, right = (list(values(total, {"x": x}).values()) for total in (saturated, exact))
    index = -2 if make is qdq_conv else -1
    limit = 1 if wrong[index].itemsize == 1 else 0
    count = int((abs(wrong[index].astype(int) - right[index].astype(int)) > limit).sum())
    assert found.message.startswith(
        f"onnxruntime saturates sums of two products of bytes at 16 bits: {count} of {wrong[index].size} values of"
    )
    assert found.message.endswith("are wrong; irexec's product is exact")


@pytest.mark.parametrize("side", ["a", "b"])
def test_compare_says_that_onnxruntime_saturates(side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = qlinear_conv(tmp_path / "m.onnx")
    options = CompareOptions(a_runtime="onnxruntime") if side == "a" else CompareOptions(b_runtime="onnxruntime")
    stand_in(monkeypatch, "onnxruntime", functools.partial(qlinear_conv_values, exact))
    found = compare(path, options=options, inputs={"x": X})
    assert found.agrees and found.known == ()
    stand_in(monkeypatch, "onnxruntime", functools.partial(qlinear_conv_values, saturated))
    found = compare(path, options=options, inputs={"x": X})
    (known,) = found.known
    assert not found.agrees and known.right == "irexec" and "onnxruntime saturates" in known.message
    assert found.as_dict()["known"][0]["right"] == "irexec"
    assert "onnxruntime saturates" in found._repr_html_()


def test_another_fault_is_not_called_saturation(tmp_path: Path) -> None:
    path = matmul_integer(tmp_path / "m.onnx")
    off = functools.partial(_off, matmul_integer_values)
    found = _explained(path, off, X2)
    assert found is not None and found.message.startswith(
        "1 of 15 values of 'y' are not those of the exact product of integers"
    )


def _off(values: Callable[..., dict[str, np.ndarray]], feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = values(exact, feeds)
    found["y"][1, 2] += 3
    return found


def test_verify_says_who_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import converters
    from irexec.tools import verify as module

    path = qdq_conv(tmp_path / "m.onnx")
    # Random floats from 0 to 1 are bytes from 128 to 178.
    model = converters.convert(path)
    compute = functools.partial(qdq_values, saturated)
    monkeypatch.setattr(module, "open_runtime", lambda name, model: Recorded("onnxruntime", model, compute))

    found = module.verify(model, runtime="onnxruntime", seed=0, rtol=1e-3, atol=1e-4)
    assert not found.agrees and found.known is not None
    assert found.known.right == "irexec" and "onnxruntime saturates" in found.known.message
