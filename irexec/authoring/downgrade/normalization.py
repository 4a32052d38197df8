"""Normalisation and attention in older operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.authoring.downgrade.layer import ONE, Layer, rewrites
from irexec.authoring.ends import constant
from irexec.authoring.tensor import Tensor
from irexec.schema.shape_rules import mvn_2_axes


@rewrites("MVN", 6)
def _mvn_6(layer: Layer) -> Any:
    x, axes = layer.inputs
    centred = ONE.subtract(x, ONE.reduce_mean(x, axes, keep_dims=True))
    if not layer["normalize_variance"]:
        return centred
    variance = ONE.reduce_mean(ONE.multiply(centred, centred), axes, keep_dims=True)
    epsilon = layer.number(layer["eps"])
    if layer["eps_mode"] == "inside_sqrt":
        return ONE.divide(centred, ONE.sqrt(ONE.add(variance, epsilon)))
    return ONE.divide(centred, ONE.add(ONE.sqrt(variance), epsilon))


@rewrites("MVN", 2)
def _mvn_2(layer: Layer) -> Any:
    axes = list(mvn_2_axes(layer.rank(), layer["across_channels"], layer["reduction_axes"]))
    (x,) = layer.inputs
    centred = ONE.subtract(x, ONE.reduce_mean(x, axes, keep_dims=True))
    if not layer["normalize_variance"]:
        return centred
    variance = ONE.reduce_mean(ONE.multiply(centred, centred), axes, keep_dims=True)
    return ONE.divide(centred, ONE.sqrt(ONE.add(variance, layer.number(layer["eps"]))))


@rewrites("BatchNormInference", 5)
def _batch_norm_5(layer: Layer) -> Any:
    """In opset 1 gamma and beta come first."""
    data, gamma, beta, mean, variance = layer.inputs
    return layer.same(1, gamma, beta, data, mean, variance)


@rewrites("GroupNormalization", 12)
def _group_normalization(layer: Layer) -> Any:
    """The groups are an axis of their own while they are normalised."""
    data, scale, bias = layer.inputs
    rank, groups = layer.rank(), layer["num_groups"]
    grouped = ONE.reshape(data, [0, groups, -1], special_zero=True)
    mean = ONE.reduce_mean(grouped, [2], keep_dims=True)
    centred = ONE.subtract(grouped, mean)
    variance = ONE.reduce_mean(ONE.multiply(centred, centred), [2], keep_dims=True)
    normal = ONE.divide(centred, ONE.sqrt(ONE.add(variance, layer.number(layer["epsilon"]))))
    whole = ONE.reshape(normal, ONE.shape_of(data), special_zero=False)
    along = [i for i in range(rank) if i != 1]
    factor, shift = (ONE.unsqueeze(vector, along) for vector in (scale, bias))
    return ONE.add(ONE.multiply(whole, factor), shift)


@rewrites("ScaledDotProductAttention", 13)
def attention(layer: Layer) -> Any:
    """softmax(query @ key.T * scale + mask) @ value."""
    query, key, value, *others = layer.inputs
    mask, scale = (others[i] if len(others) > i else None for i in range(2))
    rank = layer.rank()
    layer.refuse_unless(layer.rank(1) == rank, "query and key have different ranks")
    if scale is None:
        size = layer.sizes()[-1]
        layer.refuse_unless(isinstance(size, int), "the last size of the query is not known")
        scale = layer.number(1 / math.sqrt(int(size))) if isinstance(size, int) else None
    else:
        scale = ONE.reshape(scale, constant(np.zeros(0), "i64"), special_zero=False)
    scores = ONE.matmul(ONE.multiply(query, scale), key, transpose_b=True)
    low = layer.number(-math.inf)
    if layer["causal"]:
        lower = np.tri(layer.static()[-2], layer.static(1)[-2], dtype=bool)
        scores = ONE.select(constant(lower, "boolean"), scores, low)
    elif mask is not None and mask.element is not None and mask.element.kind == "boolean":
        scores = ONE.select(mask, scores, low)
    elif mask is not None:
        scores = ONE.add(scores, mask)
    axis = (scores.fact.rank or 0) - 1
    layer.refuse_unless(axis >= 0, "the rank of the scores is not known")
    return ONE.matmul(_weights(scores, axis, *others[2:]), value)


def _weights(scores: Tensor, axis: int, *sinks: Tensor) -> Tensor:
    """The softmax of scores, among which a sink is one more score of no value."""
    if not sinks:
        return ONE.softmax(scores, axis=axis)
    (sink,) = sinks
    highest = ONE.maximum(ONE.reduce_max(scores, [axis], keep_dims=True), sink)
    shares = ONE.exp(ONE.subtract(scores, highest))
    return ONE.divide(
        shares, ONE.add(ONE.reduce_sum(shares, [axis], keep_dims=True), ONE.exp(ONE.subtract(sink, highest)))
    )
