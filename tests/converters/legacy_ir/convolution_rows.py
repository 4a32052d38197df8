"""Rows of Convolution, Deconvolution, Pooling, FullyConnected and Gemm."""

from __future__ import annotations

import numpy as np

from tests.converters.legacy_ir.rows import Row, convolved, padded, patches, random, row, transposed

X = random(2, 4, 7, 6)
W, WG, B = random(6, 4, 3, 2), random(6, 2, 3, 3), random(6)
WT, WTG = random(4, 3, 3, 3), random(4, 3, 4, 4)
BY = {"kernel": "3,2", "strides": "2,1", "dilations": "1,2", "output": 6}
PLAIN = convolved(padded(X, (1, 0), (2, 1)), W, (2, 1), (1, 2))
BIAS = B[:, None, None]
MEAN = padded(X, (1, 1), (1, 1))
ONES = padded(np.ones_like(X), (1, 1), (1, 1))
F = random(5, 168)

ROWS: list[Row] = [
    row("lists", "Convolution", [X], PLAIN + BIAS, BY | {"pads_begin": "1,0", "pads_end": "2,1"}, blobs={"weights": W, "biases": B}),
    row("weights of f16", "Convolution", [X], convolved(X, W.astype(np.float16).astype(np.float32), (1, 1), (1, 1)),
        {"kernel": "3,2", "output": 6}, blobs={"weights": W.astype(np.float16)}, precision="FP16"),
    row("groups", "Convolution", [X], convolved(padded(X, (1, 1), (1, 1)), WG, (1, 1), (1, 1), 2),
        {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "output": 6, "group": 2}, blobs={"weights": WG}),
    row("same_upper pads at the end", "Convolution", [X], convolved(padded(X, (1, 0), (1, 1)), W, (1, 1), (1, 1)),
        {"kernel": "3,2", "output": 6, "auto_pad": "same_upper", "pads_begin": "5,5"}, blobs={"weights": W}),
    row("same_lower pads at the begin", "Convolution", [X], convolved(padded(X, (1, 1), (1, 0)), W, (1, 1), (1, 1)),
        {"kernel": "3,2", "output": 6, "auto_pad": "same_lower"}, blobs={"weights": W}),
    row("valid leaves pads out", "Convolution", [X], convolved(X, W, (1, 1), (1, 1)),
        {"kernel": "3,2", "output": 6, "auto_pad": "valid", "pads_begin": "1,1"}, blobs={"weights": W}),
    row("version 2", "Convolution", [X], convolved(padded(X, (2, 1), (0, 1)), W, (1, 2), (2, 1)),
        {"kernel-x": 2, "kernel-y": 3, "stride-x": 2, "pad-x": 1, "pad-y": 2, "pad-b": 0, "dilation-y": 2, "output": 6},
        blobs={"weights": W}, version=2, tag="convolution_data"),
    row("weights as inputs", "Convolution", [X, W, B], convolved(X, W, (1, 1), (1, 1)) + BIAS, {"kernel": "3,2", "output": 6}, constants=(1, 2), version=7),
    row("explicit", "Deconvolution", [X], transposed(X, WT, (2, 2))[:, :, 1:-1, 1:-1],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "output": 3}, blobs={"weights": WT}),
    row("declared sizes leave out rows", "Deconvolution", [X], transposed(X, WT, (2, 2))[:, :, 1:15, 1:13] + B[:3, None, None],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "output": 3},
        blobs={"weights": WT, "biases": B[:3]}),
    row("same_upper", "Deconvolution", [X], transposed(X, WT, (2, 2))[:, :, :14, :12],
        {"kernel": "3,3", "strides": "2,2", "auto_pad": "same_upper", "output": 3}, blobs={"weights": WT}),
    row("groups of Deconvolution", "Deconvolution", [X], transposed(X, WTG, (2, 2), 2)[:, :, 1:-1, 1:-1],
        {"kernel": "4,4", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "output": 6, "group": 2},
        blobs={"weights": WTG}),
    row("max", "Pooling", [X], patches(padded(X, (1, 1), (1, 1), -np.inf), (3, 2), (2, 2), (1, 1)).max((-1, -2)),
        {"kernel": "3,2", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "pool-method": "max",
         "exclude-pad": "true"}),
    row("rounded up", "Pooling", [X], patches(padded(X, (0, 0), (0, 1), -np.inf), (3, 3), (2, 2), (1, 1)).max((-1, -2)),
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "rounding_type": "ceil"}),
    row("rounded up along one axis", "Pooling", [X],
        patches(padded(X, (0, 0), (2, 0), -np.inf), (3, 1), (3, 4), (1, 1)).max((-1, -2)),
        {"kernel": "3,1", "strides": "3,4", "pads_begin": "0,0", "pads_end": "0,0", "rounding_type": "ceil"}),
    row("mean over the padding, rounded up", "Pooling", [X],
        patches(padded(X, (1, 0), (2, 0)), (4, 1), (3, 1), (1, 1)).sum((-1, -2))
        / np.array([4, 4, 3], np.float32)[:, None],
        {"kernel": "4,1", "strides": "3,1", "pads_begin": "1,0", "pads_end": "1,0", "pool-method": "avg",
         "exclude-pad": "false", "rounding_type": "ceil"}),
    row("mean without pads", "Pooling", [X],
        (patches(MEAN, (3, 3), (1, 1), (1, 1)).sum((-1, -2)) / patches(ONES, (3, 3), (1, 1), (1, 1)).sum((-1, -2))),
        {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "pool-method": "avg", "exclude-pad": "true"}),
    row("mean with pads", "Pooling", [X], patches(MEAN, (3, 3), (1, 1), (1, 1)).mean((-1, -2)),
        {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "pool-method": "avg", "exclude-pad": "false"}),
    row("version 2 of Pooling", "Pooling", [X], patches(X, (7, 6), (1, 1), (1, 1)).mean((-1, -2)),
        {"kernel-x": 6, "kernel-y": 7, "pool-method": "avg", "exclude-pad": "true", "rounding-type": "ceil"},
        version=2, tag="pooling_data"),
    row("flattens", "FullyConnected", [X], X.reshape(2, -1) @ F.T + B[:5], {"out-size": 5}, blobs={"weights": F, "biases": B[:5]}),
    row("other name", "InnerProduct", [X], X.reshape(2, -1) @ F.T, {"out-size": 5}, blobs={"weights": F}, version=2, tag="fc"),
    row("weights through inputs", "FullyConnected", [X, F, B[:5]], X.reshape(2, -1) @ F.T + B[:5], {"out-size": 5}, version=7),
    row("alpha and beta", "Gemm", [X, X[:1, :1, :, :2].copy(), B[:1]],
        2 * X.swapaxes(2, 3) @ X[:1, :1, :, :2] + 0.5 * B[:1],
        {"alpha": 2, "beta": "5e-1", "transpose_a": "True", "transpose_b": "0"}),
]  # fmt: skip
