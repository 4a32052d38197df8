"""What has no elements is not computed, so that nothing on the way can be too large: attributes may be any number up to 2^63 - 1."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes

LARGE = 2**40
ROWS: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], tuple[Any, ...]]] = [
    ("DepthToSpace", {"mode": "blocks_first", "block_size": LARGE}, (1, 0, 0, 1), (1, 0, 0, LARGE), ()),
    ("DepthToSpace", {"mode": "depth_first", "block_size": LARGE}, (1, 0, 0, 1), (1, 0, 0, LARGE), ()),
    ("LRN", {"alpha": 1.0, "beta": 0.5, "bias": 1.0, "size": 2**63 - 1}, (0, 2, 3), (0, 2, 3), (np.array([1]),)),
    ("LRN", {"alpha": 1.0, "beta": 0.5, "bias": 1.0, "size": 2**61 - 1}, (0, 2, 3), (0, 2, 3), (np.array([1, 2]),)),
]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("known", ["shape", "rank", "value"])
@pytest.mark.parametrize(("type", "attributes", "shape", "expected", "rest"), ROWS)
def test_no_elements(
    type: str,
    attributes: dict[str, Any],
    shape: tuple[int, ...],
    expected: tuple[int, ...],
    rest: tuple[np.ndarray, ...],
    known: str,
    optimize: bool,
) -> None:
    x = np.zeros(shape, np.float32)
    builder = irexec.Builder("m")
    given = x if known == "value" else builder.parameter("f32", shape if known == "shape" else (-1,) * len(shape), "x")
    builder.result(builder.emit(type, builder.constant(given) if known == "value" else given, *rest, **attributes))
    model = builder.model()
    assert not irexec.validate(model)
    result = irexec.compile_model(model, optimize=optimize)([] if known == "value" else [x])[0]
    assert result.shape == expected
    assert result.dtype == np.float32


def test_effects_remain() -> None:
    """An Assign of no elements changes the state."""
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (0,), "x")
    kept = builder.emit("ReadValue", x, variable_id="v", variable_type="f32", variable_shape="0", version="opset6")
    builder.emit("Assign", kept, variable_id="v", version="opset6")
    builder.result(kept)
    session = irexec.compile_model(builder.model()).session()
    session.run([np.zeros(0, np.float32)])
    assert session.variables["v"].shape == (0,)


def test_values_are_not_propagated_through_large_arrays() -> None:
    """The sum over channels is of 2 elements, but its windows are of 2^30 bytes: a run may compute it, shape inference does not."""
    builder = irexec.Builder("m")
    x = builder.constant(np.ones((1, 2), np.float32))
    builder.result(builder.emit("LRN", x, np.array([1]), alpha=1.0, beta=0.5, bias=1.0, size=2**28))
    model = builder.model()
    tracemalloc.start()
    infer_shapes(model)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert highest < 1 << 24


def test_kernels_do_not_reckon_with_sizes_beyond_any_memory() -> None:
    """The keys are of more than 2^63 bytes; the error names them, and not an array that a kernel would have made."""
    builder = irexec.Builder("m")
    query, key = builder.parameter("f32", (1, 1, 2, 4), "query"), builder.parameter("f32", (1, 1, 2**62, 4), "key")
    builder.result(builder.emit("ScaledDotProductAttention", query, key, key, causal=False))
    with pytest.raises(irexec.NodeError, match=r"'key' f32\[1,1,4611686018427387904,4\] takes"):
        irexec.compile_model(builder.model())
