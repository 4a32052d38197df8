"""Rows of Convolution, GroupConvolution and BinaryConvolution."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.data.seeds import CONV
from tests.support.cases import emptied, halves, odd

PLAIN_1D = {"strides": "1", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
PLAIN = {"strides": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0", "dilations": "1, 1"}
PLAIN_3D = {"strides": "1, 1, 1", "pads_begin": "0, 0, 0", "pads_end": "0, 0, 0", "dilations": "1, 1, 1"}
PADDED = PLAIN | {"pads_begin": "1, 1", "pads_end": "1, 1"}
BITS = PLAIN | {"mode": "xnor-popcount", "pad_value": "0"}

# How the ONNX attributes of the examples of seed 003 read in IR.
SEEDS = {
    "basic_conv_with_padding": PADDED,
    "basic_conv_without_padding": PLAIN,
    "conv_with_strides_padding": PADDED | {"strides": "2, 2"},
    "conv_with_strides_no_padding": PLAIN | {"strides": "2, 2"},
    "conv_with_strides_and_asymmetric_padding": PLAIN | {"strides": "2, 2", "pads_begin": "1, 0", "pads_end": "1, 0"},
    "conv_with_autopad_same": PLAIN | {"strides": "2, 2", "auto_pad": "same_lower"},
}

convolution = Operation("Convolution", 1)
SEED_ROWS = [
    convolution(e.x.array(), e.w.array(), gives=e.y.array(), **SEEDS[e.name], id=f"seed 003 {e.name}") for e in CONV
]

X = random("f32", 1, 2, 6, 5)
W = random("f32", 3, 2, 3, 3, seed=1)

CONVOLUTION = [
    convolution(X, W, **PLAIN, id="3x3"),
    convolution(random("f32", 2, 3, 9), random("f32", 4, 3, 4, seed=1), **(PLAIN_1D | {"strides": "2"}), id="1-D"),
    convolution(random("f32", 1, 2, 5, 4, 6), random("f32", 2, 2, 2, 3, 2, seed=1),
        strides="2, 1, 3", pads_begin="1, 0, 2", pads_end="0, 1, 1", dilations="2, 1, 1", id="3-D everything uneven",
    ),
    convolution(X, W, strides="2, 1", pads_begin="1, 2", pads_end="0, 1", dilations="1, 2", id="uneven pads, strides, dilations"),
    convolution(X, W, **(PADDED | {"strides": "2, 2", "auto_pad": "same_upper"}), id="same_upper ignores pads"),
    convolution(X, W, **(PADDED | {"strides": "2, 2", "auto_pad": "same_lower"}), id="same_lower ignores pads"),
    convolution(X, W, **(PADDED | {"auto_pad": "valid"}), id="valid ignores pads"),
    convolution(X, W, **(PADDED | {"auto_pad": "EXPLICIT"}), id="explicit in capitals"),
    convolution(X, random("f32", 1, 2, 1, 2, seed=1), **(PLAIN | {"strides": "3, 3", "auto_pad": "same_upper"}), id="same with a stride beyond the kernel"),
    convolution(X, random("f32", 2, 2, 2, 4, seed=1), **(PLAIN | {"dilations": "2, 1", "auto_pad": "same_lower"}), id="same_lower with odd padding"),
    convolution(X, random("f32", 4, 2, 1, 1, seed=1), **PLAIN, id="1x1"),
    convolution(X, random("f32", 4, 2, 1, 1, seed=1), **(PADDED | {"strides": "2, 2"}), id="1x1 padded with strides"),
    convolution(random("f32", 1, 24, 12, 11), random("f32", 25, 24, 3, 3, seed=1), **PADDED, id="3x3 of many channels"),
    convolution(random("f32", 2, 3, 5, 5), random("f32", 2, 3, 5, 5, seed=1), **PLAIN, id="kernel as large as data"),
    # An empty list means ones or zeros: OpenVINO reads it so, and writes it where the rank is unknown.
    convolution(X, W, strides="", pads_begin="", pads_end="", dilations="", id="empty lists"),
    # Nothing to compute: by arithmetic.
    convolution(random("f32", 0, 2, 6, 5), W, gives=np.zeros((0, 3, 4, 3), np.float32), **PLAIN, id="empty batch"),
    convolution(random("f32", 1, 0, 4, 4), random("f32", 2, 0, 3, 3), gives=np.zeros((1, 2, 2, 2), np.float32), **PLAIN, id="no channels"),
    convolution(X, random("f32", 0, 2, 3, 3), gives=np.zeros((1, 0, 4, 3), np.float32), **PLAIN, id="no filters"),
    # Counted by hand.
    convolution(np.array([[[1, 2, 3, 4]]], np.float16), np.array([[[1, 0.5]]], np.float16), gives=np.array([[[2, 3.5, 5]]], np.float16), **PLAIN_1D, id="f16"),
    # 2048 + 1 + 1 is 2050 in f32; in f16 steps 2048 + 1 stays 2048.
    convolution(np.array([[[2048, 1, 1]]], np.float16), np.ones((1, 1, 3), np.float16),
        gives=np.array([[[2050]]], np.float16), **PLAIN_1D, id="f16 is summed in f32",
    ),
    convolution(np.full((1, 1, 2), 60000, np.float16), np.ones((1, 1, 2), np.float16),
        gives=np.array([[[np.inf]]], np.float16), **PLAIN_1D, id="f16 beyond its range",
    ),
    convolution(typed("bf16", [[[1, 2, 3]]]), typed("bf16", [[[1, 0.5]]]), gives=typed("bf16", [[[2, 3.5]]]), **PLAIN_1D, id="bf16"),
    # 256 + 1 = 257 has no bf16; half way, so to even.
    convolution(typed("bf16", [[[256, 1, 2]]]), typed("bf16", [[[1, 1]]]), gives=typed("bf16", [[[256, 3]]]), **PLAIN_1D, id="bf16 is rounded once"),
    convolution(np.array([[[1, 2, 3, 1e-9]]]), np.array([[[1, 0.5]]]), gives=np.array([[[2, 3.5, 3 + 0.5e-9]]]), **PLAIN_1D,
        tolerance=1e-15, id="f64 keeps its digits",
    ),
    convolution(np.array([[[1, 2, 3]]], np.int32), np.array([[[2, -1]]], np.int32), gives=np.array([[[0, 1]]], np.int32), **PLAIN_1D, id="i32"),
    convolution(typed("i8", [[[100, 100]]]), typed("i8", [[[1, 1]]]), gives=typed("i8", [[[-56]]]), **PLAIN_1D, id="i8 wraps"),
    convolution(typed("u8", [[[200, 100]]]), typed("u8", [[[1, 1]]]), gives=typed("u8", [[[44]]]), **PLAIN_1D, id="u8 wraps"),
    convolution(np.array([[[2**40, 1]]]), np.array([[[1, 3]]]), gives=np.array([[[2**40 + 3]]]), **PLAIN_1D, id="i64 keeps its digits"),
    convolution(np.array([[[1, np.nan, 2, np.inf, 3]]], np.float32), np.array([[[1, 1]]], np.float32),
        gives=np.array([[[np.nan, np.nan, np.inf, np.inf]]], np.float32), **PLAIN_1D, id="NaN and infinity stay in their windows",
    ),
]  # fmt: skip

CONVOLUTION_FACTS = [
    # The specification's examples.
    convolution.facts("f32[1,5,128]", "f32[16,5,4]", strides="2", pads_begin="0", pads_end="0", dilations="1",
               auto_pad="valid", gives="f32[1,16,63]", id="specification 1-D"),
    convolution.facts("f32[1,3,224,224]", "f32[64,3,5,5]", strides="1,1", pads_begin="2,2", pads_end="2,2", dilations="1,1",
               auto_pad="explicit", gives="f32[1,64,224,224]", id="specification 2-D"),
    convolution.facts("f32[1,7,320,320,320]", "f32[32,7,3,3,3]", strides="3,3,3", pads_begin="0,0,0", pads_end="0,0,0",
               dilations="2,2,2", auto_pad="explicit", gives="f32[1,32,106,106,106]", id="specification 3-D"),
    convolution.facts("f32[?,2,2..10,?]", "f32[3,2,3,3]", **PLAIN, id="bounded sizes"),
    convolution.facts("f32[?,2,2..10,?]", "f32[3,2,3,3]", **(PLAIN | {"strides": "2, 2", "auto_pad": "same_upper"}), id="bounded same"),
    convolution.facts("f32[...]", "f32[3,2,3,3]", **PLAIN, id="data of unknown rank"),
    convolution.facts("f32[1,2,9,9]", "f32[...]", **PLAIN, id="filter of unknown rank"),
    convolution.facts("f32[...]", "f32[...]", **PLAIN, id="rank from the strides"),
    convolution.facts("f32[1,2,5,5]", "f32[?,?,?,1..4]", **PLAIN, gives="f32[1,?,1..5,2..5]", id="kernel of unknown size"),
    convolution.facts("f32[1,2,9000000000000000000,5]", "f32[3,2,3,3]", **PLAIN, gives="f32[1,3,8999999999999999998,3]", id="hostile size"),
]  # fmt: skip

CONVOLUTION_REFUSED = [
    convolution.refuses(X, random("f32", 3, 4, 3, 3), **PLAIN, says="data has 2 channels, the filter takes 4", id="channels"),
    convolution.refuses(X, random("f32", 3, 2, 3), **PLAIN, says="data of rank 4 does not go with a filter of rank 3", id="ranks"),
    convolution.refuses(random("f32", 2, 2), random("f32", 2, 2), **PLAIN, says="data has rank 2, expected 3, 4 or 5", id="rank 2"),
    convolution.refuses(X, W, **(PLAIN | {"strides": "1"}), says="strides has length 1, expected 2: one value for each spatial axis", id="too few strides"),
    convolution.refuses(X, W, **(PLAIN | {"pads_end": "1, 1, 1"}), says="pads_end has length 3, expected 2: one value for each spatial axis",
             id="too many pads"),
    convolution.refuses(X, random("f32", 1, 2, 7, 1), **PLAIN, says="does not fit into size 6 padded by 0 and 0", id="kernel too large"),
    convolution.refuses(X, random("f32", 1, 2, 0, 1), **PLAIN, says="spatial size of 0", id="no kernel"),
    convolution.refuses(X, random("f64", 3, 2, 3, 3), **PLAIN, says="element types f32 and f64 differ", id="types"),
    convolution.refuses(np.ones((1, 1, 3), bool), np.ones((1, 1, 1), bool), **PLAIN_1D, says="data has element type boolean, expected a numeric type", id="boolean"),
]  # fmt: skip

XG = random("f32", 2, 4, 5, 5)

GROUPED = [
    case("GroupConvolution", 1, XG, random("f32", 2, 3, 2, 3, 3, seed=1), **PADDED, id="two groups"),
    case("GroupConvolution", 1, XG, random("f32", 1, 3, 4, 3, 3, seed=1), **PLAIN, id="one group"),
    case("GroupConvolution", 1, XG, random("f32", 4, 1, 1, 3, 3, seed=1), **PADDED, id="depthwise"),
    case("GroupConvolution", 1, XG, random("f32", 4, 1, 1, 3, 3, seed=1), **(PADDED | {"strides": "2, 2"}), id="depthwise with strides"),
    case("GroupConvolution", 1, XG, random("f32", 4, 1, 1, 2, 3, seed=1), strides="2, 1", pads_begin="0, 2", pads_end="1, 1",
             dilations="3, 2",
         id="depthwise everything uneven"),
    case("GroupConvolution", 1, XG, random("f32", 4, 1, 1, 2, 2, seed=1), **(PLAIN | {"strides": "3, 3"}), id="depthwise stride beyond kernel"),
    *(case("GroupConvolution", 1, random("f32", 2, 5, 9, 7), random("f32", 5, 1, 1, k, k, seed=1), strides=[stride] * 2, pads_begin=pads,
           pads_end=pads, dilations=dilations, id=f"depthwise {k}x{k}, strides {stride}, pads {pads}, dilations {dilations}")
      for k, stride, pads, dilations in ((3, 1, [1, 1], [1, 1]), (5, 1, [2, 2], [1, 1]), (5, 2, [2, 2], [1, 1]), (3, 2, [0, 1], [1, 1]),
                                         (3, 1, [2, 3], [2, 3]), (3, 3, [1, 4], [2, 1]), (3, 2, [5, 0], [2, 2]), (1, 2, [0, 0], [1, 1]))),
    case("GroupConvolution", 1, random("f32", 1, 12, 7, 7), random("f32", 12, 1, 1, 5, 5, seed=1), **(PADDED | {"pads_begin": "2, 2", "pads_end": "2, 2"}),
         id="depthwise, more channels than a quarter of the pixels"),
    case("GroupConvolution", 1, random("f32", 1, 9, 6, 5), random("f32", 9, 1, 1, 3, 3, seed=1), **(PLAIN | {"strides": "2, 1", "dilations": "1, 2"}),
         id="depthwise, many channels, without pads"),
    case("GroupConvolution", 1, XG, random("f32", 4, 3, 1, 3, 3, seed=1), **PLAIN, id="depthwise with a multiplier"),
    case("GroupConvolution", 1, XG, random("f32", 2, 3, 2, 1, 1, seed=1), **PLAIN, id="1x1 in groups"),
    case("GroupConvolution", 1, random("f32", 1, 6, 9), random("f32", 3, 1, 2, 3, seed=1), **(PLAIN_1D | {"auto_pad": "same_upper"}), id="1-D"),
    case("GroupConvolution", 1, random("f32", 1, 3, 9), random("f32", 3, 1, 1, 4, seed=1), **(PLAIN_1D | {"strides": "2"}), id="1-D depthwise"),
    case("GroupConvolution", 1, random("f32", 1, 4, 3, 4, 3), random("f32", 2, 1, 2, 2, 2, 2, seed=1), **PLAIN_3D, id="3-D"),
    case("GroupConvolution", 1, random("f32", 1, 3, 3, 4, 5), random("f32", 3, 1, 1, 2, 2, 2, seed=1),
             **(PLAIN_3D | {"strides": "1, 2, 1"}),
         id="3-D depthwise"),
    case("GroupConvolution", 1, XG, random("f32", 2, 1, 2, 3, 3, seed=1), **(PADDED | {"auto_pad": "valid"}), id="valid ignores pads"),
    case("GroupConvolution", 1, XG, random("f32", 2, 1, 2, 2, 2, seed=1), **(PADDED | {"auto_pad": "same_lower"}), id="same_lower ignores pads"),
    case("GroupConvolution", 1, np.array([[[1, 2], [3, 4]]], np.float16), np.array([[[[2, 1]]], [[[1, -1]]]], np.float16),
         gives=np.array([[[4], [-1]]], np.float16), **PLAIN_1D, id="f16"),
    case("GroupConvolution", 1, np.array([[[1, 2], [3, 4]]], np.int64), np.array([[[[2, 1]]], [[[1, -1]]]], np.int64),
         gives=np.array([[[4], [-1]]], np.int64), **PLAIN_1D, id="i64"),
    case("GroupConvolution", 1, random("f32", 0, 4, 5, 5), random("f32", 2, 1, 2, 3, 3), gives=np.zeros((0, 2, 3, 3), np.float32), **PLAIN, id="empty batch"),
    facts_case("GroupConvolution", 1, "f32[?,4,?,5..9]", "f32[2,3,2,3,3]", **PLAIN, id="bounded sizes"),
    facts_case("GroupConvolution", 1, "f32[...]", "f32[2,3,2,3,3]", **PLAIN, id="data of unknown rank"),
    facts_case("GroupConvolution", 1, "f32[1,4,5,5]", "f32[?,3,2,3,3]", **PLAIN, id="groups from the data's channels"),
    facts_case("GroupConvolution", 1, "f32[1,4..9,5,5]", "f32[?,3,2..3,3,3]", **PLAIN, gives="f32[1,6..12,3,3]", id="bounded groups"),
    refuses("GroupConvolution", 1, XG, random("f32", 3, 1, 2, 3, 3), **PLAIN, says="data has 4 channels, the filter takes 6 of 3 groups of 2", id="channels"),
    refuses("GroupConvolution", 1, XG, random("f32", 3, 1, 3, 3), **PLAIN, says="does not go with a filter of rank 4", id="filter without groups"),
]  # fmt: skip

# Bits agree or not: counted by hand from the specification's formula 2 * P - B.
BINARY_X = np.array([[[[1, 0, 1], [0, 1, 1]]]], np.float32)
ODD_X = np.array([[[[1, 0.5, -1]]]], np.float32)

binary_convolution = Operation("BinaryConvolution", 1)
BINARY = [
    # Windows 10/01 and 01/11 against 10/11: P = 3 and 2 of B = 4.
    binary_convolution(BINARY_X, typed("u1", [[[[1, 0], [1, 1]]]]), gives=np.array([[[[2, 0]]]], np.float32), **BITS, id="2x2"),
    binary_convolution(BINARY_X, typed("u1", [[[[1]]], [[[0]]]]),
         gives=np.array([[[[1, -1, 1], [-1, 1, 1]], [[-1, 1, -1], [1, -1, -1]]]], np.float32), **BITS, id="two filters"),
    binary_convolution(BINARY_X.astype(np.int32), typed("u1", [[[[1, 0], [1, 1]]]]), gives=np.array([[[[2, 0]]]], np.int32), **BITS, id="i32"),
    # Padding takes part as 0 or as 1: row 0 1 0 1 0 against 1 1 gives P = 1 everywhere but with pad 1: 1 1 0 1 1.
    binary_convolution(BINARY_X[:, :, :1], typed("u1", [[[[1, 1]]]]), gives=np.array([[[[0, 0, 0, 0]]]], np.float32),
         **(BITS | {"pads_begin": "0, 1", "pads_end": "0, 1"}), id="padding of 0"),
    binary_convolution(BINARY_X[:, :, :1], typed("u1", [[[[1, 1]]]]), gives=np.array([[[[2, 0, 0, 2]]]], np.float32),
         **(BITS | {"pads_begin": "0, 1", "pads_end": "0, 1", "pad_value": "1"}), id="padding of 1"),
    # Channels add up: (1, 1) of (1, 0) agree in one of two.
    binary_convolution(np.ones((1, 2, 1, 1), np.float32), typed("u1", [[[[1]], [[0]]]]), gives=np.zeros((1, 1, 1, 1), np.float32), **BITS, id="two channels"),
    binary_convolution(ODD_X, typed("u1", [[[[1]]]]), gives=np.array([[[[1, -1, -1]]]], np.float32), **BITS, id="neither 0 nor 1"),
    binary_convolution(BINARY_X, typed("u1", [[[[1]]]]), gives=np.array([[[[1, 1]]]], np.float32),
         **(BITS | {"strides": "2, 2", "auto_pad": "same_upper"}), id="same_upper"),
    binary_convolution(BINARY_X, typed("u1", [[[[1]]]]), gives=np.array([[[[1, 1]]]], np.float32),
         **(BITS | {"strides": "2, 2", "auto_pad": "valid"}), id="valid"),
    binary_convolution.facts("f32[1,3,224,224]", "u1[64,3,5,5]", **(BITS | {"pads_begin": "2,2", "pads_end": "2,2"}),
               auto_pad="explicit", gives="f32[1,64,224,224]", id="specification"),
    binary_convolution.facts("f32[...]", "u1[64,3,5,5]", **BITS, gives="f32[?,64,1..,1..]", id="data of unknown rank"),
    binary_convolution.refuses(BINARY_X, BINARY_X, **BITS, says="filter has element type f32, expected u1", id="filter type"),
    binary_convolution.refuses(BINARY_X, typed("u1", [[[[1]], [[1]]]]), **BITS, says="data has 1 channels, the filter takes 2", id="channels"),
    binary_convolution.refuses(np.ones((1, 1, 3), np.float32), typed("u1", [[[1]]]), **BITS, says="data has rank 3, expected 4", id="1-D"),
]  # fmt: skip

ROWS = [*SEED_ROWS, *CONVOLUTION, *CONVOLUTION_FACTS, *CONVOLUTION_REFUSED, *GROUPED, *BINARY]
ROWS += [
    # By hand, padded with 0 at the start: 0 1, 1 0 and 0 1 against 1 1 agree in one of two.
    binary_convolution(
        BINARY_X[:, :, :1],
        typed("u1", [[[[1, 1]]]]),
        gives=np.zeros((1, 1, 1, 3), np.float32),
        **(BITS | {"auto_pad": "same_lower"}),
        id="same_lower",
    )
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "BinaryConvolution", "GroupConvolution")]
ROWS += [
    binary_convolution(
        typed(kind, BINARY_X), typed("u1", [[[[1, 0], [1, 1]]]]), gives=typed(kind, [[[[2, 0]]]]), **BITS, id=kind
    )
    for kind in ("f16", "bf16")
]
