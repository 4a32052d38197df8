"""Rows of normalisation, SoftMax, resizing and quantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.converters.legacy_ir.rows import Row, convolved, padded, random, row

X = random(2, 3, 5, 4)
C, E = random(3), np.abs(random(3)) + 0.5
ACROSS = np.stack([sum(X[:, j] ** 2 for j in range(max(0, i - 1), min(3, i + 2))) for i in range(3)], 1)
WINDOW = sum(padded(X * X, (1, 1), (1, 1))[:, :, i : i + 5, j : j + 4] for i in range(3) for j in range(3))
BITS = np.random.default_rng(5).integers(0, 2, (4, 3, 3, 3))
SIGNS = np.where(X > 0, 1, -1).astype(np.float32)
LEVELS = np.clip(X, -1, 1.5)


def _column(values: np.ndarray) -> np.ndarray:
    return values[:, None, None]


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


def _linear(x: np.ndarray, sizes: Sequence[int], centre: str, wide: bool = False) -> np.ndarray:
    """A separable triangle filter over the last axes, renormalised at the edges."""
    for axis, size in zip(range(-len(sizes), 0), sizes, strict=True):
        here = x.shape[axis]
        o, i = np.arange(size)[:, None], np.arange(here)[None]
        factor = here / size
        c = {
            "half": o * factor + factor / 2 - 0.5,
            "corners": o * (here - 1) / max(1, size - 1),
            "first": np.minimum(o * factor, here - 1),
        }[centre]
        slope = 1 / factor if wide and factor > 1 else 1
        weights = np.maximum(0, 1 - slope * np.abs(c - i))
        weights /= weights.sum(1, keepdims=True)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x.astype(np.float32)


SPREAD = (X - X.mean((2, 3), keepdims=True)) / np.sqrt(X.var((2, 3), keepdims=True) + 0.1)
ALL = (X - X.mean((1, 2, 3), keepdims=True)) / np.sqrt(X.var((1, 2, 3), keepdims=True) + 1e-9)
CAFFE = "caffe.ResampleParameter."

ROWS: list[Row] = [
    row("weights are the variance", "BatchNormalization", [X], (X - _column(C)) / np.sqrt(_column(E) + 0.01),
        {"epsilon": 0.01}, blobs={"weights": E, "biases": C}),
    row("version 2", "BatchNormalization", [X], (X - _column(C)) / np.sqrt(_column(E) + 0.01), {"epsilon": 0.01},
        blobs={"weights": E, "biases": C}, version=2, tag="batch_norm_data"),
    row("across", "Norm", [X], X / (1 + 0.5 / 3 * ACROSS) ** 0.75, {"alpha": 0.5, "beta": 0.75, "local-size": 3, "region": "across"}),
    row("same", "Norm", [X], X / (2 + 0.5 / 9 * WINDOW) ** 0.75, {"alpha": 0.5, "beta": 0.75, "local-size": 3, "region": "same", "k": 2}),
    row("version 2 of Norm", "Norm", [X], X / (1 + 0.5 / 3 * ACROSS) ** 0.75,
        {"alpha": 0.5, "beta": 0.75, "local-size": 3, "region": "across"}, version=2, tag="norm_data"),
    row("over channels", "Normalize", [X], _column(C) * X / np.sqrt((X * X).sum(1, keepdims=True) + 1e-10),
        {"across_spatial": 0, "channel_shared": 0, "eps": 1e-10}, blobs={"weights": C}),
    row("over all", "Normalize", [X], C[0] * X / np.sqrt((X * X).sum((1, 2, 3), keepdims=True) + 1e-10),
        {"across_spatial": 1, "channel_shared": 1, "eps": 1e-10}, blobs={"weights": C[:1]}),
    row("the first weight counts", "Normalize", [X], C[0] * X / np.sqrt((X * X).sum(1, keepdims=True)),
        {"across_spatial": 0, "channel_shared": 1, "eps": 1e-10}, blobs={"weights": C}),
    row("eps in the root", "MVN", [X], SPREAD, {"eps": 0.1, "across_channels": 0, "normalize_variance": 1}),
    row("over channels too", "MVN", [X], ALL, {"across_channels": 1, "normalize_variance": 1, "eps": 1e-9}),
    row("mean alone", "MVN", [X], X - X.mean((2, 3), keepdims=True), {"normalize_variance": 0}),
    row("bias", "GRN", [X], X / np.sqrt((X * X).sum(1, keepdims=True) + 0.5), {"bias": 0.5}),
    row("axis 1", "SoftMax", [X], _softmax(X, 1)),
    row("other spelling, last axis", "Softmax", [X], _softmax(X, 3), {"axis": -1}),
    row("logarithm", "LogSoftmax", [X], np.log(_softmax(X, -1))),
    row("twice", "Resample", [X], X.repeat(2, 2).repeat(2, 3), {"type": f"{CAFFE}NEAREST", "factor": 2, "antialias": 0}),
    row("sizes, not the factor", "Resample", [X], X.repeat(3, 2).repeat(2, 3), {"type": f"{CAFFE}NEAREST", "factor": 7}),
    row("linear", "Resample", [X], _linear(X, (7, 9), "half"), {"type": f"{CAFFE}LINEAR", "antialias": 0}),
    row("smaller", "Resample", [X], _linear(X, (2, 3), "half"), {"type": f"{CAFFE}LINEAR", "antialias": 0}),
    row("smaller, with antialias", "Resample", [X], _linear(X, (2, 3), "half", True), {"type": f"{CAFFE}LINEAR", "antialias": 1}),
    row("corners meet", "Interp", [X], _linear(X, (9, 3), "corners"), {"height": 9, "width": 3}),
    row("first pixels meet", "Interp", [X], _linear(X, (10, 7), "first"), {"factor": 2, "align_corners": 0}),
    row("borders left out", "Interp", [X], _linear(X[:, :, 1:4, 1:3], (7, 6), "corners"),
        {"height": 7, "width": 6, "pad_beg": -1, "pad_end": -1, "align_corners": 1}),
    row("levels", "FakeQuantize", [X, *map(np.float32, ([[[[-1]]]], [[[[1.5]]]], [[[[-2]]]], [[[[3]]]]))],
        np.round((LEVELS + 1) / 2.5 * 255) / 255 * 5 - 2, {"levels": 256}, constants=(1, 2, 3, 4)),
    row("before version 6", "Quantize", [X, *map(np.float32, ([[[[0]]]], [[[[0]]]], [[[[-1]]]], [[[[1]]]]))], SIGNS,
        {"levels": 2}, constants=(1, 2, 3, 4), version=5),
    row("zero border", "BinaryConvolution", [SIGNS],
        convolved(padded(SIGNS, (1, 1), (1, 1)), (BITS * 2 - 1).astype(np.float32), (1, 1), (1, 1)),
        {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "output": 4, "mode": "xnor-popcount", "pad_value": 0.0},
        blobs={"weights": np.packbits(BITS.ravel(), bitorder="little")}),
    row("border of -1", "BinaryConvolution", [(SIGNS > 0).astype(np.float32)],
        convolved(padded(SIGNS, (1, 1), (1, 1), -1), (BITS * 2 - 1).astype(np.float32), (1, 1), (1, 1)),
        {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "output": 4, "mode": "xnor-popcount", "pad_value": -1.0},
        blobs={"weights": np.packbits(BITS.ravel(), bitorder="little")}),
]  # fmt: skip
