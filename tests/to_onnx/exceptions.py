"""Rows that differ once they are written as ONNX, each with the reason; patterns of fnmatch over their ids."""

from fnmatch import fnmatch

from irexec.testing import Case

OUT_OF_RANGE = "an index out of range is an error in ONNX"
BY_ZERO = "a division of integers by 0 is not defined in ONNX"
BEYOND = "a float beyond the range of an integer type is not defined in ONNX"
F8 = "ONNX rounds what is beyond the largest value of the type to NaN or infinity by another rule"
OF_RUNTIME = "ONNX Runtime computes the operator less precisely"

NAN = "ONNX does not say what NaN gives, and ONNX Runtime gives something else"
LEVELS = "levels are computed in f32, so that they differ in the last place, and halves may go to the other level"
EMPTY = "ONNX Runtime refuses data without elements"
ABORTS = "ONNX Runtime ends the process"

IN_F32 = "ONNX Runtime has no kernel for the type, so that it is computed in f32, as a remark says"

EXCEPT: dict[str, str] = {
    "Divide-1-i64 by zero": BY_ZERO,
    "FloorMod-1-i64 by zero": BY_ZERO,
    "Power-1-beyond u32": BEYOND,
    "Swish-4-far below zero*": OF_RUNTIME,
    "Gather-8-out of range is zero": OUT_OF_RANGE,
    "Gather-8-out of nothing": OUT_OF_RANGE,
    "Gather-8-below the range": OUT_OF_RANGE,
    "ReduceM??-1-NaN and infinities": NAN,
    "TopK-*-max, NaN last": NAN,
    "Unique-10-NaN, not sorted": NAN,
    "MaxPool-*-NaN and infinities*": NAN,
    "*Cell-*-defaults, with NaN and infinities": NAN,
    "LRN-1-channels, with NaN and infinities": NAN,
    "BatchNormInference-1-2-D, with NaN and infinities": NAN,
    "AdaptiveAvgPool-8-2-D, with NaN and infinities": "a product with a matrix of means spreads NaN",
    "Unique-10-middle axis, sorted false": "the reference evaluator fails",
    "GroupConvolutionBackpropData-1-two groups, in bf16": "the reference evaluator fails",
    "ConvolutionBackpropData-1-empty axis": EMPTY,
    "ConvolutionBackpropData-1-output_shape of 0": EMPTY,
    "GroupNormalization-12-two groups, with nothing along axis 0": EMPTY,
    "OneHot-*-no depth": EMPTY,
    "SegmentMax-16-nothing in none": EMPTY,
    "SegmentMax-16-NaN is passed over": NAN,
    "DetectionOutput-*-no images": EMPTY,
    "DetectionOutput-*-offsets that are not finite, clipped": NAN,
    "RegionYolo-1-no images": EMPTY,
    "Proposal-4-no image": EMPTY,
    "Proposal-4-no point": EMPTY,
    "GenerateProposals-9-no image": EMPTY,
    "GenerateProposals-9-no point": EMPTY,
    "ExperimentalDetectron*-6-no p*": EMPTY,
    "ReorgYolo-2-no rows": EMPTY,
    "ROIAlign-?-NaN, avg": NAN,
    "LSTMCell-*-defaults, with nothing along axis 0": ABORTS,
    "GRUCell-*-defaults, with nothing along axis 0": ABORTS,
    "LSTMSequence-*-forward, with nothing along axis 0": ABORTS,
    "GRUSequence-*-forward, with nothing along axis 0": ABORTS,
    "FakeQuantize-1-zero is a level": LEVELS,
    "FakeQuantize-1-*asymmetric*": LEVELS,
    "FakeQuantize-1-a bound near zero is kept": LEVELS,
    "FakeQuantize-1-zero is between two levels": LEVELS,
    "FakeQuantize-1-all levels and halves": LEVELS,
    "FakeConvert-13-ends*f8e4m3": "f8e4m3 is rounded as ONNX does it",
    "FakeConvert-13-small f8e4m3": "f8e4m3 is rounded as ONNX does it",
    "GridSample-9-large numbers are copied": "ONNX Runtime samples floats alone",
    "GridSample-9-NaN*": NAN,
    "GridSample-9-far beyond*": "ONNX Runtime's positions overflow",
    "SpaceToBatch-2-two axes, with nothing along axis 0": EMPTY,
    "BatchToSpace-2-two axes, with nothing along axis 0": EMPTY,
    "StringNormalizer-*": "ONNX Runtime needs the locale en_US, and the reference evaluator knows no characters of two bytes",
    "StringTokenizer-irexec-empty": EMPTY,
    "RandomUniform-*": "random numbers of ONNX are others",
    "Multinomial-*": "random numbers of ONNX are others",
    "DeformableConvolution-irexec-*": "runtimes have images of two axes alone",
    "DeformableConvolution-1-3x3, in bf16": "positions in bf16 are rounded in another order",
    "DeformableConvolution-1-3x3, with NaN and infinities": NAN,
    "Convolution-1-f64 keeps its digits": IN_F32,
    "Convolution-1-i64 keeps its digits": IN_F32,
    "ConvolutionBackpropData-1-f64 keeps its digits": IN_F32,
    "Convert-1-u16 to f8e5m2": F8,
    "Convert-1-beyond f8e5m2": F8,
    "Convert-1-ties of f8e5m2": F8,
}

REFUSED: dict[str, str] = {
    **{
        f"RoPE-*-{name}*": "only halves of a head are written"
        for name in ("positions", "neighbours", "chatglm", "qwen")
    },
    "PriorBox-*-no sizes": "there are no boxes",
    "RegionYolo-1-one coord*": "coordinates share channels with the score",
    "RegionYolo-1-no coords": "coordinates share channels with the score",
    "ReorgYolo-2-channels that do not divide": "offsets are read from the whole batch",
    "ReorgYolo-2-one channel over": "offsets are read from the whole batch",
    "ReorgYolo-2-no images": "the channels are not known to be a multiple of the squared stride",
    "ReorgYolo-2-a list of strides": "offsets are read from the whole batch",
    "MaxPool-*-a window beside the data*": "ONNX Runtime has no indices of windows beside the data",
    "DeformableConvolution-8-i32": "the sizes of the data are not known in that form",
    "IRDFT-9-a single number leaves none": "ONNX has no transform of no points",
    "Convert-1-*to u1": "ONNX lacks the type",
    "Convert-1-*to u2": "ONNX has the type from opset 25 on",
    "Convert-1-*to u3": "ONNX lacks the type",
    "Convert-1-*to u6": "ONNX lacks the type",
    "Convert-1-*beyond u6": "ONNX lacks the type",
    "Convert-1-*to nf4": "ONNX lacks the type",
}
"""Rows that are refused."""


def is_listed(row: Case, table: dict[str, str]) -> bool:
    """Whether a pattern of the table is that of the row."""
    return any(fnmatch(row.id, pattern) for pattern in table)
