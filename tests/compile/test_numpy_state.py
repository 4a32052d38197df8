"""What the caller asks of NumPy for overflows and NaN is for the caller's own arithmetic: nothing that irexec computes warns or raises."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32
from irexec.errors import NodeError
from irexec.tools.inspect import summary as inspect
from irexec.tools.inspect.weights import weights


def _normalized_images() -> irexec.Model:
    """A convolution and a normalization by infinite, negative and zero statistics, and a square of 1e38, which are folded."""
    builder = irexec.Builder("odd statistics")
    x = builder.parameter(F32, (1, 2, 4, 4), "x")
    filter = builder.constant(np.full((3, 2, 1, 1), 3e38, np.float32))
    lists = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = builder.emit("Convolution", x, filter, **lists)
    statistics = [[np.inf, 1.0, 3e38], [0.0, np.nan, 1.0], [1.0, 2.0, 3e38], [-1.0, 0.0, 1e-40]]
    y = builder.emit(
        "BatchNormInference", y, *(builder.constant(np.array(values, np.float32)) for values in statistics), epsilon=0.0
    )
    large = builder.constant(np.full((3, 1, 1), 1e38, np.float32))
    builder.result(builder.emit("Divide", y, builder.emit("Multiply", large, large)))
    return builder.model()


@pytest.mark.parametrize("optimize", [False, True])
def test_nothing_warns_or_raises(optimize: bool) -> None:
    model = _normalized_images()
    with np.errstate(all="raise"):
        assert [finding for finding in irexec.validate(model, weights=True) if finding.severity == "error"] == []
        assert inspect.summarize(model).layers == len(inspect.layers(model)) and weights(model)
        result = irexec.compile_model(model, optimize=optimize)([np.ones((1, 2, 4, 4), np.float32)])[0]
    assert result.shape == (1, 3, 4, 4) and not np.isfinite(result[:, 1]).any()
    assert np.geterr()["over"] == "warn"


def test_a_rule_says_what_is_too_large() -> None:
    builder = irexec.Builder("vast")
    x = builder.parameter(F32, (1, 1, 7, 8), "x")
    scales = builder.constant(np.array([3.4e38, 1.0], np.float32))
    axes = builder.constant(np.array([2, 3]))
    with np.errstate(all="raise"), pytest.raises(NodeError, match=r"scale 3.4e\+38 of an axis of 7 gives no size"):
        builder.emit("Interpolate", x, scales, axes, mode="cubic", shape_calculation_mode="scales", version=11)
