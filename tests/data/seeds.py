"""The worked examples of the five seed documents as plain data, for every way they are checked.

Straight through the kernels here, through IR text, and from ONNX. Numbers are as printed there; each is a whole number.
Seeds 000 and 003 are ONNX Runtime's com.ms.internal.nhwc ConvTranspose and Conv, printed channels-first from the ai.onnx
text; 001 is OpenVINO's GroupConvolutionBackpropData; 002 (DeformConv) and 004 (oneDNN ConvTranspose) print no numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Tensor(NamedTuple):
    """A shape and the numbers in row-major order."""

    shape: tuple[int, ...]
    numbers: tuple[int, ...]

    def array(self) -> np.ndarray:
        """As a float32 array."""
        return np.array(self.numbers, np.float32).reshape(self.shape)


class Example(NamedTuple):
    """One ONNX node with what goes in and what comes out, channels-first.

    Attributes:
        name: as in the document, without "test_".
        operator: "Conv" or "ConvTranspose".
        x, w, y: data, weights and result.
        attributes: of the ONNX node.
    """

    name: str
    operator: str
    x: Tensor
    w: Tensor
    y: Tensor
    attributes: dict[str, Any]


# fmt: off
X_3_3 = Tensor((1, 1, 3, 3), (0, 1, 2, 3, 4, 5, 6, 7, 8))

W_2_3_3 = Tensor((1, 2, 3, 3), (1,) * 18)

Y_CONVTRANSPOSE = Tensor((1, 2, 5, 5), (
     0,  1,  3,  3,  2,
     3,  8, 15, 12,  7,
     9, 21, 36, 27, 15,
     9, 20, 33, 24, 13,
     6, 13, 21, 15,  8,
     0,  1,  3,  3,  2,
     3,  8, 15, 12,  7,
     9, 21, 36, 27, 15,
     9, 20, 33, 24, 13,
     6, 13, 21, 15,  8,
))

X_3 = Tensor((1, 1, 3), (0, 1, 2))

W_2_3 = Tensor((1, 2, 3), (1,) * 6)

Y_CONVTRANSPOSE_1D = Tensor((1, 2, 5), (0, 1, 3, 3, 2, 0, 1, 3, 3, 2))

X_3_4_5 = Tensor((1, 1, 3, 4, 5), (
     0,  1,  2,  3,  4,
     5,  6,  7,  8,  9,
    10, 11, 12, 13, 14,
    15, 16, 17, 18, 19,
    20, 21, 22, 23, 24,
    25, 26, 27, 28, 29,
    30, 31, 32, 33, 34,
    35, 36, 37, 38, 39,
    40, 41, 42, 43, 44,
    45, 46, 47, 48, 49,
    50, 51, 52, 53, 54,
    55, 56, 57, 58, 59,
))

W_2_3_3_3 = Tensor((1, 2, 3, 3, 3), (1,) * 54)

Y_CONVTRANSPOSE_3D = Tensor((1, 2, 5, 6, 7), (
      0,   1,   3,   6,   9,   7,   4,
      5,  12,  21,  27,  33,  24,  13,
     15,  33,  54,  63,  72,  51,  27,
     30,  63,  99, 108, 117,  81,  42,
     25,  52,  81,  87,  93,  64,  33,
     15,  31,  48,  51,  54,  37,  19,
     20,  42,  66,  72,  78,  54,  28,
     50, 104, 162, 174, 186, 128,  66,
     90, 186, 288, 306, 324, 222, 114,
    120, 246, 378, 396, 414, 282, 144,
     90, 184, 282, 294, 306, 208, 106,
     50, 102, 156, 162, 168, 114,  58,
     60, 123, 189, 198, 207, 141,  72,
    135, 276, 423, 441, 459, 312, 159,
    225, 459, 702, 729, 756, 513, 261,
    270, 549, 837, 864, 891, 603, 306,
    195, 396, 603, 621, 639, 432, 219,
    105, 213, 324, 333, 342, 231, 117,
     60, 122, 186, 192, 198, 134,  68,
    130, 264, 402, 414, 426, 288, 146,
    210, 426, 648, 666, 684, 462, 234,
    240, 486, 738, 756, 774, 522, 264,
    170, 344, 522, 534, 546, 368, 186,
     90, 182, 276, 282, 288, 194,  98,
     40,  81, 123, 126, 129,  87,  44,
     85, 172, 261, 267, 273, 184,  93,
    135, 273, 414, 423, 432, 291, 147,
    150, 303, 459, 468, 477, 321, 162,
    105, 212, 321, 327, 333, 224, 113,
     55, 111, 168, 171, 174, 117,  59,
      0,   1,   3,   6,   9,   7,   4,
      5,  12,  21,  27,  33,  24,  13,
     15,  33,  54,  63,  72,  51,  27,
     30,  63,  99, 108, 117,  81,  42,
     25,  52,  81,  87,  93,  64,  33,
     15,  31,  48,  51,  54,  37,  19,
     20,  42,  66,  72,  78,  54,  28,
     50, 104, 162, 174, 186, 128,  66,
     90, 186, 288, 306, 324, 222, 114,
    120, 246, 378, 396, 414, 282, 144,
     90, 184, 282, 294, 306, 208, 106,
     50, 102, 156, 162, 168, 114,  58,
     60, 123, 189, 198, 207, 141,  72,
    135, 276, 423, 441, 459, 312, 159,
    225, 459, 702, 729, 756, 513, 261,
    270, 549, 837, 864, 891, 603, 306,
    195, 396, 603, 621, 639, 432, 219,
    105, 213, 324, 333, 342, 231, 117,
     60, 122, 186, 192, 198, 134,  68,
    130, 264, 402, 414, 426, 288, 146,
    210, 426, 648, 666, 684, 462, 234,
    240, 486, 738, 756, 774, 522, 264,
    170, 344, 522, 534, 546, 368, 186,
     90, 182, 276, 282, 288, 194,  98,
     40,  81, 123, 126, 129,  87,  44,
     85, 172, 261, 267, 273, 184,  93,
    135, 273, 414, 423, 432, 291, 147,
    150, 303, 459, 468, 477, 321, 162,
    105, 212, 321, 327, 333, 224, 113,
     55, 111, 168, 171, 174, 117,  59,
))

Y_CONVTRANSPOSE_OUTPUT_SHAPE = Tensor((1, 2, 10, 8), (
     0,  0,  1,  1,  3,  2,  2,  0,
     0,  0,  1,  1,  3,  2,  2,  0,
     0,  0,  1,  1,  3,  2,  2,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     0,  0,  0,  0,  0,  0,  0,  0,
     0,  0,  1,  1,  3,  2,  2,  0,
     0,  0,  1,  1,  3,  2,  2,  0,
     0,  0,  1,  1,  3,  2,  2,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     3,  3,  7,  4,  9,  5,  5,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     6,  6, 13,  7, 15,  8,  8,  0,
     0,  0,  0,  0,  0,  0,  0,  0,
))

Y_CONVTRANSPOSE_PADS = Tensor((1, 2, 7, 3), (
     1,  1,  3,
     1,  1,  3,
     7,  4,  9,
     7,  4,  9,
     7,  4,  9,
    13,  7, 15,
    13,  7, 15,
     1,  1,  3,
     1,  1,  3,
     7,  4,  9,
     7,  4,  9,
     7,  4,  9,
    13,  7, 15,
    13,  7, 15,
))

X_3_3_2 = Tensor((1, 1, 3, 3), (3, 8, 1, 9, 5, 7, 3, 2, 6))

W_1_2_2 = Tensor((1, 1, 2, 2), (7, 2, 1, 9))

Y_CONVTRANSPOSE_DILATIONS = Tensor((1, 1, 5, 5), (
    21, 56, 13, 16,  2,
    63, 35, 67, 10, 14,
    24, 22, 76, 76, 21,
     9,  5, 88, 45, 63,
     3,  2, 33, 18, 54,
))

Y_CONVTRANSPOSE_AUTOPAD_SAME = Tensor((1, 2, 6, 6), (
     0,  0,  1,  1,  3,  2,
     0,  0,  1,  1,  3,  2,
     3,  3,  8,  5, 12,  7,
     3,  3,  7,  4,  9,  5,
     9,  9, 20, 11, 24, 13,
     6,  6, 13,  7, 15,  8,
     0,  0,  1,  1,  3,  2,
     0,  0,  1,  1,  3,  2,
     3,  3,  8,  5, 12,  7,
     3,  3,  7,  4,  9,  5,
     9,  9, 20, 11, 24, 13,
     6,  6, 13,  7, 15,  8,
))

X_5_5 = Tensor((1, 1, 5, 5), (
     0,  1,  2,  3,  4,
     5,  6,  7,  8,  9,
    10, 11, 12, 13, 14,
    15, 16, 17, 18, 19,
    20, 21, 22, 23, 24,
))

W_1_3_3 = Tensor((1, 1, 3, 3), (1,) * 9)

Y_BASIC_CONV_WITH_PADDING = Tensor((1, 1, 5, 5), (
     12,  21,  27,  33,  24,
     33,  54,  63,  72,  51,
     63,  99, 108, 117,  81,
     93, 144, 153, 162, 111,
     72, 111, 117, 123,  84,
))

Y_BASIC_CONV_WITHOUT_PADDING = Tensor((1, 1, 3, 3), (54, 63, 72, 99, 108, 117, 144, 153, 162))

X_7_5 = Tensor((1, 1, 7, 5), (
     0,  1,  2,  3,  4,
     5,  6,  7,  8,  9,
    10, 11, 12, 13, 14,
    15, 16, 17, 18, 19,
    20, 21, 22, 23, 24,
    25, 26, 27, 28, 29,
    30, 31, 32, 33, 34,
))

Y_CONV_WITH_STRIDES_PADDING = Tensor((1, 1, 4, 3), (
     12,  27,  24,
     63, 108,  81,
    123, 198, 141,
    112, 177, 124,
))

Y_CONV_WITH_STRIDES_NO_PADDING = Tensor((1, 1, 3, 2), (54, 72, 144, 162, 234, 252))

Y_CONV_WITH_STRIDES_AND_ASYMMETRIC_PADDING = Tensor((1, 1, 4, 2), (21, 33, 99, 117, 189, 207, 171, 183))

Y_CONV_WITH_AUTOPAD_SAME = Tensor((1, 1, 3, 3), (12, 27, 24, 63, 108, 81, 72, 117, 84))

CONV_TRANSPOSE = (
    Example("convtranspose", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE, {}),
    Example("convtranspose_1d", "ConvTranspose", X_3, W_2_3, Y_CONVTRANSPOSE_1D, {}),
    Example("convtranspose_3d", "ConvTranspose", X_3_4_5, W_2_3_3_3, Y_CONVTRANSPOSE_3D, {}),
    Example("convtranspose_output_shape", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE_OUTPUT_SHAPE, {"strides": [3, 2], "output_shape": [10, 8]}),
    Example("convtranspose_pad", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE_OUTPUT_SHAPE, {"strides": [3, 2], "output_padding": [1, 1]}),
    Example(
        "convtranspose_kernel_shape", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE_OUTPUT_SHAPE,
        {"strides": [3, 2], "output_shape": [10, 8], "kernel_shape": [3, 3], "output_padding": [1, 1]},
    ),
    Example("convtranspose_pads", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE_PADS, {"strides": [3, 2], "pads": [1, 2, 1, 2]}),
    Example("convtranspose_dilations", "ConvTranspose", X_3_3_2, W_1_2_2, Y_CONVTRANSPOSE_DILATIONS, {"dilations": [2, 2]}),
    Example("convtranspose_autopad_same", "ConvTranspose", X_3_3, W_2_3_3, Y_CONVTRANSPOSE_AUTOPAD_SAME, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
)  # fmt: skip

CONV = (
    Example("basic_conv_with_padding", "Conv", X_5_5, W_1_3_3, Y_BASIC_CONV_WITH_PADDING, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Example("basic_conv_without_padding", "Conv", X_5_5, W_1_3_3, Y_BASIC_CONV_WITHOUT_PADDING, {"kernel_shape": [3, 3], "pads": [0, 0, 0, 0]}),
    Example(
        "conv_with_strides_padding", "Conv", X_7_5, W_1_3_3, Y_CONV_WITH_STRIDES_PADDING,
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
    ),
    Example(
        "conv_with_strides_no_padding", "Conv", X_7_5, W_1_3_3, Y_CONV_WITH_STRIDES_NO_PADDING,
        {"kernel_shape": [3, 3], "pads": [0, 0, 0, 0], "strides": [2, 2]},
    ),
    Example(
        "conv_with_strides_and_asymmetric_padding", "Conv", X_7_5, W_1_3_3, Y_CONV_WITH_STRIDES_AND_ASYMMETRIC_PADDING,
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 0], "strides": [2, 2]},
    ),
    Example("conv_with_autopad_same", "Conv", X_5_5, W_1_3_3, Y_CONV_WITH_AUTOPAD_SAME, {"auto_pad": "SAME_LOWER", "kernel_shape": [3, 3], "strides": [2, 2]}),
)  # fmt: skip

# The layer of seed 001, character for character. It says nothing of its opset, and its output port has the number of an input port.
UPSAMPLING_LAYER = """\
<layer id="5" name="upsampling_node" type="GroupConvolutionBackpropData">
<data dilations="1,1" pads_begin="1,1" pads_end="1,1" strides="2,2"/>
<input>
<port id="0">
<dim>1</dim>
<dim>20</dim>
<dim>224</dim>
<dim>224</dim>
</port>
<port id="1">
<dim>4</dim>
<dim>5</dim>
<dim>2</dim>
<dim>3</dim>
<dim>3</dim>
</port>
</input>
<output>
<port id="0" precision="FP32">
<dim>1</dim>
<dim>8</dim>
<dim>447</dim>
<dim>447</dim>
</port>
</output>
</layer>
"""
# fmt: on

_PARAMETER = """\
<layer id="{id}" name="{name}" type="Parameter" version="opset1">
<data shape="{shape}" element_type="f32"/>
<output><port id="0" precision="FP32">{dims}</port></output>
</layer>
"""


def _parameter(id: int, name: str, *sizes: int) -> str:
    dims = "".join(f"<dim>{size}</dim>" for size in sizes)
    return _PARAMETER.format(id=id, name=name, shape=",".join(map(str, sizes)), dims=dims)


def upsampling_model() -> str:
    """A whole IR round the layer of seed 001, to which only ``version`` is added; it needs no .bin."""
    layer = UPSAMPLING_LAYER.replace(
        'type="GroupConvolutionBackpropData"', 'type="GroupConvolutionBackpropData" version="opset1"'
    )
    result_dims = "<dim>1</dim><dim>8</dim><dim>447</dim><dim>447</dim>"
    return f"""\
<?xml version="1.0"?>
<net name="upsampling" version="11">
<layers>
{_parameter(0, "data", 1, 20, 224, 224)}{_parameter(1, "filter", 4, 5, 2, 3, 3)}{layer}\
<layer id="6" name="result" type="Result" version="opset1">
<input><port id="0" precision="FP32">{result_dims}</port></input>
</layer>
</layers>
<edges>
<edge from-layer="0" from-port="0" to-layer="5" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="5" to-port="1"/>
<edge from-layer="5" from-port="0" to-layer="6" to-port="0"/>
</edges>
</net>
"""
