"""Every layer type of the catalogue has a translator."""

from __future__ import annotations

from converters.legacy_ir.registry import find

# Legacy_IR_Layers_Catalog_Spec.md of OpenVINO 2020, with the types that stand in one section.
CATALOGUE = [
    "Activation", "ArgMax", "BatchNormalization", "BinaryConvolution", "Bucketize", "Broadcast", "Clamp", "Concat",
    "Const", "Convolution", "Crop", "CTCGreedyDecoder", "Deconvolution", "DeformableConvolution", "DepthToSpace",
    "DetectionOutput", "Erf", "Eltwise", "Fill", "Flatten", "FullyConnected", "Gather", "GRN", "GRUCell", "Input",
    "Interp", "LSTMCell", "Memory", "MVN", "NonMaxSuppression", "Norm", "Normalize", "OneHot", "Pad", "Permute",
    "Pooling", "Power", "PReLU", "PriorBox", "PriorBoxClustered", "Proposal", "PSROIPooling", "FakeQuantize",
    "Range", "RegionYolo", "ReLU", "ReorgYolo", "Resample", "Reshape", "ReverseSequence", "RNNCell", "ROIPooling",
    "ExperimentalDetectronROIFeatureExtractor", "ExperimentalSparseWeightedSum", "ScaleShift", "Select", "Shape",
    "ShuffleChannels", "SimplerNMS", "Slice", "SoftMax", "SparseFillEmptyRows", "SparseSegmentMean",
    "SparseSegmentSqrtN", "SparseSegmentSum", "SparseToDense", "Split", "Squeeze", "StridedSlice", "TensorIterator",
    "Tile", "TopK", "Unique", "Unsqueeze",
]  # fmt: skip


def test_every_type_of_the_catalogue_has_a_translator() -> None:
    assert [type for type in CATALOGUE if find(type) is None] == []


def test_types_compare_without_regard_to_case() -> None:
    assert find("softmax") is find("SoftMax") is find("Softmax")
