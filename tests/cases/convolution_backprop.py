"""Rows of ConvolutionBackpropData, GroupConvolutionBackpropData and oneDNN's ConvTranspose."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.data.seeds import CONV_TRANSPOSE, W_2_3_3, X_3_3
from tests.support.cases import emptied, halves, odd

PLAIN_1D = {"strides": "1", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
PLAIN = {"strides": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0", "dilations": "1, 1"}
PADDED = PLAIN | {"pads_begin": "1, 1", "pads_end": "1, 1"}
UNEVEN = {"strides": "2, 3", "pads_begin": "1, 2", "pads_end": "0, 1", "dilations": "2, 1"}

# How the ONNX attributes of the examples of seed 000 read in IR once everything is resolved to explicit pads: natural sizes are
# 9 x 7 for strides 3, 2, so 10 x 8 is one more on both axes; SAME_UPPER cuts the one of 7 that is above 3 * 2 at the end.
LARGER = PLAIN | {"strides": "3, 2", "output_padding": "1, 1"}
SEEDS = {
    "convtranspose": PLAIN,
    "convtranspose_1d": PLAIN_1D,
    "convtranspose_3d": {"strides": "1, 1, 1", "pads_begin": "0, 0, 0", "pads_end": "0, 0, 0", "dilations": "1, 1, 1"},
    "convtranspose_output_shape": LARGER,
    "convtranspose_pad": LARGER,
    "convtranspose_kernel_shape": LARGER,
    "convtranspose_pads": PLAIN | {"strides": "3, 2", "pads_begin": "1, 2", "pads_end": "1, 2"},
    "convtranspose_dilations": PLAIN | {"dilations": "2, 2"},
    "convtranspose_autopad_same": PLAIN | {"strides": "2, 2", "pads_end": "1, 1"},
}
# In ONNX and oneDNN Graph the filter has all input channels first: IR's layout, IOX, and NCX data.
ONEDNN = {"data_format": "NCX", "weights_format": "IOX"}

convolution_backprop_data = Operation("ConvolutionBackpropData", 1)
conv_transpose = Operation("ConvTranspose", "onednn")
SEED_ROWS = [
    row
    for e in CONV_TRANSPOSE
    for row in (
        convolution_backprop_data(e.x.array(), e.w.array(), gives=e.y.array(), **SEEDS[e.name], id=f"seed 000 {e.name}"),
        case("GroupConvolutionBackpropData", 1, e.x.array(), e.w.array()[None], gives=e.y.array(), **SEEDS[e.name], id=f"seed 000 {e.name}"),
        conv_transpose(e.x.array(), e.w.array(), gives=e.y.array(), **ONEDNN, **SEEDS[e.name], id=f"seed 000 {e.name}"),
    )
] + [
    # oneDNN's same_upper is ONNX's.
    conv_transpose(X_3_3.array(), W_2_3_3.array(), gives=CONV_TRANSPOSE[-1].y.array(), **ONEDNN,
         **(PLAIN | {"strides": "2, 2", "auto_pad": "SAME_UPPER"}), id="seed 000 same_upper by the rule"),
]  # fmt: skip

X = random("f32", 1, 2, 4, 3)
W = random("f32", 2, 3, 3, 3, seed=1)
LINE = np.array([[[1, 10, 100]]], np.float32)
ONES_2 = np.ones((1, 1, 2), np.float32)
# stride 1, kernel 2, ones: the natural result of LINE is 1 11 110 100. Every expected value of a LINE row follows from it and the table
# in irexec.ops.convolution; OpenVINO's CPU plugin gives the same.


def line(expected, *shape, id, **attributes):
    """A row on LINE, 1-D, with the sizes of output_shape if any."""
    inputs = [LINE, ONES_2, *([np.array(shape)] if shape else [])]
    reference = np.array([[expected]], np.float32)
    return convolution_backprop_data(*inputs, gives=reference, **(PLAIN_1D | attributes), id=id)


BY_HAND = [
    line([1, 11, 110, 100], id="natural"),
    line([11, 110], pads_begin="1", pads_end="1", id="explicit cuts both ends"),
    line([110, 100], pads_begin="2", id="explicit cuts the start"),
    line([1, 11, 110, 100, 0, 0], output_padding="2", id="output_padding beyond the end is zero"),
    line([11, 110, 100, 0], pads_begin="1", output_padding="1", id="output_padding with pads"),
    line([11, 110, 100], pads_begin="1", pads_end="1", output_padding="1", id="output_padding uncovers"),
    line([1, 11, 110, 100], pads_begin="1", pads_end="1", auto_pad="same_upper", id="same_upper without a shape cuts nothing"),
    line([1, 11, 110, 100], pads_begin="1", pads_end="1", auto_pad="same_lower", id="same_lower without a shape cuts nothing"),
    line([1, 11, 110, 100], pads_begin="1", pads_end="1", auto_pad="valid", id="valid without a shape cuts nothing"),
    line([1, 11, 110, 100, 0], auto_pad="same_upper", output_padding="1", id="same_upper without a shape adds output_padding"),
    line([11, 110, 100], 3, auto_pad="same_upper", id="same_upper cuts the larger half first"),
    line([1, 11, 110], 3, auto_pad="same_lower", id="same_lower cuts the larger half last"),
    line([11, 110], 2, auto_pad="same_upper", id="same_upper even"),
    line([11, 110], 2, auto_pad="same_lower", id="same_lower even"),
    line([110], 1, auto_pad="same_upper", id="same_upper three"),
    line([11], 1, auto_pad="same_lower", id="same_lower three"),
    line([11, 110], 2, auto_pad="explicit", pads_begin="1", pads_end="0", id="explicit with a shape heeds pads_begin"),
    line([1, 11], 2, auto_pad="explicit", pads_begin="0", pads_end="1", id="explicit with a shape does not split"),
    line([1, 11], 2, auto_pad="valid", pads_begin="1", id="valid with a shape cuts nothing at the start"),
    line([11, 110, 100], 3, auto_pad="same_lower", output_padding="1", id="output_padding enters the split of same_lower"),
    line([11, 110, 100], 3, auto_pad="same_upper", output_padding="1", id="output_padding enters the split of same_upper"),
    line([110, 100, 0], 3, auto_pad="same_upper", output_padding="2", id="output_padding moves the split of same_upper"),
    line([1, 11, 110, 100, 0, 0], 6, auto_pad="same_upper", id="same_upper beyond the natural size"),
    line([1, 11, 110, 100, 0, 0], 6, auto_pad="same_lower", id="same_lower beyond the natural size"),
    line([1, 11, 110, 100, 0], 5, auto_pad="valid", id="valid beyond the natural size"),
    line([110, 100, 0, 0], 4, pads_begin="2", id="explicit beyond the natural size"),
    line([1, 0, 10, 0, 100], 5, auto_pad="valid", strides="2", dilations="7", id="valid cut before the second tap"),
]  # fmt: skip

BACKPROP = [
    convolution_backprop_data(X, W, **PLAIN, id="3x3"),
    convolution_backprop_data(X, W, **UNEVEN, id="everything uneven"),
    convolution_backprop_data(X, W, **(UNEVEN | {"output_padding": "1, 2"}), id="everything uneven with output_padding"),
    convolution_backprop_data(X, W, [7, 8], **(UNEVEN | {"auto_pad": "same_upper"}), id="output_shape same_upper"),
    convolution_backprop_data(X, W, [7, 8], **(UNEVEN | {"auto_pad": "same_lower"}), id="output_shape same_lower"),
    convolution_backprop_data(X, W, [7, 8], **(UNEVEN | {"auto_pad": "valid"}), id="output_shape valid"),
    convolution_backprop_data(X, W, [7, 8], **UNEVEN, id="output_shape explicit"),
    convolution_backprop_data(X, W, typed("i32", [7, 8]), **UNEVEN, id="output_shape of i32"),
    convolution_backprop_data(X, random("f32", 2, 3, 2, 2), **(PLAIN | {"strides": "2, 2"}), id="kernel as the stride"),
    convolution_backprop_data(X, random("f32", 2, 3, 1, 2), **(PLAIN | {"strides": "3, 3"}), id="stride beyond the kernel"),
    convolution_backprop_data(X, random("f32", 2, 3, 1, 1), **PLAIN, id="1x1"),
    convolution_backprop_data(X, random("f32", 2, 3, 4, 4), **(PADDED | {"strides": "2, 2"}), id="4x4 stride 2"),
    convolution_backprop_data(random("f32", 2, 3, 5), random("f32", 3, 2, 4), **(PLAIN_1D | {"strides": "3"}), id="1-D"),
    convolution_backprop_data(random("f32", 1, 2, 3, 2, 3), random("f32", 2, 2, 2, 3, 2), strides="2, 1, 2", pads_begin="1, 0, 1",
         pads_end="0, 1, 1", dilations="1, 2, 1", output_padding="1, 0, 0", id="3-D"),
    convolution_backprop_data(X, W, strides="", pads_begin="", pads_end="", dilations="", output_padding="", id="empty lists"),
    convolution_backprop_data(random("f32", 0, 2, 4, 3), W, gives=np.zeros((0, 3, 6, 5), np.float32), **PLAIN, id="empty batch"),
    convolution_backprop_data(random("f32", 1, 0, 2, 2), random("f32", 0, 3, 2, 2), gives=np.zeros((1, 3, 3, 3), np.float32), **PLAIN, id="no channels"),
    # An axis of size 0 counts as 1, as in OpenVINO's shape inference; nothing adds to it.
    convolution_backprop_data(random("f32", 1, 2, 4, 0), W, gives=np.zeros((1, 3, 6, 3), np.float32), **PLAIN, id="empty axis"),
    convolution_backprop_data(X, W, [0, 3], gives=np.zeros((1, 3, 0, 3), np.float32), **PLAIN, id="output_shape of 0"),
    # By hand, from the natural result above.
    convolution_backprop_data(LINE.astype(np.float16), ONES_2.astype(np.float16), gives=np.array([[[1, 11, 110, 100]]], np.float16), **PLAIN_1D, id="f16"),
    convolution_backprop_data(typed("bf16", [[[1, 10, 100]]]), typed("bf16", [[[1, 1]]]), gives=typed("bf16", [[[1, 11, 110, 100]]]), **PLAIN_1D, id="bf16"),
    convolution_backprop_data(np.array([[[1.0, 1e-12]]]), np.ones((1, 1, 2)), gives=np.array([[[1, 1 + 1e-12, 1e-12]]]),
             **PLAIN_1D,
         tolerance=1e-15, id="f64 keeps its digits"),
    convolution_backprop_data(LINE.astype(np.int32), ONES_2.astype(np.int32), gives=np.array([[[1, 11, 110, 100]]], np.int32), **PLAIN_1D, id="i32"),
    convolution_backprop_data(typed("u8", [[[200, 100]]]), typed("u8", [[[1, 1]]]), gives=typed("u8", [[[200, 44, 100]]]), **PLAIN_1D, id="u8 wraps"),
    convolution_backprop_data(np.array([[[1, np.nan, np.inf, 2]]], np.float32), ONES_2,
         gives=np.array([[[1, np.nan, np.nan, np.inf, 2]]], np.float32), **PLAIN_1D, id="NaN and infinity"),
]  # fmt: skip

BACKPROP_FACTS = [
    # The specification's examples.
    convolution_backprop_data.facts("f32[1,20,224,224]", "f32[20,10,3,3]", dilations="1,1", pads_begin="1,1", pads_end="1,1",
               strides="2,2", output_padding="0,0", auto_pad="explicit", gives="f32[1,10,447,447]", id="specification 1"),
    convolution_backprop_data.facts("f32[1,20,2,2]", "f32[20,10,3,3]", dilations="1,1", pads_begin="0,0", pads_end="0,0",
               strides="3,3", output_padding="2,2", auto_pad="explicit", gives="f32[1,10,8,8]", id="specification 2"),
    convolution_backprop_data.facts("f32[1,20,224,224]", "f32[20,10,3,3]", [450, 450], dilations="1,1", pads_begin="1,1",
               pads_end="1,1", strides="1,1", output_padding="0,0", auto_pad="valid", gives="f32[1,10,450,450]", id="specification 3"),
    convolution_backprop_data.facts("f32[?,2,2..10,?]", "f32[2,3,3,3]", **(PLAIN | {"strides": "2, 2"}), id="bounded sizes"),
    convolution_backprop_data.facts("f32[...]", "f32[2,3,3,3]", **PLAIN, id="data of unknown rank"),
    convolution_backprop_data.facts("f32[1,2,5,5]", "f32[2,3,3,3]", "i64[2]", **PLAIN, id="output_shape computed"),
    # OpenVINO says [1,3], a rank of 2.
    convolution_backprop_data.facts("f32[1,2,5,5]", "f32[2,3,3,3]", "i64[?]", **PLAIN, gives="f32[1,3,?,?]", id="output_shape of unknown length"),
    convolution_backprop_data.facts("f32[...]", "f32[...]", "i64[2]", **PLAIN, gives="f32[?,?,?,?]", id="rank from output_shape"),
    convolution_backprop_data.facts("f32[1,2,9000000000000000000,5]", "f32[2,3,3,3]", **PLAIN, gives="f32[1,3,9000000000000000002,7]", id="hostile size"),
    facts_case("GroupConvolutionBackpropData", 1, "f32[1,20,224,224]", "f32[4,5,2,3,3]", dilations="1,1", pads_begin="1,1", pads_end="1,1",
               strides="2,2", gives="f32[1,8,447,447]", id="seed 001 layer"),
    facts_case("GroupConvolutionBackpropData", 1, "f32[?,4,?,5..9]", "f32[2,2,3,3,3]", **PLAIN, id="bounded sizes"),
    facts_case("GroupConvolutionBackpropData", 1, "f32[...]", "f32[2,2,3,3,3]", **PLAIN, id="data of unknown rank"),
    facts_case("GroupConvolutionBackpropData", 1, "f32[1,4,3,3]", "f32[2,2,3,3,3]", "i64[2]", **PLAIN, id="output_shape computed"),
    facts_case("GroupConvolutionBackpropData", 1, "f32[1,2,3,3,3,3]", "f32[1,2,2,3,3,3,3]", strides="1,1,1,1", pads_begin="0,0,0,0",
               pads_end="0,0,0,0", dilations="1,1,1,1", gives="f32[1,2,5,5,5,5]", id="four spatial axes"),
]  # fmt: skip

BACKPROP_REFUSED = [
    convolution_backprop_data.refuses(X, random("f32", 3, 2, 3, 3), **PLAIN, says="data has 2 channels, the filter takes 3", id="channels"),
    convolution_backprop_data.refuses(X, W, [7], **PLAIN, says="output_shape has length 1, expected 2: one value for each spatial axis",
             id="short output_shape"),
    convolution_backprop_data.refuses(X, W, [7, -8], **PLAIN, says="a size of output_shape is -8", id="negative output_shape"),
    convolution_backprop_data.refuses(X, W, [[7, 8]], **PLAIN, says="output_shape has rank 2, expected 1", id="output_shape of rank 2"),
    convolution_backprop_data.refuses(X, W, [7.0, 8.0], **PLAIN, says="element type f32, expected an integer", id="output_shape of f32"),
    convolution_backprop_data.refuses(X, W, **(PLAIN | {"output_padding": "1"}), says="output_padding has length 1, expected 2: one value for each spatial axis",
             id="output_padding"),
    convolution_backprop_data.refuses(X, W, **(PLAIN | {"pads_begin": "9, 9"}), says="pads 9 and 0 crop more than the natural size 6 with output_padding 0",
             id="pads too large"),
    convolution_backprop_data.refuses(X, random("f64", 2, 3, 3, 3), **PLAIN, says="element types f32 and f64 differ", id="types"),
    convolution_backprop_data.refuses(X, random("f32", 2, 3, 3), **PLAIN, says="does not go with a filter of rank 3", id="ranks"),
    refuses("GroupConvolutionBackpropData", 1, X, random("f32", 2, 2, 3, 3, 3), **PLAIN,
            says="data has 2 channels, the filter takes 4 of 2 groups of 2", id="channels"),
    refuses("GroupConvolutionBackpropData", 1, random("f32", 2, 2), random("f32", 1, 2, 2), **PLAIN, says="data has rank 2, expected 3 or more", id="rank 2"),
]  # fmt: skip

XG = random("f32", 1, 4, 3, 4)
WG = random("f32", 2, 2, 3, 3, 3, seed=1)

GROUPED = [
    case("GroupConvolutionBackpropData", 1, XG, WG, **PLAIN, id="two groups"),
    case("GroupConvolutionBackpropData", 1, XG, WG, **(UNEVEN | {"output_padding": "0, 1"}), id="everything uneven"),
    case("GroupConvolutionBackpropData", 1, XG, WG, [6, 9], **(UNEVEN | {"auto_pad": "same_upper"}), id="output_shape same_upper"),
    case("GroupConvolutionBackpropData", 1, XG, WG, [6, 9], **(UNEVEN | {"auto_pad": "same_lower"}), id="output_shape same_lower"),
    case("GroupConvolutionBackpropData", 1, XG, WG, [6, 9], **UNEVEN, id="output_shape explicit"),
    case("GroupConvolutionBackpropData", 1, XG, random("f32", 4, 1, 1, 3, 3), **(PADDED | {"strides": "2, 2"}), id="depthwise"),
    case("GroupConvolutionBackpropData", 1, random("f32", 1, 6, 4), random("f32", 3, 2, 1, 3), **(PLAIN_1D | {"strides": "2"}), id="1-D"),
    case("GroupConvolutionBackpropData", 1, random("f32", 1, 2, 2, 3, 2), random("f32", 2, 1, 2, 2, 2, 2), strides="2, 1, 1",
         pads_begin="0, 0, 1", pads_end="1, 0, 0", dilations="1, 2, 1", id="3-D"),
    case("GroupConvolutionBackpropData", 1, random("f32", 2, 4, 1, 2), random("f32", 2, 2, 9, 3, 2, seed=1), **(UNEVEN | {"output_padding": "1, 0"}),
         id="many channels for each pixel, everything uneven"),
    case("GroupConvolutionBackpropData", 1, random("f32", 1, 4, 2), random("f32", 2, 2, 8, 4, seed=1), **(PLAIN_1D | {"strides": "2", "pads_begin": "1"}),
         id="many channels for each pixel, 1-D"),
    # The CPU plugin refuses one group of several channels. By hand: 1 * (1 2) + 10 * (3 4) for two pixels, stride 2.
    case("GroupConvolutionBackpropData", 1, np.array([[[1, 2], [10, 20]]], np.float32), np.array([[[[1, 2]], [[3, 4]]]], np.float32),
         gives=np.array([[[31, 42, 62, 84]]], np.float32), **(PLAIN_1D | {"strides": "2"}), id="one group"),
    case("GroupConvolutionBackpropData", 1, np.array([[[1, 2], [10, 20]]], np.int64), np.array([[[[1, 2]]], [[[3, 4]]]], np.int64),
         gives=np.array([[[1, 2, 2, 4], [30, 40, 60, 80]]]), **(PLAIN_1D | {"strides": "2"}), id="i64"),
    case("GroupConvolutionBackpropData", 1, typed("f16", [[[1, 2], [10, 20]]]), typed("f16", [[[[1, 2]]], [[[3, 4]]]]),
         gives=typed("f16", [[[1, 2, 2, 4], [30, 40, 60, 80]]]), **(PLAIN_1D | {"strides": "2"}), id="f16"),
]  # fmt: skip

# oneDNN's ConvTranspose: LINE again, in the default formats NXC and XIO; the numbers follow from the natural result 1 11 110 100.
NXC_LINE = LINE.reshape(1, 3, 1)
XIO_ONES = np.ones((2, 1, 1), np.float32)


def nxc(expected, *bias, filter=XIO_ONES, data=NXC_LINE, id, **attributes):
    """A row on LINE channels-last."""
    reference = np.array(expected, np.float32).reshape(1, -1, filter.shape[2])
    return conv_transpose(data, filter, *bias, gives=reference, **(PLAIN_1D | attributes), id=id)


CONV_TRANSPOSE_ROWS = [
    nxc([1, 11, 110, 100], id="natural"),
    nxc([3, 13, 112, 102], np.array([2], np.float32), id="bias"),
    # One input channel to two of output: times 1 and times 2, in XIO.
    nxc([1, 2, 11, 22, 110, 220, 100, 200], filter=np.array([[[1, 2]], [[1, 2]]], np.float32), id="two output channels"),
    nxc([11, 212, 21, 332], np.array([10, 200], np.float32), filter=np.array([[[1, 12]]], np.float32), data=np.array([[[1], [11]]],
             np.float32),
        id="bias by channel"),
    nxc([110, 100], pads_begin="2", id="pads_begin"),
    nxc([11, 110, 100, 0], pads_begin="1", output_padding="1", id="output_padding beyond the end is zero"),
    nxc([11, 110, 100], pads_begin="1", pads_end="1", output_padding="1", id="output_padding uncovers"),
    # T = 2 - 1 = 1: same_upper cuts it at the end, same_lower at the start; output_padding is not in T.
    nxc([1, 11, 110], auto_pad="same_upper", pads_begin="2", id="same_upper cuts the larger half last"),
    nxc([11, 110, 100], auto_pad="same_lower", pads_begin="2", id="same_lower cuts the larger half first"),
    nxc([1, 11, 110, 100], auto_pad="same_upper", output_padding="1", id="same_upper with output_padding"),
    nxc([11, 110, 100, 0], auto_pad="Same_Lower", output_padding="1", id="same_lower with output_padding"),
    nxc([1, 11, 110, 100], auto_pad="VALID", pads_begin="1", pads_end="1", id="valid ignores pads"),
    nxc([1, 11, 110, 100], auto_pad="None", id="none in other letters"),
    # T = max(0, 2 - 3): nothing is cut.
    nxc([1, 1, 0, 10, 10, 0, 100, 100], auto_pad="same_upper", strides="3", id="same_upper with a stride beyond the kernel"),
    nxc([1, 11, 110, 100], output_padding="None", id="output_padding None"),
    nxc([1, 11, 110, 100, 0], output_padding="1, 0, 0", id="output_padding with surplus zeros"),
    nxc([1, 0, 11, 0, 110, 0, 100], data=np.array([[[1], [0], [10], [0], [100]]], np.float32), dilations="2", id="dilations"),
    nxc([1, 11, 110, 100], filter_format="XIO", id="filter_format XIO"),
    nxc([1, 11, 110, 100], weights_format="xio", data_format="nxc", id="formats in small letters"),
    # Two groups of one: 1 10 100 with weights 1 1, and 2 20 200 with weights 1 0; I counts both, O one.
    conv_transpose(np.array([[[1, 2], [10, 20], [100, 200]]], np.float32), np.array([[[1], [1]], [[1], [0]]], np.float32),
         gives=np.array([[[1, 2], [11, 20], [110, 200], [100, 0]]], np.float32), **PLAIN_1D, groups="2", id="groups in XIO"),
    conv_transpose(np.array([[[1, 2], [10, 20], [100, 200]]], np.float32), np.array([[[1, 1], [1, 0]]], np.float32),
         gives=np.array([[[1, 2], [11, 20], [110, 200], [100, 0]]], np.float32), **PLAIN_1D, groups="2", filter_format="OIX",
         id="groups in OIX"),
    conv_transpose(np.array([[[1, 2], [10, 20], [100, 200]]], np.float32), np.array([[[1, 1]], [[1, 0]]], np.float32),
         gives=np.array([[[1, 2], [11, 20], [110, 200], [100, 0]]], np.float32), **PLAIN_1D, groups="2", weights_format="IOX",
         id="groups in IOX"),
    conv_transpose(np.array([[[1, 2], [10, 20], [100, 200]]], np.float32), np.array([[[1, 1]], [[1, 0]]], np.float32),
         gives=np.array([[[1, 2], [11, 20], [110, 200], [100, 0]]], np.float32), **PLAIN_1D, groups="2", weights_format="XOI",
         id="groups in XOI"),
    conv_transpose(NXC_LINE.astype(np.float16), XIO_ONES.astype(np.float16), gives=np.array([[[1], [11], [110], [100]]], np.float16), **PLAIN_1D, id="f16"),
    conv_transpose(typed("bf16", [[[1], [10], [100]]]), typed("bf16", [[[1]], [[1]]]), typed("bf16", [0.5]),
         gives=typed("bf16", [[[1.5], [11.5], [110.5], [100.5]]]), **PLAIN_1D, id="bf16"),
    conv_transpose(random("f32", 0, 3, 2), random("f32", 2, 2, 5), gives=np.zeros((0, 4, 5), np.float32), **PLAIN_1D, id="empty batch"),
    conv_transpose.facts("f32[1,224,224,20]", "f32[3,3,20,2]", **(PADDED | {"strides": "2, 2"}), groups="4",
               gives="f32[1,447,447,8]", id="seed 001 in oneDNN's layout"),
    conv_transpose.facts("f32[?,?,2..5,4]", "f32[3,3,4,2]", **(PLAIN | {"strides": "2, 2", "auto_pad": "same_upper"}),
               gives="f32[?,2..,4..10,2]", id="bounded same"),
    conv_transpose.facts("f32[...]", "f32[3,3,4,2]", "f32[2]", **PLAIN, gives="f32[?,3..,3..,2]", id="input of unknown rank"),
    conv_transpose.facts("f32[1,4,4,4]", "f32[...]", "f32[6]", **PLAIN, data_format="NCX", gives="f32[1,6,4..,4..]", id="channels from the bias"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, **PLAIN_1D, output_padding="1, 1", says="the surplus is not zero", id="surplus output_padding"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, **PLAIN_1D, output_padding="x", says="output_padding 'x' is not a list of non-negative integers",
             id="odd output_padding"),
    conv_transpose.refuses(random("f32", 1, 3, 3, 1), random("f32", 2, 2, 1, 1), **PLAIN, output_padding="1",
            says="output_padding has length 1, expected 2: one value for each spatial axis", id="short output_padding"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, **PLAIN_1D, groups="2", says="do not divide into 2 groups", id="groups"),
    conv_transpose.refuses(NXC_LINE, np.ones((2, 3, 1), np.float32), **PLAIN_1D, says="input has 1 channels, the filter takes 3", id="channels"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, np.ones(2, np.float32), **PLAIN_1D,
             says="bias has length 2, expected 1: one value for each output channel",
            id="bias length"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, np.ones((1, 1), np.float32), **PLAIN_1D, says="bias has rank 2, expected 1", id="bias rank"),
    conv_transpose.refuses(NXC_LINE.astype(np.float64), XIO_ONES.astype(np.float64), **PLAIN_1D,
             says="input has element type f64, expected f32, f16 or bf16",
            id="f64"),
    conv_transpose.refuses(NXC_LINE, XIO_ONES, **PLAIN_1D, filter_format="OIX", weights_format="XOI", says="contradict each other", id="two formats"),
    conv_transpose.refuses(NXC_LINE, random("f32", 1, 1, 1, 1), **PLAIN_1D, says="input has rank 3, filter 4", id="ranks"),
]  # fmt: skip

ROWS = [*SEED_ROWS, *BY_HAND, *BACKPROP, *BACKPROP_FACTS, *BACKPROP_REFUSED, *GROUPED, *CONV_TRANSPOSE_ROWS]
# Two groups of one again, in every layout under either name of the attribute.
LAYOUTS = {
    "XIO": [[[1], [1]], [[1], [0]]],
    "OIX": [[[1, 1], [1, 0]]],
    "IOX": [[[1, 1]], [[1, 0]]],
    "XOI": [[[1, 1]], [[1, 0]]],
}
PAIRS = np.float32([[[1, 2], [10, 20], [100, 200]]])
PAIRED = np.float32([[[1, 2], [11, 20], [110, 200], [100, 0]]])
ROWS += [
    conv_transpose(
        PAIRS, np.float32(filter), gives=PAIRED, **PLAIN_1D, groups="2", **{name: layout}, id=f"groups, {name} {layout}"
    )
    for name in ("filter_format", "weights_format")
    for layout, filter in LAYOUTS.items()
]
ROWS += [
    # By hand: every product with NaN is NaN, so is that of 0 and infinity.
    nxc(
        [np.nan, np.nan, np.inf, np.inf, -np.inf, -np.inf],
        data=np.float32([[[np.nan], [1], [np.inf], [1], [-np.inf]]]),
        id="NaN and infinities",
    ),
    case(
        "GroupConvolutionBackpropData", 1, XG, WG, [6, 9], **(UNEVEN | {"auto_pad": "valid"}), id="output_shape valid"
    ),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "GroupConvolutionBackpropData")]
ROWS += [
    convolution_backprop_data.refuses(
        X,
        W,
        np.zeros(0, np.int64),
        **PLAIN,
        says="output_shape has length 0, expected 2: one value for each spatial axis",
        id="empty output_shape",
    ),
    convolution_backprop_data.refuses(
        "f32[1,2,4,3]",
        "f32[2,3,3,3]",
        "i64[0]",
        **PLAIN,
        says="output_shape has length 0, expected 2",
        id="output_shape of length 0",
    ),
]
