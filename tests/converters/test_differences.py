"""Corner cases in which ONNX and IR differ: transposed convolutions, indices smaller than the data, axes known at run time.

Expected values are computed by hand and equal those of ONNX Runtime 1.31.1, except for an output_shape with batch and
channels, which it refuses.
"""

from __future__ import annotations

import numpy as np
import pytest

import converters
import irexec
from tests.support.onnx_models import model_of, run

X = np.array([[[1, 10]]], np.float32)
# The data [1, 10] and the kernel [1, 2, 3] give 1, 2, 3 + 10, 20, 30 with stride 2, without padding.
_TRANSPOSED = {
    "no padding": ("", [1, 2, 13, 20, 30]),
    "VALID": ('auto_pad = "VALID"', [1, 2, 13, 20, 30]),
    "SAME_UPPER removes the odd element at the end": ('auto_pad = "SAME_UPPER"', [1, 2, 13, 20]),
    "SAME_LOWER removes the odd element at the start": ('auto_pad = "SAME_LOWER"', [2, 13, 20, 30]),
    "pads": ("pads = [0, 2]", [1, 2, 13]),
    "output_padding": ("output_padding = [1]", [1, 2, 13, 20, 30, 0]),
    "pads and output_padding": ("pads = [1, 1], output_padding = [1]", [2, 13, 20, 30]),
    "output_shape removes the odd element at the start": ("output_shape = [4]", [2, 13, 20, 30]),
    "output_shape with VALID too": ('output_shape = [4], auto_pad = "VALID"', [2, 13, 20, 30]),
    "output_shape with SAME_LOWER too": ('output_shape = [4], auto_pad = "SAME_LOWER"', [2, 13, 20, 30]),
    "output_shape with SAME_UPPER removes it at the end": ('output_shape = [4], auto_pad = "SAME_UPPER"', [1, 2, 13, 20]),
    "output_shape with an even difference": ("output_shape = [3]", [2, 13, 20]),
    "output_shape with batch and channels": ("output_shape = [1, 1, 4]", [2, 13, 20, 30]),
    "output_shape overrides pads": ("output_shape = [4], pads = [2, 2]", [2, 13, 20, 30]),
    "output_padding is part of the total padding": ('auto_pad = "SAME_UPPER", output_padding = [1]', [2, 13, 20, 30]),
}  # fmt: skip


@pytest.mark.parametrize("domain", ["", "com.ms.internal.nhwc."])
@pytest.mark.parametrize("name", _TRANSPOSED)
def test_transposed_convolutions(name: str, domain: str) -> None:
    attributes, expected = _TRANSPOSED[name]
    last = bool(domain)
    given = ", ".join(filter(None, ["strides = [2]", attributes]))
    shape = "1,2,1" if last else "1,1,2"
    model = model_of(
        f"(float[{shape}] x) => (float y) {{ y = {domain}ConvTranspose <{given}> (x, w) }}", w=np.float32([[[1, 2, 3]]])
    )
    result = run(model, X.reshape(1, 2, 1) if last else X)[0]
    np.testing.assert_array_equal(result, np.float32(expected).reshape((1, -1, 1) if last else (1, 1, -1)))
    layer = next(node for node in converters.convert(model).nodes if node.type == "ConvolutionBackpropData")
    assert len(layer.inputs) == 2
    assert layer.attributes["auto_pad"] == "explicit"


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_a_kernel_smaller_than_the_stride_is_not_padded(mode: str) -> None:
    model = model_of(
        f'(float[1,1,2] x) => (float y) {{ y = ConvTranspose <strides = [3], auto_pad = "{mode}"> (x, w) }}',
        w=np.float32([[[1, 2]]]),
    )
    np.testing.assert_array_equal(run(model, X)[0], [[[1, 2, 0, 10, 20]]])


def test_output_padding_of_a_stride_is_refused() -> None:
    model = model_of(
        "(float[1,1,2] x) => (float y) { y = ConvTranspose <strides = [2], output_padding = [2]> (x, w) }",
        w=np.ones((1, 1, 3), np.float32),
    )
    with pytest.raises(irexec.ConversionError, match="output_padding 2 is not less than stride 2"):
        converters.convert(model)


DATA = np.float32([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    "shapes", ["float[2,3] x, int64[1,2] i", "float[a,b] x, int64[c,d] i", "float[?,?] x, int64[?,?] i"]
)
def test_indices_smaller_than_the_data(shapes: str) -> None:
    """Only the first two columns of the data are read."""
    text = shapes.replace("?", "")
    model = model_of(
        f"({shapes if '?' not in shapes else text.replace('[,]', '[p,q]')}) => (float y) {{ y = GatherElements <axis = 0> (x, i) }}"
    )
    if "?" in shapes:
        for info in model.graph.input:
            for dim in info.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
    np.testing.assert_array_equal(run(model, DATA, np.array([[1, 0]]))[0], [[4, 2]])


def test_indices_of_equal_sizes_need_no_slice() -> None:
    for shapes in ("float[2,3] x, int64[4,3] i", "float[a,n] x, int64[b,n] i"):
        converted = converters.convert(model_of(f"({shapes}) => (float y) {{ y = GatherElements <axis = 0> (x, i) }}"))
        assert "Slice" not in {node.type for node in converted.nodes}


@pytest.mark.parametrize(
    ("noop", "axes", "expected"),
    [(0, [], [[21]]), (1, [], DATA), (0, [0], [[5, 7, 9]]), (0, [-1], [[6], [15]]), (0, [0, -1], [[21]])],
)
def test_axes_that_may_be_empty_at_run_time(noop: int, axes: list[int], expected: object) -> None:
    model = model_of(
        f"(float[2,3] x, int64[n] a) => (float y) {{ y = ReduceSum <noop_with_empty_axes = {noop}> (x, a) }}"
    )
    np.testing.assert_array_equal(run(model, DATA, np.array(axes, np.int64))[0], np.float32(expected))
