"""Rows of DeformableConvolution: opset 1, opset 8 and our own in any number of spatial axes."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.support.cases import emptied, halves, odd

BARE = {"strides": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0", "dilations": "1, 1"}
# OpenVINO's reader takes a missing group for 0 and refuses it, though the specification has a default.
PLAIN = BARE | {"group": "1", "deformable_group": "1"}
PADDED = PLAIN | {"pads_begin": "1, 1", "pads_end": "1, 1"}
PLAIN_1D = {"strides": "1", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
PLAIN_3D = {"strides": "1, 1, 1", "pads_begin": "0, 0, 0", "pads_end": "0, 0, 0", "dilations": "1, 1, 1"}
UNEVEN = PLAIN | {"strides": "2, 1", "pads_begin": "1, 0", "pads_end": "0, 2", "dilations": "1, 2"}

X = random("f32", 1, 4, 5, 4)
W = random("f32", 2, 4, 3, 3, seed=1)
OFFSETS = random("f32", 1, 18, 3, 2, seed=2, low=-2, high=2)
MASK = random("f32", 1, 9, 3, 2, seed=3, low=0, high=1)

OPSET_1 = [
    case("DeformableConvolution", 1, X, OFFSETS, W, **PLAIN, id="3x3"),
    case("DeformableConvolution", 1, X, random("f32", 1, 18, 2, 2, seed=2, low=-2, high=2), W, **UNEVEN, id="everything uneven"),
    case("DeformableConvolution", 1, X, random("f32", 1, 36, 3, 2, seed=2), W, **(PLAIN | {"deformable_group": "2"}), id="two deformable groups"),
    case("DeformableConvolution", 1, X, OFFSETS, random("f32", 2, 2, 3, 3), **(PLAIN | {"group": "2"}), id="two groups"),
    case("DeformableConvolution", 1, X, random("f32", 1, 72, 3, 2, seed=2), random("f32", 2, 2, 3, 3), **(PLAIN | {"group": "2",
             "deformable_group": "4"}), id="two groups and four deformable"),
    case("DeformableConvolution", 1, X, random("f32", 1, 18, 5, 4, seed=2), W, **(PLAIN | {"auto_pad": "same_upper"}), id="same_upper"),
    case("DeformableConvolution", 1, X, random("f32", 1, 8, 5, 4, seed=2), random("f32", 1, 4, 2, 2),
             **(PADDED | {"auto_pad": "same_lower"}),
         id="same_lower ignores pads"),
    case("DeformableConvolution", 1, X, OFFSETS, W, **(PADDED | {"auto_pad": "valid"}), id="valid ignores pads"),
    case("DeformableConvolution", 1, random("f32", 2, 4, 5, 4), random("f32", 2, 18, 3, 2, seed=2), W, **PLAIN, id="batch of two"),
    facts_case("DeformableConvolution", 1, "f32[1,4,224,224]", "f32[1,50,220,220]", "f32[64,4,5,5]", **PLAIN, auto_pad="explicit",
             gives="f32[1,64,220,220]", id="specification"),
    facts_case("DeformableConvolution", 1, "f32[?,4,?,?]", "f32[3,18,?,?]", "f32[2,4,3,3]", **PLAIN, id="batch from the offsets"),
    refuses("DeformableConvolution", 1, X, random("f32", 1, 17, 3, 2), W, **PLAIN, says="offsets has 17 channels, expected 18", id="offset channels"),
    refuses("DeformableConvolution", 1, X, random("f32", 1, 18, 3, 3), W, **PLAIN,
             says="offsets has size 3 on spatial axis 1, the result has 2",
            id="offset sizes"),
    refuses("DeformableConvolution", 1, X, OFFSETS, W, **(PLAIN | {"deformable_group": "3"}),
             says="4 channels of data do not divide into 3 deformable groups",
            id="deformable groups"),
    refuses("DeformableConvolution", 1, X, OFFSETS, W, **(PLAIN | {"group": "2"}), says="data has 4 channels, the filter takes 8 in 2 groups", id="channels"),
    refuses("DeformableConvolution", 1, random("f32", 1, 4, 5), random("f32", 1, 3, 3), random("f32", 2, 4, 3), **PLAIN_1D,
            says="data has rank 3, expected 4", id="1-D"),
]  # fmt: skip

OPSET_8 = [
    case("DeformableConvolution", 8, X, OFFSETS, W, **PLAIN, id="3x3"),
    case("DeformableConvolution", 8, X, OFFSETS, W, MASK, **PLAIN, id="mask"),
    case("DeformableConvolution", 8, X, OFFSETS, W, **PLAIN, bilinear_interpolation_pad="true", id="pad"),
    case("DeformableConvolution", 8, X, OFFSETS, W, MASK, **PLAIN, bilinear_interpolation_pad="true", id="mask and pad"),
    case("DeformableConvolution", 8, X, random("f32", 1, 36, 3, 2, seed=2), random("f32", 2, 2, 3, 3), random("f32", 1, 18, 3, 2, seed=3),
             **(PLAIN | {"group": "2", "deformable_group": "2"}), bilinear_interpolation_pad="true", id="groups, mask and pad"),
    case("DeformableConvolution", 8, X, random("f32", 1, 18, 2, 2, seed=2, low=-3, high=3), W, random("f32", 1, 9, 2, 2, seed=3), **UNEVEN,
         bilinear_interpolation_pad="true", id="everything uneven"),
    facts_case("DeformableConvolution", 8, "f32[1,4,224,224]", "f32[1,50,220,220]", "f32[64,4,5,5]", "f32[1,25,220,220]", **PLAIN,
               auto_pad="explicit", gives="f32[1,64,220,220]", id="specification"),
    facts_case("DeformableConvolution", 8, "f32[...]", "f32[...]", "f32[2,4,3,3]", "f32[1,9,7,?]", **PLAIN, gives="f32[1,2,7,1..]", id="sizes from the mask"),
    refuses("DeformableConvolution", 8, X, OFFSETS, W, random("f32", 1, 8, 3, 2), **PLAIN, says="mask has 8 channels, expected 9", id="mask channels"),
    refuses("DeformableConvolution", 8, X, OFFSETS, W, random("f32", 2, 9, 3, 2), **PLAIN, says="mask has size 2 as batch", id="mask batch"),
]  # fmt: skip

# Between pixels by hand: one 1x1 filter of 1 on the image 1 2 / 3 4; every pixel is sampled where its offset says.
IMAGE = np.array([[[[1, 2], [3, 4]]]], np.float32)
ONE = np.ones((1, 1, 1, 1), np.float32)


def sampled(y, x, expected, *, id, since=8, **attributes):
    """A row on IMAGE where each pixel moves by its y and x."""
    offsets = np.array([[y, x]], np.float32)
    reference = np.array([[expected]], np.float32)
    return case("DeformableConvolution", since, IMAGE, offsets, ONE, gives=reference, **BARE, **attributes, id=id)


STILL = [[0, 0], [0, 0]]
PAD = {"bilinear_interpolation_pad": "true"}
BY_HAND = [
    sampled(STILL, STILL, [[1, 2], [3, 4]], id="no offset"),
    sampled([[0.5, 0], [0, 0]], [[0.5, 0], [0, 0]], [[2.5, 2], [3, 4]], id="in the middle"),
    # Half a pixel past the last row is the last row without padding, and half of it with; before the first likewise nothing and half.
    sampled([[0, 0], [0.5, 0.5]], STILL, [[1, 2], [3, 4]], id="past the last row"),
    sampled([[0, 0], [0.5, 0.5]], STILL, [[1, 2], [1.5, 2]], **PAD, id="past the last row, pad"),
    sampled([[-0.5, -0.5], [0, 0]], STILL, [[0, 0], [3, 4]], id="before the first row"),
    sampled([[-0.5, -0.5], [0, 0]], STILL, [[0.5, 1], [3, 4]], **PAD, id="before the first row, pad"),
    sampled([[0, -1], [1, 2]], [[-1, 0], [0, 0]], [[0, 0], [0, 0]], **PAD, id="a whole pixel outside, pad"),
    sampled([[0, -1], [1, 2]], [[-1, 0], [0, 0]], [[0, 0], [0, 0]], id="a whole pixel outside"),
    sampled([[np.nan, np.inf], [0, 0]], [[0, 0], [-np.inf, 0]], [[0, 0], [0, 4]], **PAD, id="NaN and infinite offsets give zero"),
    sampled([[0.5, 0], [0, 0]], [[0.5, 0], [0, 0]], [[2.5, 2], [3, 4]], since="irexec", id="in the middle"),
    sampled([[0, 0], [0.5, 0.5]], STILL, [[1, 2], [1.5, 2]], since="irexec", **PAD, id="past the last row, pad"),
    case("DeformableConvolution", 8, IMAGE, np.zeros((1, 2, 2, 2), np.float32), ONE, np.array([[[[1, 0], [0.5, 2]]]], np.float32),
         gives=np.array([[[[1, 0], [1.5, 8]]]], np.float32), **BARE, id="mask by hand"),
    case("DeformableConvolution", 8, IMAGE.astype(np.float16), np.full((1, 2, 2, 2), 0.5, np.float16), ONE.astype(np.float16),
         gives=np.array([[[[2.5, 3], [3.5, 4]]]], np.float16), **BARE, id="f16"),
    case("DeformableConvolution", 8, typed("bf16", IMAGE), typed("bf16", np.full((1, 2, 2, 2), 0.5)), typed("bf16", ONE),
         gives=typed("bf16", [[[[2.5, 3], [3.5, 4]]]]), **BARE, id="bf16"),
    case("DeformableConvolution", 1, IMAGE.astype(np.float64), np.full((1, 2, 2, 2), 0.5), ONE.astype(np.float64),
         gives=np.array([[[[2.5, 3], [3.5, 4]]]]), **BARE, id="f64"),
    # Whole offsets read whole pixels.
    case("DeformableConvolution", 8, IMAGE.astype(np.int32), np.array([[[[1, 0], [0, 0]], [[1, 0], [-1, 1]]]], np.int32),
             ONE.astype(np.int32),
         gives=np.array([[[[4, 2], [0, 0]]]], np.int32), **BARE, id="i32"),
    case("DeformableConvolution", 8, random("f32", 0, 1, 2, 2), random("f32", 0, 2, 2, 2), ONE, gives=np.zeros((0, 1, 2, 2), np.float32),
             **BARE,
         id="empty batch"),
    # A row of 1 10 100 with taps 1 and 2: between pixels linearly, in one axis.
    case("DeformableConvolution", "irexec", np.array([[[1, 10, 100]]], np.float32), np.array([[[0.5, 0], [0, 0.5]]], np.float32),
         np.array([[[1, 2]]], np.float32), gives=np.array([[[25.5, 110]]], np.float32), **PLAIN_1D, **PAD, id="1-D"),
    case("DeformableConvolution", "irexec", np.array([[[1, 10, 100]]], np.float32), np.array([[[0.5, 0], [0, 0.5]]], np.float32),
         np.array([[[1, 2]]], np.float32), gives=np.array([[[25.5, 210]]], np.float32), **PLAIN_1D, id="1-D without pad"),
    # A cube of 0 to 7: half a step along each axis is the mean, 3.5; a whole step along z and y reads 6 from 0.
    case("DeformableConvolution", "irexec", np.arange(8, dtype=np.float32).reshape(1, 1, 2, 2, 2),
         np.array([[[[[0.5, 0], [0, 0]], [[0, 0], [0, 0]]], [[[0.5, 0], [0, 0]], [[0, 0], [0, 0]]], [[[0.5, 0.5], [0, 0]], [[0, 0], [0,
         0]]]]],
                  np.float32),
         np.ones((1, 1, 1, 1, 1), np.float32), gives=np.array([[[[[3.5, 0.5], [2, 3]], [[4, 5], [6, 7]]]]], np.float32), **PLAIN_3D, **PAD,
         id="3-D"),
    facts_case("DeformableConvolution", "irexec", "f32[1,4,9,8,7]", "f32[1,81,?,?,?]", "f32[2,4,3,3,3]", "f32[1,27,7,6,5]", **PLAIN_3D,
               gives="f32[1,2,7,6,5]", id="3-D sizes"),
    facts_case("DeformableConvolution", "irexec", "f32[...]", "f32[?,3,?]", "f32[2,4,3]", **PLAIN_1D, gives="f32[?,2,1..]", id="rank from the offsets"),
    refuses("DeformableConvolution", "irexec", random("f32", 1, 4, 5), OFFSETS, W, **BARE, says="offsets has rank 4, expected 3", id="ranks"),
    refuses("DeformableConvolution", "irexec", random("f32", 1, 4), random("f32", 1, 4), random("f32", 1, 4), **BARE,
            says="data has rank 2, expected 3 or more", id="rank 2"),
]  # fmt: skip

ROWS = [*OPSET_1, *OPSET_8, *BY_HAND]
# By hand: 2 x 2 windows on an image of 2 x 2 without offsets, as a plain convolution of ones has it; the pixel that pads is 0.
_SUMS = {"same_upper": [[10, 6], [7, 4]], "same_lower": [[1, 3], [4, 10]], "valid": [[10]]}
for way, sums in _SUMS.items():
    still = np.zeros((1, 8, *np.shape(sums)), np.float32)
    for since in (1, 8, "irexec"):
        attributes = PLAIN | {"auto_pad": way} | ({} if since == 1 else PAD)
        ROWS.append(
            case(
                "DeformableConvolution",
                since,
                IMAGE,
                still,
                np.ones((1, 1, 2, 2), np.float32),
                gives=np.float32([[sums]]),
                **attributes,
                id=f"{way} by hand",
            )
        )
LINE_1D = np.float32([[[1, 10, 100]]])
ROWS += [
    # A row of 1 10 100, one tap, each half a step on, with a mask of 2 and 1 and 0.
    case("DeformableConvolution", "irexec", LINE_1D, np.float32([[[0.5, 0.5, 0]]]), np.float32([[[1]]]), np.float32([[[2, 1, 0]]]), **PLAIN_1D, **PAD,
         gives=np.float32([[[11, 55, 0]]]), id="1-D with a mask"),
    case("DeformableConvolution", "irexec", typed("f16", LINE_1D), typed("f16", [[[0.5, 0.5, 0]]]), typed("f16", [[[1]]]), **PLAIN_1D, **PAD,
         gives=typed("f16", [[[5.5, 55, 100]]]), id="f16"),
    case("DeformableConvolution", "irexec", typed("bf16", LINE_1D), typed("bf16", [[[0.5, 0.5, 0]]]), typed("bf16", [[[1]]]), **PLAIN_1D, **PAD,
         gives=typed("bf16", [[[5.5, 55, 100]]]), id="bf16"),
    case("DeformableConvolution", "irexec", LINE_1D, np.float32([[[np.nan, np.inf, 0]]]), np.float32([[[1]]]), **PLAIN_1D, **PAD,
         gives=np.float32([[[0, 0, 100]]]), id="NaN and infinite offsets give zero"),
    case("DeformableConvolution", "irexec", np.zeros((0, 1, 3), np.float32), np.zeros((0, 1, 3), np.float32), np.float32([[[1]]]), **PLAIN_1D,
         gives=np.zeros((0, 1, 3), np.float32), id="empty batch"),
]  # fmt: skip
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(OPSET_1, "DeformableConvolution", inputs=(0, 1))]
