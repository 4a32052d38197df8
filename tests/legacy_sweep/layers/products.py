"""Layers of matrix products and of normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)


@generates("FullyConnected", "InnerProduct")
def fully_connected(net: Network) -> None:
    shape = shape_of(net, pick(net, 2, 4, 5), 1, 4)
    out = size(net, 1, 6)
    x = net.input(values(net, shape))
    weights = values(net, (out, int(np.prod(shape[1:]))))
    biases = values(net, (out,)) if chance(net, 0.7) else None
    data = {"out-size": out}
    if net.version >= 6 and chance(net, 0.25):
        more = [net.const(array) for array in (weights, biases) if array is not None]
        net.layer(net.type, [x, *more], [(shape[0], out)], data)
        return
    net.layer(net.type, [x], [(shape[0], out)], data, {"weights": weights, "biases": biases}, gap=size(net, 0, 2))


@generates("Gemm", versions=RECENT)
def gemm(net: Network) -> None:
    m, k, n = shape_of(net, 3, 1, 5)
    batch = shape_of(net, size(net, 0, 2), 1, 3)
    a_batch = tuple(1 if chance(net, 0.2) else b for b in batch)
    b_batch = batch
    data: dict[str, Any] = {}
    transposed = [chance(net), chance(net)]
    for key, value in zip(("transpose_a", "transpose_b"), transposed, strict=True):
        if value or chance(net):
            data[key] = pick(net, int(value), bool(value))
    a = net.input(values(net, (*a_batch, *((k, m) if transposed[0] else (m, k)))))
    b = net.input(values(net, (*b_batch, *((n, k) if transposed[1] else (k, n)))))
    inputs = [a, b]
    if chance(net):
        data["alpha"] = pick(net, 1.0, 0.5, -2.0)
    if chance(net, 0.4):
        inputs.append(net.input(values(net, (*batch, m, n))))
        data["beta"] = pick(net, 1.0, 0.25)
    net.layer("Gemm", inputs, [(*batch, m, n)], data)


@generates("Norm", "LRN")
def norm(net: Network) -> None:
    shape = shape_of(net, 4, 2, 6)
    data: dict[str, Any] = {
        "alpha": pick(net, 0.5, "1e-4", 2.0), "beta": pick(net, 0.75, 0.5, 1.0), "region": pick(net, "across", "same"),
    }  # fmt: skip
    data["local-size"] = int(pick(net, 3, 5))
    if chance(net, 0.3) and net.version >= 6:
        data["k"] = 2
    net.layer(net.type, [net.input(values(net, shape))], [shape], data)


@generates("Normalize", versions=(3, 4, 5, 6, 7))
def normalize(net: Network) -> None:
    shape = shape_of(net, 4, 1, 4)
    shared, spatial = chance(net), chance(net)
    data = {"across_spatial": int(spatial), "channel_shared": int(shared), "eps": pick(net, "1e-10", "1e-9")}
    x = net.input(values(net, shape, 0.5, 2) * net.rng.choice([-1, 1], shape).astype(np.float32))
    net.layer("Normalize", [x], [shape], data, {"weights": values(net, (1 if shared else shape[1],))})


@generates("MVN")
def mvn(net: Network) -> None:
    shape = shape_of(net, 4 if net.version < 5 or chance(net, 0.7) else 5, 2, 4)
    data: dict[str, Any] = {"normalize_variance": 1, "eps": pick(net, "1e-9", 0.01)}
    across = chance(net)
    if across or chance(net):
        data["across_channels"] = int(across)
    net.layer("MVN", [net.input(values(net, shape))], [shape], data)


@generates("GRN")
def grn(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 4))
    net.layer("GRN", [net.input(values(net, shape))], [shape], {"bias": pick(net, 1.0, "1e-3", 0.5)})


@generates("SoftMax", "Softmax")
@generates("LogSoftmax", versions=RECENT)
def softmax(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 5), 1, 5)
    axis = size(net, 0, len(shape) - 1)
    data = {} if axis == 1 and chance(net) else {"axis": axis}
    net.layer(net.type, [net.input(values(net, shape, -4, 4))], [shape], data)
