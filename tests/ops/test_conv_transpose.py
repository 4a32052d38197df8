"""oneDNN's ConvTranspose against ConvolutionBackpropData, whose own results the rows of tests/cases/transposed.py hold.

The pads are resolved here by the formulas that seed 004 prints, and given to the other operation explicitly.
"""

import itertools

import numpy as np
import pytest

from irexec.ir.facts import Fact
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, task_of
from tests.support.passes import run_kernel

ONEDNN = resolve("ConvTranspose", "onednn")
GROUPED = resolve("GroupConvolutionBackpropData", "opset1")

DATA_FORMATS = ("NXC", "NCX")
FILTER_FORMATS = (
    ("filter_format", "XIO"),
    ("filter_format", "OIX"),
    ("weights_format", "XOI"),
    ("weights_format", "IOX"),
)
AUTO_PADS = ("none", "same_upper", "same_lower", "valid")
GROUPS = (1, 2)
OUTPUT_PADDINGS = ((0, 0), (1, 2))

# strides, dilations, pads_begin, pads_end: with a kernel of 4 x 3 the total padding of same_* is odd on one axis, even on the other;
# the second has a stride beyond the kernel.
GEOMETRIES = (((1, 2), (2, 1), (1, 0), (0, 2)), ((5, 4), (1, 1), (1, 1), (1, 0)))
KERNEL = (4, 3)
SIZES = (3, 4)
INPUTS, OUTPUTS = 4, 3


def resolved(auto_pad, strides, dilations, begins, ends):
    """What seed 004 cuts at the start and at the end of each axis."""
    if auto_pad == "none":
        return begins, ends
    if auto_pad == "valid":
        return (0, 0), (0, 0)
    totals = [max(0, (k - 1) * d + 1 - s) for k, d, s in zip(KERNEL, dilations, strides, strict=True)]
    less = tuple(total // 2 for total in totals)
    more = tuple(total - total // 2 for total in totals)
    return (less, more) if auto_pad == "same_upper" else (more, less)


def spread(weights, layout):
    """(I, O, Y, X) in another layout."""
    axes = {"I": [0], "O": [1], "X": [2, 3]}
    return np.ascontiguousarray(weights.transpose([axis for letter in layout for axis in axes[letter]]))


def text(numbers):
    return ", ".join(map(str, numbers))


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("auto_pad", AUTO_PADS)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("output_padding", OUTPUT_PADDINGS)
def test_every_layout_gives_what_explicit_pads_give(geometry, auto_pad, groups, output_padding):
    strides, dilations, begins, ends = geometry
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, INPUTS, *SIZES), np.float32)
    weights = rng.standard_normal((INPUTS, OUTPUTS, *KERNEL), np.float32)
    bias = rng.standard_normal(OUTPUTS * groups, np.float32)
    common = {"strides": strides, "dilations": dilations}
    begin, end = resolved(auto_pad, strides, dilations, begins, ends)
    by_group = weights.reshape(groups, INPUTS // groups, OUTPUTS, *KERNEL)
    explicit = common | {"pads_begin": begin, "pads_end": end, "output_padding": output_padding}
    expected = GROUPED(data, by_group, **GROUPED.arguments(explicit))
    expected = expected + bias[:, None, None]
    attributes = common | {"pads_begin": begins, "pads_end": ends, "auto_pad": auto_pad, "groups": groups}
    for data_format, (name, layout) in itertools.product(DATA_FORMATS, FILTER_FORMATS):
        given = ONEDNN.arguments(
            attributes | {"data_format": data_format, name: layout, "output_padding": text(output_padding)}
        )
        x = data if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(data, 1, -1))
        reference = expected if data_format == "NCX" else np.moveaxis(expected, 1, -1)
        w = spread(weights, layout)
        np.testing.assert_allclose(ONEDNN(x, w, bias, **given), reference, rtol=1e-5, atol=1e-5)
        facts = Fact.of(x), Fact.of(w), Fact.of(bias)
        assert ONEDNN.infer(facts, given).shape == reference.shape
        task = task_of("ConvTranspose", "onednn", [x, w, bias], ONEDNN.ungrouped(given), constants=[1])
        for kernel in candidates(task):
            np.testing.assert_allclose(run_kernel(kernel, task, [x, w, bias])[0], reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("version", ["onednn", "opset1", "opset17", "extension", ""])
def test_it_is_found_under_any_version_name(version):
    assert resolve("ConvTranspose", version) is ONEDNN
