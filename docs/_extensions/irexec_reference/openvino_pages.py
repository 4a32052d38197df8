"""Pages of OpenVINO's documentation about versions of operations. The table has the names of pages by folder."""

from __future__ import annotations

import re

_SITE = "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs"
_PAGES = {
    "activation": "clamp-1 elu-1 exp-1 gelu-2 gelu-7 hard-sigmoid-1 hsigmoid-5 hswish-4 identity-16 log-soft-max-5 "
                  "mish-4 prelu-1 relu-1 "
    "selu-1 sigmoid-1 softmax-1 softmax-8 softplus-4 softsign-9 swish-4",
    "arithmetic": "abs-1 acos-1 acosh-3 add-1 asin-1 asinh-3 atan-1 atan2-17 atanh-3 ceiling-1 cos-1 cosh-1 cumsum-3 "
                  "divide-1 erf-1 "
    "erfinv-17 floor-1 floormod-1 log-1 maximum-1 minimum-1 mod-1 multiply-1 negative-1 power-1 round-5 segment-max-16 "
    "sign-1 sin-1 sinh-1 sqrt-1 squared-difference-1 subtract-1 tan-1 tanh-1",
    "bitwise": "bitwise-and-13 bitwise-left-shift-15 bitwise-not-13 bitwise-or-13 bitwise-right-shift-15 "
               "bitwise-xor-13",
    "comparison": "equal-1 greater-1 greater-equal-1 isfinite-10 isinf-10 isnan-10 less-1 lessequal-1 notequal-1",
    "condition": "bincount-17 bucketize-3 if-8 nonzero-3 select-1",
    "convolution": "binary-convolution-1 convolution-1 convolution-backprop-data-1 deformable-convolution-1 "
                   "deformable-convolution-8 "
    "group-convolution-1 group-convolution-backprop-data-1",
    "detection": "deformable-psroi-pooling-1 detectionoutput-1 detectionoutput-8 "
                 "experimental-detectron-detection-output-6 "
    "experimental-detectron-generate-proposals-single-image-6 experimental-detectron-prior-grid-generator-6 "
    "experimental-detectron-roi-feature-extractor-6 generate-proposals-9 prior-box-1 prior-box-8 prior-box-clustered-1 "
    "proposal-1 proposal-4 psroi-pooling-1 region-yolo-1 reorg-yolo-1 roi-align-3 roi-align-9 roi-align-rotated-15 "
    "roi-pooling-1",
    "generation": "eye-9 multinomial-13 random-uniform-8 range-1 range-4",
    "image": "bgr-to-nv12-17 grid-sample-9 i420-to-bgr-8 i420-to-rgb-8 interpolate-1 interpolate-11 interpolate-4 "
             "nv12-to-bgr-8 "
    "nv12-to-rgb-8 rgb-to-nv12-17",
    "infrastructure": "assign-3 assign-6 constant-1 loop-5 parameter-1 read-value-3 read-value-6 result-1 "
                      "tensor-iterator-1",
    "logical": "logical-and-1 logical-not-1 logical-or-1 logical-xor-1",
    "matrix": "einsum-7 grouped-matmul-17 inverse-14 matmul-1",
    "movement": "batch-to-space-2 broadcast-1 broadcast-3 col2im-15 concat-1 depth-to-space-1 extract-image-patches-3 "
                "gather-1 gather-7 "
    "gather-8 gather-elements-6 gather-nd-5 gather-nd-8 gather-tree-1 pad-1 pad-12 reverse-1 reverse-sequence-1 roll-7 "
    "scatter-elements-update-12 scatter-elements-update-3 scatter-nd-update-15 scatter-nd-update-3 scatter-update-3 "
    "shuffle-channels-1 slice-8 slice-scatter-15 space-to-batch-2 space-to-depth-1 split-1 strided-slice-1 tile-1 "
    "transpose-1 unique-10 variadic-split-1",
    "normalization": "batch-norm-inference-1 batch-norm-inference-5 grn-1 group-normalization-12 lrn-1 mvn-1 mvn-6 "
                     "normalize-l2-1",
    "pooling": "adaptive-avg-pool-8 adaptive-max-pool-8 avg-pool-1 avg-pool-14 avg-pool-16 max-pool-1 max-pool-14 "
               "max-pool-8",
    "quantization": "fake-convert-13 fake-quantize-1",
    "reduction": "reduce-l1-4 reduce-l2-4 reduce-logical-and-1 reduce-logical-or-1 reduce-max-1 reduce-mean-1 "
                 "reduce-min-1 reduce-prod-1 "
    "reduce-sum-1",
    "sequence": "ctc-greedy-decoder-1 ctc-greedy-decoder-seq-len-6 ctc-loss-4 gru-cell-3 gru-sequence-5 lstm-cell-1 "
                "lstm-sequence-5 "
    "one-hot-1 one-hot-16 rnn-cell-3 rnn-sequence-5 scaled-dot-product-attention",
    "shape": "reshape-1 shape-of-1 shape-of-3 squeeze-1 squeeze-15 unsqueeze-1",
    "signals": "dft-7 idft-7 irdft-9 istft-16 rdft-9 stft-15",
    "sort": "experimental-detectron-top-krois-6 matrix-non-max-suppression-8 multiclass-non-max-suppression-8 "
    "multiclass-non-max-suppression-9 nms-rotated-13 no-max-suppression-5 non-max-suppression-1 non-max-suppression-3 "
    "non-max-suppression-4 non-max-suppression-9 search-sorted-15 top-k-1 top-k-11 top-k-3",
    "sparse": "embedding-bag-offsets-15 embedding-bag-offsets-sum-3 embedding-bag-packed-15 embedding-bag-packed-sum-3 "
    "embedding-segments-sum-3 fill-empty-rows-16",
    "type": "convert-1 convert-like-1 convert-promote-types-14 string-tensor-pack-15 string-tensor-unpack-15",
}  # fmt: skip
_TYPES = {
    "matrixnonmaxsuppression": "matrixnms", "multiclassnonmaxsuppression": "multiclassnms",
    "nomaxsuppression": "nonmaxsuppression",
    "fillemptyrows": "sparsefillemptyrows",
}  # fmt: skip


def _by_type() -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for folder, names in _PAGES.items():
        for name in names.split():
            slug, version = match.groups() if (match := re.fullmatch(r"(.+)-(\d+)", name)) else (name, "1")
            type = slug.replace("-", "")
            found.setdefault(_TYPES.get(type, type), {})[int(version)] = f"{_SITE}/{folder}/{name}.html"
    return found


_BY_TYPE = _by_type()


def openvino_page(type: str, since: int | str) -> str:
    """The address of the page about a version or the nearest one; "" for an operation without a page.

    Args:
        type: of an operation.
        since: the first opset with the version; a text for a version that is not OpenVINO's.
    """
    pages = _BY_TYPE.get(type.lower(), {})
    if isinstance(since, str) or not pages:
        return ""
    return pages[min(pages, key=lambda version: (abs(version - since), version))]
