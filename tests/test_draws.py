"""Every operation that OpenVINO knows can be drawn for tests/oracle/sweep.py, and what is drawn is sound."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.errors import OpError
from irexec.ops.registry import definitions
from tests.oracle.draws import EXEMPT, draws
from tests.support.laws import exact_facts, infer, kernel, read_only

# What nobody has written draws for yet.
_MISSING = {
    ("AdaptiveAvgPool", 8), ("AdaptiveMaxPool", 8), ("AvgPool", 1), ("AvgPool", 14), ("AvgPool", 16), ("BGRtoNV12", 17),
    ("BatchNormInference", 1), ("BatchNormInference", 5), ("BatchToSpace", 2), ("BinaryConvolution", 1), ("Broadcast", 1),
    ("Broadcast", 3), ("Bucketize", 3), ("CTCGreedyDecoder", 1), ("CTCGreedyDecoderSeqLen", 6), ("CTCLoss", 4), ("Col2Im", 15),
    ("Concat", 1), ("Convert", 1), ("ConvertLike", 1), ("ConvertPromoteTypes", 14), ("Convolution", 1), ("ConvolutionBackpropData", 1),
    ("CumSum", 3), ("DFT", 7), ("DeformableConvolution", 1), ("DeformableConvolution", 8), ("DeformablePSROIPooling", 1),
    ("DepthToSpace", 1), ("DetectionOutput", 1), ("DetectionOutput", 8), ("Einsum", 7), ("EmbeddingBagOffsets", 15),
    ("EmbeddingBagOffsetsSum", 3), ("EmbeddingBagPacked", 15), ("EmbeddingBagPackedSum", 3), ("EmbeddingSegmentsSum", 3), ("ErfInv", 17),
    ("ExperimentalDetectronDetectionOutput", 6), ("ExperimentalDetectronGenerateProposalsSingleImage", 6),
    ("ExperimentalDetectronPriorGridGenerator", 6), ("ExperimentalDetectronROIFeatureExtractor", 6), ("ExperimentalDetectronTopKROIs", 6),
    ("ExtractImagePatches", 3), ("Eye", 9), ("FakeConvert", 13), ("FakeQuantize", 1), ("GRN", 1), ("GRUCell", 3), ("GRUSequence", 5),
    ("Gather", 1), ("Gather", 7), ("Gather", 8), ("GatherElements", 6), ("GatherND", 5), ("GatherND", 8), ("GatherTree", 1),
    ("GenerateProposals", 9), ("GridSample", 9), ("GroupConvolution", 1), ("GroupConvolutionBackpropData", 1), ("GroupNormalization", 12),
    ("GroupedMatMul", 17), ("I420toBGR", 8), ("I420toRGB", 8), ("IDFT", 7), ("IRDFT", 9), ("ISTFT", 16), ("Identity", 16),
    ("Interpolate", 1), ("Interpolate", 4), ("Interpolate", 11), ("Inverse", 14), ("LRN", 1), ("LSTMCell", 1), ("LSTMCell", 4),
    ("LSTMSequence", 5), ("MVN", 2), ("MVN", 6), ("MatMul", 1), ("MatrixNms", 8), ("MaxPool", 1), ("MaxPool", 8), ("MaxPool", 14),
    ("MulticlassNms", 8), ("MulticlassNms", 9), ("Multinomial", 13), ("NMSRotated", 13), ("NV12toBGR", 8), ("NV12toRGB", 8),
    ("NonMaxSuppression", 1), ("NonMaxSuppression", 3), ("NonMaxSuppression", 4), ("NonMaxSuppression", 5), ("NonMaxSuppression", 9),
    ("NonZero", 3), ("NormalizeL2", 1), ("OneHot", 1), ("OneHot", 16), ("PSROIPooling", 1), ("Pad", 1), ("Pad", 12), ("PriorBox", 1),
    ("PriorBox", 8), ("PriorBoxClustered", 1), ("Proposal", 1), ("Proposal", 4), ("RDFT", 9), ("RGBtoNV12", 17), ("RNNCell", 1),
    ("RNNSequence", 5), ("ROIAlign", 3), ("ROIAlign", 9), ("ROIAlignRotated", 15), ("ROIPooling", 2), ("RandomUniform", 8), ("Range", 1),
    ("Range", 4), ("RegionYolo", 1), ("ReorgYolo", 2), ("Reshape", 1), ("Reverse", 1), ("ReverseSequence", 1), ("Roll", 7), ("STFT", 15),
    ("ScaledDotProductAttention", 13), ("ScatterElementsUpdate", 3), ("ScatterElementsUpdate", 12), ("ScatterNDUpdate", 4),
    ("ScatterNDUpdate", 15), ("ScatterUpdate", 3), ("SearchSorted", 15), ("SegmentMax", 16), ("ShapeOf", 1), ("ShapeOf", 3),
    ("ShuffleChannels", 1), ("Slice", 8), ("SliceScatter", 15), ("SpaceToBatch", 2), ("SpaceToDepth", 1), ("SparseFillEmptyRows", 16),
    ("Split", 1), ("Squeeze", 1), ("Squeeze", 15), ("StridedSlice", 1), ("StringTensorPack", 15), ("StringTensorUnpack", 15), ("Tile", 1),
    ("TopK", 1), ("TopK", 3), ("TopK", 11), ("Transpose", 1), ("Unique", 10), ("Unsqueeze", 1), ("VariadicSplit", 1),
}  # fmt: skip


def test_every_operation_is_drawn() -> None:
    known = {(d.type, d.since) for d in definitions() if isinstance(d.since, int)}
    assert known - draws().keys() - EXEMPT.keys() - _MISSING == set()
    assert not draws().keys() & EXEMPT.keys()


@pytest.mark.parametrize("pair", sorted(draws()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_draws_are_sound(pair: tuple[str, int]) -> None:
    """They are of that very operation, the same for the same seed, and most of them can be computed."""
    computed = 0
    for seed in range(5):
        row, again = (draws()[pair](np.random.default_rng(seed)) for _ in range(2))
        assert (row.type, row.since, row.digest) == (*pair, again.digest)
        assert row.definition.since == pair[1]
        try:
            infer(row, exact_facts(row))
            kernel(row, read_only(row))
            computed += 1
        except OpError:
            pass
    assert computed >= 3
