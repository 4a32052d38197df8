"""ONNX operators that move data of 2 and 4 bits: OpenVINO's plugin moves them in bytes, beside its memory otherwise."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irexec

CODES = np.arange(32, dtype=np.uint8).reshape(4, 8)
E2M1 = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])

MOVES = (
    ("Gather", ["w", "i"], {}, lambda x: x[[1, 3]]),
    ("GatherND", ["w", "rows"], {}, lambda x: x[[1, 3]]),
    ("Slice", ["w", "i", "stop", "first"], {}, lambda x: x[1:4, 3:7]),
    ("Concat", ["w", "w"], {"axis": 1}, lambda x: np.concatenate([x, x], 1)),
    ("Split", ["w"], {"axis": 1, "num_outputs": 2}, lambda x: x[:, :4]),
    ("Tile", ["w", "i"], {}, lambda x: np.tile(x, (1, 3))),
)


@pytest.mark.parametrize(("type", "inputs", "attributes", "expected"), MOVES, ids=[move[0] for move in MOVES])
@pytest.mark.parametrize("bits", [2, 4])
def test_moves(type: str, inputs: list[str], attributes: dict, expected, bits: int) -> None:
    """The values are those of the codes, by the tables of the two types."""
    kind = TensorProto.UINT2 if bits == 2 else TensorProto.FLOAT4E2M1
    codes = CODES % (1 << bits)
    packed = sum(codes.reshape(-1, 8 // bits)[:, i] << (i * bits) for i in range(8 // bits)).astype(np.uint8)
    fixed = [helper.make_tensor("w", kind, CODES.shape, packed.tobytes(), raw=True)]
    for name, values in (("rows", [[1], [3]]), ("stop", [4, 7]), ("first", [0, 1])):
        fixed.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
    nodes = [helper.make_node(type, inputs, ["moved", "rest"] if type == "Split" else ["moved"], **attributes)]
    nodes.append(helper.make_node("Cast", ["moved"], ["y"], to=TensorProto.FLOAT))
    given = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    converted = irexec.convert(model.SerializeToString())
    assert "IR984" not in {one.code for one in irexec.validate(converted, portability=True)}
    (result,) = irexec.compile_model(converted)({"i": np.array([1, 3])}).values()
    np.testing.assert_array_equal(result, expected(codes.astype(np.float32) if bits == 2 else E2M1[codes]))
