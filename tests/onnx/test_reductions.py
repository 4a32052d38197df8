"""Reductions of booleans from ONNX, with axes that are constants, computed by other nodes, or inputs of the model."""

from __future__ import annotations

import numpy as np
import pytest

import converters
from tests.onnx.control import Row, check_gives, model_of

X = np.array([[True, False, True], [False, False, False]])
_COMPUTED = "one = Constant <value_ints = [1]> () rank = Shape (s) axes = Sub (rank, one)"
_RANK_UNKNOWN = "its CPU plugin needs a known rank of the result"


def _both(declared: str, before: str, axes: str, attributes: str = "keepdims = 0") -> str:
    return f"""g ({declared}) => (bool[...] y, bool[...] z) {{
        {before} y = ReduceMax <{attributes}> (x{axes}) z = ReduceMin <{attributes}> (x{axes}) }}""".replace(
        "[...]", ""
    )


ROWS = [
    Row("axes of another node", _both("bool[2, 3] x", f"s = Shape (x) {_COMPUTED}", ", axes"), {"x": X}, [X.any(1), X.all(1)], 20),
    Row("constant axes", _both("bool[2, 3] x", "a = Constant <value_ints = [0]> ()", ", a"), {"x": X}, [X.any(0), X.all(0)], 20),
    Row("no axes", _both("bool[2, 3] x", "", ""), {"x": X}, [X.any(), X.all()], 20),
    Row("empty axes", _both("bool[2, 3] x", "a = Constant <value = int64[0] {}> ()", ", a"), {"x": X}, [X.any(), X.all()], 20),
    Row("empty axes that do nothing", _both("bool[2, 3] x", "a = Constant <value = int64[0] {}> ()", ", a", "noop_with_empty_axes = 1"), {"x": X}, [X, X], 20),
    Row("axes from an input", _both("bool[2, 3] x, int64[1] a", "", ", a"), {"x": X, "a": np.array([-1])}, [X.any(1), X.all(1)], 20),
    Row("axes from an input, of which there may be any number", _both("bool[2, 3] x, int64[n] a", "", ", a"), {"x": X, "a": np.array([-1])}, [X.any(1), X.all(1)], 20, openvino=_RANK_UNKNOWN),
    Row("an axis of size 0 from an input", _both("bool[2, 0] x, int64[1] a", "", ", a"), {"x": X[:, :0], "a": np.array([1])}, [np.array([False, False]), np.array([True, True])], 20, runtime="it refuses to reduce an axis of size 0"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_gives(row: Row, live: bool) -> None:
    check_gives(row, live)


def test_known_axes_are_constants() -> None:
    """OpenVINO's CPU plugin refuses logical reductions with other axes."""
    model = converters.convert(model_of(ROWS[0].graph, 20))
    logical = [node for node in model.nodes if node.type.startswith("ReduceLogical")]
    assert len(logical) == 2
    assert all(node.inputs[1] is not None and node.inputs[1].node.type == "Constant" for node in logical)
