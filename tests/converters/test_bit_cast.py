"""BitCast, which IR lacks, by arithmetic; expected values are NumPy views."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.onnx_models import model_of, run

_FLOATS = {
    "float16": "uint16",
    "float32": "int32",
    "float64": "int64",
    "float32 ": "uint32",
    "float64 ": "uint64",
    "float16 ": "int16",
}
_VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, -3.7e-5, 65504.0, 6e-8, -6e-8, 1e-3, np.inf, -np.inf]


def _cast(x: np.ndarray, kind: np.dtype) -> np.ndarray:
    to = helper.np_dtype_to_tensor_dtype(kind)
    source, target = (
        TensorProto.DataType.Name(code).lower() for code in (helper.np_dtype_to_tensor_dtype(x.dtype), to)
    )
    return run(model_of(f"({source}[{x.size}] x) => ({target} y) {{ y = BitCast <to: int = {to}> (x) }}", 26), x)[0]


@pytest.mark.parametrize("name", _FLOATS)
@pytest.mark.sampled(2)
def test_floats_to_bits_and_back(name: str) -> None:
    floats, integers = np.dtype(name.strip()), np.dtype(_FLOATS[name])
    limits = np.finfo(floats)
    edges = [
        limits.max,
        limits.min,
        limits.smallest_normal,
        limits.smallest_subnormal,
        -limits.smallest_subnormal,
        limits.eps,
    ]
    x = np.array([*_VALUES, *edges, *np.random.default_rng(0).normal(size=50)], np.float64).astype(floats)
    bits = _cast(x, integers)
    np.testing.assert_array_equal(bits, x.view(integers))
    again = _cast(bits, floats)
    np.testing.assert_array_equal(again.view(integers), x.view(integers))


def test_nan_stays_nan() -> None:
    x = np.array([np.nan], np.float32)
    assert _cast(x, np.dtype(np.int32)).tolist() == [0x7FC00000]
    assert np.isnan(_cast(x.view(np.int32), np.dtype(np.float32))).all()


def test_integers_wrap() -> None:
    x = np.array([-1, 127, -128], np.int8)
    np.testing.assert_array_equal(_cast(x, np.dtype(np.uint8)), x.view(np.uint8))
