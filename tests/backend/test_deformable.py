"""The fast kernel of DeformableConvolution against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.schema.registry import resolve
from irexec.testing.kernels import task_of
from tests.support.convolutions import bias_residual_relu, check_candidates, operands_of

# Data, filter, deformable groups, groups, spatial attributes.
ROWS = [
    ((2, 8, 9, 7), (6, 8, 3, 3), 1, 1, {"pads_begin": (1, 1), "pads_end": (1, 1)}),
    ((1, 8, 9, 7), (6, 4, 3, 3), 2, 2, {"strides": (2, 1)}),
    ((1, 12, 9, 7), (6, 4, 2, 3), 4, 3, {"dilations": (2, 1)}),
    ((1, 4, 40, 40), (4, 4, 3, 3), 1, 1, {}),
    ((1, 4, 6, 5), (4, 4, 1, 1), 2, 1, {}),
]
VERSIONS = [("opset1", False, False), ("opset8", True, False), ("opset8", True, True), ("irexec", False, True)]


def _arrays(data, filter, deformable, attributes, dtype, masked):
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape).astype(dtype) for shape in (data, filter))
    strides, dilations, begins, ends = (attributes[name] for name in ("strides", "dilations", "pads_begin", "pads_end"))
    axes = zip(data[2:], filter[2:], strides, dilations, begins, ends, strict=True)
    counts = [(size + b + e - ((k - 1) * d + 1)) // s + 1 for size, k, s, d, b, e in axes]
    points = deformable * int(np.prod(filter[2:]))
    offsets = rng.uniform(-3, 3, (data[0], points * len(counts), *counts)).astype(dtype)
    offsets.reshape(-1)[::7] = np.round(offsets.reshape(-1)[::7])
    offsets.reshape(-1)[5] = np.nan
    offsets.reshape(-1)[11] = 1e9
    mask = [rng.uniform(0, 1, (data[0], points, *counts)).astype(dtype)] if masked else []
    return [x, offsets, weights, *mask], rng


@pytest.mark.parametrize(("data", "filter", "deformable", "groups", "spatial"), ROWS)
@pytest.mark.parametrize(("version", "masked", "zero_pad"), VERSIONS)
@pytest.mark.parametrize("constants", [(2,), ()], ids=["known weights", "weights as input"])
def test_against_the_reference_kernel(data, filter, deformable, groups, spatial, version, masked, zero_pad, constants):
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)} | spatial
    inputs, rng = _arrays(data, filter, deformable, attributes, np.float32, masked)
    attributes |= {"group": groups, "deformable_group": deformable}
    if version != "opset1":
        attributes["bilinear_interpolation_pad"] = zero_pad
    definition = resolve("DeformableConvolution", version)
    expected = definition(*inputs, **definition.arguments(attributes))
    task = task_of("DeformableConvolution", version, inputs, attributes, constants=constants)
    assert check_candidates(task, inputs, expected) == {"gathered pixels"}
    operands = operands_of(expected.shape, expected.dtype, rng)
    chained = task_of(
        "DeformableConvolution",
        version,
        inputs,
        attributes,
        constants=constants,
        chain=bias_residual_relu(),
        operands=operands,
        threads=2,
    )
    check_candidates(chained, inputs, np.maximum(expected + operands[0] + operands[1], 0), operands)


def test_infinite_pixels_count_only_where_they_are_met():
    """A position outside gives zero, not the product of zero and an infinite pixel."""
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    inputs, _ = _arrays((1, 2, 5, 5), (2, 2, 1, 1), 1, attributes, np.float32, False)
    inputs[0][...] = 1
    inputs[0][0, :, 0, 0] = np.inf
    inputs[1][...] = 100
    definition = resolve("DeformableConvolution", "opset8")
    expected = definition(*inputs, **definition.arguments(attributes))
    assert not expected.any()
    check_candidates(task_of("DeformableConvolution", "opset8", inputs, attributes, constants=(2,)), inputs, expected)
